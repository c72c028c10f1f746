//! Builds the request to the model: the contract, active memory, earlier turns, and the turn so far.
//!
//! Pure and deterministic. The request does not exceed the window as far as lengths tell: the turn counts its tokens, and asks
//! for a smaller one if they are too many. Content is dropped in this order: old conversation, old rounds, long results,
//! memory. The contract is never cut. In the native protocol a round is a message with calls and one with their results.

use serde_json::{Value, json};

use super::budget::{Spent, SpentCounter};
use super::mail::{self, TurnMail};
use super::native;
use super::step;
use super::transcript::{TranscriptRecord, TurnSource};
use crate::model::{MESSAGE_TOKENS, Message, ModelAnswer, ModelRequest, NativeCall, NativeResult, tokens};
use acheron_base::delimited::{delimited, harmless};
use acheron_base::{Error, Result};

/// A reserve in tokens: joined texts may cost more than separate ones, and a note may have to be added.
const RESERVE_TOKENS: u64 = 64;

/// The most of an answer and of a result that is shown of a round in its short form, and the least of a result.
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

    // Mail is cut by itself, so that its delimiters are not.
    let input = cut(&input(parts.turn), left / 3) + &mail_at_the_beginning(parts.turn, left / 3);
    left -= tokens(&input) + MESSAGE_TOKENS;
    cache.follow(parts.turn);
    let shown = cache.shown(parts, left);
    let input = match shown.dropped {
        0 => input,
        dropped => format!("{input}\n\n({dropped} earlier rounds of this turn are left out)"),
    };
    let mut messages = shown.history.clone();
    messages.push(Message::user(input));
    for round in &shown.rounds {
        messages.extend([round.answer.clone(), round.result.clone()]);
    }
    Ok(ModelRequest {
        system: format!("{}{memory}", parts.core),
        messages,
        max_tokens: answer.min(u64::from(u32::MAX)) as u32,
        ..ModelRequest::default()
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

/// Mail that came before the first answer; a note about it if there is no room.
fn mail_at_the_beginning(turn: &[TranscriptRecord], limit: u64) -> String {
    match mail::at_the_beginning(turn) {
        text if tokens(&text) <= limit => text,
        _ => "\n\n(there is mail for you: agents/self/mail/inbox)".to_owned(),
    }
}

/// The rounds of a turn, kept from request to request: a long turn would otherwise be rendered anew at each of its steps.
#[derive(Default)]
pub struct RoundCache {
    /// How many records were looked at.
    seen: usize,
    counter: SpentCounter,
    rounds: Vec<Round>,
    shown: Option<ShownTurn>,
}

/// One round: where its answer stands, where it ends, and what the turn had used by then.
struct Round {
    said: usize,
    end: usize,
    spent: Spent,
    /// The records of mail that came after it.
    mail: Vec<usize>,
    /// As it is shown while there is room, once it is short; `Some(None)` if there is nothing to show.
    short: Option<Option<ShownRound>>,
}

#[derive(Clone)]
struct ShownRound {
    answer: Message,
    result: Message,
    /// Tokens of the answer with what two messages cost, and of the result.
    cost: (u64, u64),
}

/// What a request shows of earlier turns and of this one. It only grows from round to round, so that a provider finds the
/// beginning of a request in its cache; when there is no room for a new round, all of it is chosen anew, once.
#[derive(Default)]
struct ShownTurn {
    history: Vec<Message>,
    rounds: Vec<ShownRound>,
    /// The rounds that are not shown, and those that were looked at.
    dropped: usize,
    seen: usize,
    /// Tokens of all that is shown.
    used: u64,
}

impl RoundCache {
    /// Looks at the records that are new. A round ends with its last outcome, or with its answer if that was a fault.
    fn follow(&mut self, turn: &[TranscriptRecord]) {
        for (at, record) in turn.iter().enumerate().skip(self.seen) {
            self.counter.add(record);
            let spent = self.counter.spent;
            match record {
                TranscriptRecord::Said { .. } => {
                    self.rounds.push(Round { said: at, end: at, spent, mail: Vec::new(), short: None });
                }
                TranscriptRecord::Outcome { .. } => {
                    if let Some(round) = self.rounds.last_mut() {
                        (round.end, round.spent) = (at, spent);
                    }
                }
                TranscriptRecord::Mail { .. } => {
                    self.rounds.last_mut().into_iter().for_each(|round| round.mail.push(at));
                }
                _ => (),
            }
        }
        self.seen = turn.len();
    }

    /// What is shown within `room` tokens.
    fn shown(&mut self, parts: &ContextParts, room: u64) -> &ShownTurn {
        let mut shown = self.shown.take().unwrap_or_else(|| ShownTurn::begin(parts, room / 2));
        for at in shown.seen..self.rounds.len() {
            let round = &self.rounds[at];
            if round.is_under_way(parts.turn) {
                break;
            }
            let whole = round.show(parts.turn, u64::MAX, true);
            shown.seen = at + 1;
            match whole.filter(|whole| shown.used.saturating_add(whole.cost.0 + whole.cost.1) <= room) {
                Some(whole) => shown.push(whole),
                None => shown = self.chosen(parts, at, room),
            }
        }
        // The room may have become smaller: memory has grown, or its tokens were counted.
        if shown.used > room {
            shown = match shown.seen {
                0 => ShownTurn::begin(parts, room),
                seen => self.chosen(parts, seen - 1, room),
            };
        }
        self.shown.insert(shown)
    }

    /// What is shown when there is no room for the whole: the newest round, then earlier ones as far as they go, short, then
    /// earlier turns. A quarter of the room stays free for the rounds to come.
    fn chosen(&mut self, parts: &ContextParts, newest: usize, room: u64) -> ShownTurn {
        let mut left = room * 3 / 4;
        let mut kept = Vec::new();
        let share = if newest == 0 { left } else { room * 2 / 3 };
        let mut next = self.rounds[newest].show(parts.turn, share, true);
        let mut earlier = self.rounds[..newest].iter_mut().rev();
        while let Some(shown) = next.take() {
            left = left.saturating_sub(shown.cost.0 + shown.cost.1);
            kept.push(shown);
            next = earlier.next().and_then(|round| round.short(parts.turn, left / 2));
        }
        kept.reverse();
        let mut shown = ShownTurn::begin(parts, left);
        (shown.dropped, shown.seen) = (newest + 1 - kept.len(), newest + 1);
        kept.into_iter().for_each(|round| shown.push(round));
        shown
    }
}

impl ShownTurn {
    fn begin(parts: &ContextParts, limit: u64) -> ShownTurn {
        let history = history(parts.history, step::is_native(parts.turn), limit);
        let used = history.iter().map(|message| tokens(&message.text) + MESSAGE_TOKENS).sum();
        ShownTurn { history, used, ..ShownTurn::default() }
    }

    fn push(&mut self, round: ShownRound) {
        self.used += round.cost.0 + round.cost.1;
        self.rounds.push(round);
    }
}

impl Round {
    /// The round within a limit; `None` if there is nothing to show, or no room.
    fn show(&self, turn: &[TranscriptRecord], limit: u64, newest: bool) -> Option<ShownRound> {
        let TranscriptRecord::Said { said: answer, .. } = &turn[self.said] else { return None };
        if step::is_native(turn) {
            return self.show_native(turn, answer, limit, newest);
        }
        let feedback = step::feedback(&turn[..=self.end], &self.spent)?;
        let answer = cut(&answer.text, if newest { limit / 3 } else { OLD_ANSWER.min(limit) });
        let first = tokens(&answer) + 2 * MESSAGE_TOKENS;
        let limit = limit.checked_sub(first).filter(|limit| *limit >= LEAST_RESULT)?;
        let limit = if newest { limit } else { limit.min(OLD_RESULT) };
        let result = shortened_with_mail(feedback, &self.mails(turn), limit);
        let cost = (first, tokens(&result));
        Some(ShownRound { answer: Message::assistant(answer), result: Message::user(result), cost })
    }

    /// The same in the native protocol: a result for every call, whatever room there is, as providers ask for it.
    fn show_native(
        &self,
        turn: &[TranscriptRecord],
        said: &ModelAnswer,
        limit: u64,
        newest: bool,
    ) -> Option<ShownRound> {
        let feedback = native::feedback(&turn[..=self.end], &self.spent)?;
        let answer = answered(said, if newest { limit / 3 } else { OLD_ANSWER.min(limit) });
        let first = size(&answer);
        let count = feedback.len() as u64;
        let beside = (count + 1) * MESSAGE_TOKENS;
        let limit = limit.checked_sub(first + beside).filter(|limit| *limit >= LEAST_RESULT)?;
        let mut left = if newest { limit } else { limit.min(OLD_RESULT) };
        let mut results = Vec::new();
        for (at, told) in feedback.into_iter().enumerate() {
            let failed = told.pointer("/tool_result/error").is_some();
            let share = left / (count - at as u64);
            // Mail stands beside the last result, after all that the calls have done.
            let text = match at as u64 + 1 == count {
                true => shortened_with_mail(told, &self.mails(turn), share),
                false => shortened(told, share),
            };
            left = left.saturating_sub(tokens(&text));
            let id = said.calls.get(at).map(|call| call.id.clone()).unwrap_or_default();
            results.push(NativeResult { id, text, failed });
        }
        let result = match native::read(said) {
            Ok(_) => Message::results(results),
            // Of an answer that could not be used no call is shown, so that none lacks its result.
            Err(_) => Message::user(results.into_iter().map(|result| result.text).collect::<String>()),
        };
        let cost = (first, size(&result));
        Some(ShownRound { answer, result, cost })
    }

    /// The messages that came after it.
    fn mails<'t>(&self, turn: &'t [TranscriptRecord]) -> Vec<&'t TurnMail> {
        let mails = self.mail.iter().flat_map(|at| match &turn[*at] {
            TranscriptRecord::Mail { mails, .. } => mails.as_slice(),
            _ => &[],
        });
        mails.collect()
    }

    /// Whether a call of it has no outcome yet.
    fn is_under_way(&self, turn: &[TranscriptRecord]) -> bool {
        let turn_so_far = &turn[..=self.end];
        match step::is_native(turn) {
            true => native::feedback(turn_so_far, &self.spent).is_none(),
            false => step::feedback(turn_so_far, &self.spent).is_none(),
        }
    }

    /// The round in its short form within a limit.
    fn short(&mut self, turn: &[TranscriptRecord], limit: u64) -> Option<ShownRound> {
        let whole = self.short.take().unwrap_or_else(|| self.show(turn, u64::MAX, false));
        let (first, result) = self.short.insert(whole).as_ref()?.cost;
        match limit >= OLD_ANSWER && limit >= first + result.max(LEAST_RESULT) {
            true => self.short.clone().flatten(),
            false => self.show(turn, limit, false),
        }
    }
}

/// The tokens of a message, and what its parts cost beside them.
fn size(message: &Message) -> u64 {
    message.texts().iter().map(|text| tokens(text) + MESSAGE_TOKENS).sum()
}

/// An answer with calls: as it was if there is room for it, otherwise without reasoning and with its long arguments cut.
fn answered(said: &ModelAnswer, limit: u64) -> Message {
    if native::read(said).is_err() {
        let words = match said.text.trim() {
            "" => "(an answer that could not be used)",
            words => words,
        };
        return Message::assistant(cut(words, limit));
    }
    let whole = Message::calls(said.text.as_str(), said.calls.clone(), said.kept.clone());
    if size(&whole) <= limit {
        return whole;
    }
    let share = limit / (said.calls.len() as u64 + 1);
    let short = |call: &NativeCall| NativeCall { arguments: short_arguments(call, share), ..call.clone() };
    Message::calls(cut(&said.text, share), said.calls.iter().map(short).collect(), None)
}

/// The arguments of a call within a number of tokens: long texts in them are cut, and they stay an object.
fn short_arguments(call: &NativeCall, limit: u64) -> String {
    if tokens(&call.arguments) <= limit {
        return call.arguments.clone();
    }
    let mut object = call.object();
    let share = limit / (2 * object.len().max(1) as u64);
    for value in object.values_mut() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if tokens(&text) > share {
            *value = cut(&text, share).into();
        }
    }
    match Value::Object(object).to_string() {
        text if tokens(&text) <= limit => text,
        _ => "{}".to_owned(),
    }
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

/// A result with the mail that came after it, in one object. The mail is never left out for the result; its bodies are cut
/// if they need more than half of the room.
fn shortened_with_mail(mut feedback: Value, mails: &[&TurnMail], limit: u64) -> String {
    if mails.is_empty() {
        return shortened(feedback, limit);
    }
    let shown = [usize::MAX, 1000, 200, 0].into_iter().map(|bytes| mail::as_json(mails.iter().copied(), bytes));
    let fits = |shown: &Value| tokens(&one_object(shown)) <= limit / 2;
    let shown = shown.into_iter().find(fits).unwrap_or_else(|| json!("there is mail for you: agents/self/mail/inbox"));
    let room = limit.saturating_sub(tokens(&one_object(&json!({ "mail": shown }))));
    if tokens(&one_object(&feedback)) > room {
        feedback = serde_json::from_str(&shortened(feedback, room)).unwrap_or_else(|_| json!({ "shortened": "" }));
    }
    feedback["mail"] = shown;
    one_object(&feedback)
}

/// The object with what it holds as the beginning and the end of a text.
fn in_part(feedback: &Value, room: u64) -> Value {
    let part = |held: &Value| cut(&held.to_string(), room);
    let result = &feedback["tool_result"];
    if !result.is_object() {
        return json!({ "shortened": part(feedback) });
    }
    let mut shown = json!({ "shortened": "by the runtime, to fit the window; ask for less" });
    for key in ["id", "name", "notice", "form"] {
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

/// Earlier turns that fit, oldest first. A reply is shown as the call that made it; in the native protocol it is words.
fn history(turns: &[(String, String)], native: bool, limit: u64) -> Vec<Message> {
    let mut left = limit;
    let mut kept = Vec::new();
    for (input, reply) in turns.iter().rev() {
        let call = || {
            json!({"tool_calls": [{"name": "file_write",
                "arguments": {"path": "agents/self/chat/control/reply", "content": reply}}]})
        };
        let reply = if native { reply.clone() } else { call().to_string() };
        let (input, reply) = (cut(input, 1000), cut(&reply, 1000));
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
