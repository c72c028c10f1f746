//! A conversation cut to what its model can take.
//!
//! Left out, one message after the other until the rest fits: what earlier turns had recalled, the oldest first; then what
//! was said in earlier turns, the oldest first; then what this turn has recalled, but for the last. The system message and
//! what the person said last always stay. The files keep everything: the same files give the same cut.

use crate::block::{injected, is_new_index};
use crate::message::Role;
use acheron_base::{Error, Result, tokens};

/// The longest answer that is asked for.
const ANSWER: u32 = 4096;
/// The cost of a message beside its text.
const FRAME: u64 = 4;

/// Tokens that are kept free for the answer.
pub fn answer(window: u32) -> u32 {
    ANSWER.min(window / 4)
}

#[derive(Debug, PartialEq, Eq)]
pub struct Fitted {
    /// The messages that are sent.
    pub said: Vec<(Role, String)>,
    pub tokens: u64,
    /// How many messages were left out.
    pub left_out: usize,
}

/// Cuts a conversation to a window of so many tokens. Fails if the system message and the last ones are too long alone.
pub fn fitted(said: Vec<(Role, String)>, window: u32) -> Result<Fitted> {
    // What a model thought is not sent again.
    let said: Vec<_> = said.into_iter().filter(|(role, _)| *role != Role::AssistantReasoning).collect();
    let costs: Vec<u64> = said.iter().map(|(_, text)| tokens::count(text) + FRAME).collect();
    let room = u64::from(window - answer(window));
    let mut tokens: u64 = costs.iter().sum();
    let mut gone = vec![false; said.len()];
    for at in dispensable(&said) {
        if tokens <= room {
            break;
        }
        tokens -= costs[at];
        gone[at] = true;
    }
    if tokens > room {
        return Err(Error::budget_exceeded(format!(
            "the prompt and the last messages have {tokens} tokens, and the model has room for {room}: shorten the index \
             or the message, or raise context_tokens in the mountspec"
        )));
    }
    let left_out = gone.iter().filter(|gone| **gone).count();
    let said = said.into_iter().zip(gone).filter(|(_, gone)| !gone).map(|(message, _)| message).collect();
    Ok(Fitted { said, tokens, left_out })
}

/// The places of the messages that may be left out, in the order in which they are.
fn dispensable(said: &[(Role, String)]) -> Vec<usize> {
    let recalled = |at: &usize| said[*at].0 == Role::User && injected(&said[*at].1);
    let asked = said.iter().rposition(|(role, text)| *role == Role::User && !injected(text)).unwrap_or(said.len());
    // The last index that was shown is what the model goes by.
    let index = said.iter().rposition(|(role, text)| *role == Role::User && is_new_index(text));
    let earlier = || (0..asked).filter(|at| said[*at].0 != Role::System && Some(*at) != index);
    let now = (asked + 1..said.len().saturating_sub(1)).filter(recalled);
    earlier().filter(recalled).chain(earlier().filter(|at| !recalled(at))).chain(now).collect()
}

#[cfg(test)]
mod tests;
