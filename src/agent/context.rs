//! Builds the request to the model: the contract, active memory, earlier turns, and the turn so far.
//!
//! Pure and deterministic. The request does not exceed the window as far as lengths tell: the turn counts its tokens, and asks
//! for a smaller one if they are too many. Content is dropped in this order: old conversation, old rounds, long results,
//! memory. The contract is never cut.

use serde_json::{Value, json};

use super::budget::{Spent, SpentCounter};
use super::step;
use super::transcript::{TranscriptRecord, TurnSource};
use crate::model::{MESSAGE_TOKENS, Message, ModelRequest, tokens};
use acheron_base::delimited::{delimited, harmless};
use acheron_base::{Error, Result};

/// A reserve in tokens: joined texts may cost more than separate ones, and a note may have to be added.
const RESERVE_TOKENS: u64 = 64;

/// The most of an answer and of a result that is shown of a round before the newest, and the least of a result.
const OLD_ANSWER: u64 = 400;
const OLD_RESULT: u64 = 2000;
const LEAST_RESULT: u64 = 64;

/// The content of a request.
#[derive(Clone, Debug, Default)]
pub struct ContextParts<'a> {
    /// The runtime contract, rendered for this agent.
    pub core: &'a str,
    /// Names and texts of active memory, most important first.
    pub memory: &'a [(String, String)],
    /// Inputs and replies of earlier turns, oldest first.
    pub history: &'a [(String, String)],
    pub turn: &'a [TranscriptRecord],
    /// The model's window in tokens, and the part of it that an answer may take.
    pub window: u64,
    pub answer: u64,
}

/// Builds the request; `cache` belongs to the turn.
pub fn assemble(parts: &ContextParts, cache: &mut RoundCache) -> Result<ModelRequest> {
    let answer = parts.answer.min(parts.window / 4).max(1);
    let limit = parts.window.saturating_sub(answer);
    let core = tokens(parts.core) + MESSAGE_TOKENS;
    let Some(mut left) = limit.checked_sub(core + RESERVE_TOKENS).filter(|left| *left >= 256) else {
        return Err(Error::invalid(format!(
            "a window of {} tokens is too small for the runtime contract ({core} tokens), an answer and a turn",
            parts.window
        )));
    };
    let memory = remember(parts.memory, left / 4);
    left -= tokens(&memory);

    let input = cut(&input(parts.turn), left / 3);
    left -= tokens(&input) + MESSAGE_TOKENS;
    let (rounds, dropped) = rounds(parts.turn, cache, &mut left);
    let input = match dropped {
        0 => input,
        _ => format!("{input}\n\n({dropped} earlier rounds of this turn are left out)"),
    };

    let mut messages = history(parts.history, left);
    messages.push(Message::user(input));
    messages.extend(rounds);
    Ok(ModelRequest {
        system: format!("{}{memory}", parts.core),
        messages,
        max_tokens: answer.min(u64::from(u32::MAX)) as u32,
    })
}

/// The section of active memory, within a number of tokens.
fn remember(items: &[(String, String)], limit: u64) -> String {
    let mut section = String::new();
    for (name, text) in items {
        let head = if section.is_empty() { "\n\n## Active memory\n" } else { "" };
        let item = |text: &str| format!("{head}\n{}\n", delimited("memory", Some(("path", name)), text));
        let whole = item(text);
        if tokens(&section) + tokens(&whole) < limit {
            section.push_str(&whole);
        } else if section.is_empty() {
            // The text is cut, never its delimiters.
            let short = item(&cut(&harmless(text), limit.saturating_sub(tokens(&item("")) + RESERVE_TOKENS)));
            section = Some(short).filter(|short| tokens(short) < limit).unwrap_or_default();
        }
    }
    section
}

/// The input of the turn, as the model reads it.
fn input(turn: &[TranscriptRecord]) -> String {
    match turn.first() {
        Some(TranscriptRecord::Began { source: TurnSource::Chat, input, .. }) => input.clone(),
        Some(TranscriptRecord::Began { source: TurnSource::Wake(on), input, .. }) => {
            format!("(woken by {on})\n{input}")
        }
        Some(TranscriptRecord::Began { source: TurnSource::Task(from), input, .. }) => {
            format!("(a task from {from})\n{input}")
        }
        _ => String::new(),
    }
}

/// The rounds of a turn, kept from request to request: a long turn would otherwise be rendered anew at each of its steps.
#[derive(Default)]
pub struct RoundCache {
    /// How many records were looked at.
    seen: usize,
    counter: SpentCounter,
    rounds: Vec<Round>,
}

/// One round: where its answer stands, where it ends, and what the turn had used by then.
struct Round {
    said: usize,
    end: usize,
    spent: Spent,
    /// As it is shown while there is room, once it is not the newest; `Some(None)` if there is nothing to show.
    shown: Option<Option<ShownRound>>,
}

#[derive(Clone)]
struct ShownRound {
    answer: String,
    result: String,
    /// Tokens of the answer with what two messages cost, and of the result.
    cost: (u64, u64),
}

impl RoundCache {
    /// Looks at the records that are new. A round ends with its outcome, or with its answer if that was a fault.
    fn follow(&mut self, turn: &[TranscriptRecord]) {
        for (at, record) in turn.iter().enumerate().skip(self.seen) {
            self.counter.add(record);
            let spent = self.counter.spent;
            match record {
                TranscriptRecord::Said { .. } => self.rounds.push(Round { said: at, end: at, spent, shown: None }),
                TranscriptRecord::Outcome { .. } => {
                    if let Some(round) = self.rounds.last_mut().filter(|round| round.end == round.said) {
                        (round.end, round.spent) = (at, spent);
                    }
                }
                _ => (),
            }
        }
        self.seen = turn.len();
    }
}

impl Round {
    /// The round within a limit; `None` if there is nothing to show, or no room.
    fn show(&self, turn: &[TranscriptRecord], limit: u64, newest: bool) -> Option<ShownRound> {
        let TranscriptRecord::Said { said: answer, .. } = &turn[self.said] else { return None };
        let feedback = step::feedback(&turn[..=self.end], &self.spent)?;
        let answer = cut(&answer.text, if newest { limit / 3 } else { OLD_ANSWER.min(limit) });
        let first = tokens(&answer) + 2 * MESSAGE_TOKENS;
        let limit = limit.checked_sub(first).filter(|limit| *limit >= LEAST_RESULT)?;
        let result = shortened(feedback, if newest { limit } else { limit.min(OLD_RESULT) });
        let cost = (first, tokens(&result));
        Some(ShownRound { answer, result, cost })
    }
}

/// The newest rounds of the turn that fit, and the number of those that do not.
fn rounds(turn: &[TranscriptRecord], cache: &mut RoundCache, left: &mut u64) -> (Vec<Message>, usize) {
    cache.follow(turn);
    let count = cache.rounds.len();
    let mut kept: Vec<[Message; 2]> = Vec::new();
    for (back, round) in cache.rounds.iter_mut().rev().enumerate() {
        let shown = if back == 0 {
            if step::feedback(&turn[..=round.end], &round.spent).is_none() {
                continue; // its call is still under way
            }
            round.show(turn, *left, true)
        } else {
            let limit = *left / 2;
            let whole = round.shown.take().unwrap_or_else(|| round.show(turn, u64::MAX, false));
            let Some(known) = round.shown.insert(whole) else { continue };
            let (first, result) = known.cost;
            match limit >= OLD_ANSWER && limit >= first + result.max(LEAST_RESULT) {
                true => Some(known.clone()),
                false => round.show(turn, limit, false),
            }
        };
        let Some(ShownRound { answer, result, cost }) = shown else { break };
        *left -= cost.0 + cost.1;
        kept.push([Message::assistant(answer), Message::user(result)]);
    }
    let dropped = count - kept.len();
    (kept.into_iter().rev().flatten().collect(), dropped)
}

/// A result within a number of tokens: its content is cut first. It stays one JSON object, so that nothing in it can
/// stand beside it.
fn shortened(mut feedback: Value, limit: u64) -> String {
    let whole = one_object(&feedback);
    if tokens(&whole) <= limit {
        return whole;
    }
    if let Some(result) = feedback.pointer_mut("/tool_result/result")
        && let Some(content) = result["content"].as_str()
    {
        // Escapes may double the length of a text.
        let short = cut(content, limit.saturating_sub(200) / 2);
        result["content"] = short.into();
        result["shortened"] = "by the runtime, to fit the window; read a part with max_bytes".into();
        let short = one_object(&feedback);
        if tokens(&short) <= limit {
            return short;
        }
    }
    // Halved until it fits: how much longer the escapes make it depends on what is cut.
    let mut room = limit;
    loop {
        let short = one_object(&in_part(&feedback, room));
        if tokens(&short) <= limit || room == 0 {
            return cut(&short, limit);
        }
        room /= 2;
    }
}

/// The object with what it holds as the beginning and the end of a text.
fn in_part(feedback: &Value, room: u64) -> Value {
    let part = |held: &Value| cut(&held.to_string(), room);
    let result = &feedback["tool_result"];
    if !result.is_object() {
        return json!({ "shortened": part(feedback) });
    }
    let mut shown = json!({ "shortened": "by the runtime, to fit the window; ask for less" });
    for key in ["id", "name", "notice"] {
        if let Some(held) = result.get(key) {
            // An id is the model's own and may be as long as it likes.
            shown[key] = cut(held.as_str().unwrap_or_default(), LEAST_RESULT / 4).into();
        }
    }
    for key in ["result", "error"] {
        if let Some(held) = result.get(key) {
            shown[key] = part(held).into();
        }
    }
    json!({ "tool_result": shown })
}

/// As JSON without the marks by which servers of models tell speakers apart (`<|im_end|>`).
fn one_object(feedback: &Value) -> String {
    feedback.to_string().replace("<|", "\\u003c|")
}

/// Earlier turns that fit, oldest first. A reply is shown as the call that made it.
fn history(turns: &[(String, String)], limit: u64) -> Vec<Message> {
    let mut left = limit;
    let mut kept = Vec::new();
    for (input, reply) in turns.iter().rev() {
        let reply = json!({"tool_calls": [{"name": "file_write",
            "arguments": {"path": "agents/self/chat/control/reply", "content": reply}}]});
        let (input, reply) = (cut(input, 1000), cut(&reply.to_string(), 1000));
        let Some(rest) = left.checked_sub(tokens(&input) + tokens(&reply) + 2 * MESSAGE_TOKENS) else { break };
        left = rest;
        kept.push([Message::user(input), Message::assistant(reply)]);
    }
    kept.into_iter().rev().flatten().collect()
}

/// A text within a number of tokens: its beginning and its end, with a note about the omitted part.
fn cut(text: &str, limit: u64) -> String {
    if tokens(text) <= limit {
        return text.to_owned();
    }
    let bytes = (limit as usize).saturating_mul(3);
    let Some(keep) = bytes.checked_sub(48) else { return String::new() };
    let head = floor(text, keep * 2 / 3);
    let tail = ceil(text, text.len() - keep / 3);
    format!("{}\n… {} bytes left out …\n{}", &text[..head], tail - head, &text[tail..])
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests;
