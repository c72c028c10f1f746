//! Stage C1: parses the player's input. One header, one body, optional flags; or a control instruction.
//!
//! It takes English and Chinese, ASCII and full-width brackets. It knows nothing of the cartridge: `refs` resolves references.

mod parts;

use serde::{Deserialize, Serialize};

use crate::md::{self, clip};
use parts::{BRACKETS, body, control, domain, flags, header, voice, wrapped};

/// The longest body that is read, in characters.
const LONGEST: usize = 2000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Header {
    Act,
    Look,
    Ask,
    Fight,
    Cast,
    Manage,
    Ooc,
}

/// Each header, its name, and the other words for it.
const HEADERS: [(Header, &str, &[&str]); 7] = [
    (Header::Act, "ACT", &["action", "行动"]),
    (Header::Look, "LOOK", &["observe", "观察"]),
    (Header::Ask, "ASK", &["talk", "对话"]),
    (Header::Fight, "FIGHT", &["战斗"]),
    (Header::Cast, "CAST", &["施法"]),
    (Header::Manage, "MANAGE", &["管理"]),
    (Header::Ooc, "OOC", &[]),
];

impl Header {
    pub const ALL: [Header; 7] =
        [Header::Act, Header::Look, Header::Ask, Header::Fight, Header::Cast, Header::Manage, Header::Ooc];

    pub fn name(self) -> &'static str {
        HEADERS.iter().find(|(header, ..)| *header == self).map_or("ACT", |(_, name, _)| name)
    }

    pub fn named(word: &str) -> Option<Header> {
        let word = word.trim().to_lowercase();
        let found = HEADERS
            .iter()
            .find(|(_, name, aliases)| name.to_lowercase() == word || aliases.iter().any(|alias| *alias == word));
        found.map(|(header, ..)| *header)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Intent {
    Act,
    Talk,
    Inv,
    Combat,
    Mgmt,
    Mind,
    Ooc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    Low,
    Mid,
    High,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    Scene,
    Social,
    Invest,
    Combat,
    Manage,
}

/// A move in the game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Move {
    pub header: Header,
    pub intent: Intent,
    pub body: String,
    /// At most 20 characters.
    pub action_summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent_note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    /// The inner voice that is listened to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cast: bool,
}

/// An instruction that stands outside the story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    Initialize,
    NewCampaign(String),
    SwitchCampaign(String),
    Continue,
    /// Opens a campaign again whose story has ended.
    PlayOn,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    Move(Move),
    Control(Control),
}

/// Why an input was not taken, and what would have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub sentence: String,
    pub example: String,
}

impl Refusal {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Refusal { sentence: sentence.into(), example: "[LOOK]{the gate}".into() }
    }

    /// The refusal of another part of the game; its example is what the sentence asks for.
    pub(crate) fn plain(sentence: &str) -> Self {
        let asks = sentence.contains("<initialize>");
        let example = if asks { "<initialize>" } else { "[LOOK]{around}" };
        Refusal { sentence: sentence.trim_end().to_owned(), example: example.to_owned() }
    }

    /// The error block: the cause, the headers, one example.
    pub fn render(&self) -> String {
        let headers: Vec<String> = Header::ALL.iter().map(|header| format!("[{}]", header.name())).collect();
        format!("[Error] {}\nHeaders: {}\nExample: {}\n", self.sentence, headers.join(" "), self.example)
    }
}

/// A header that a cartridge adds, and the one that it stands for.
pub type Extra = (String, Header);

pub fn parse(text: &str, extra: &[Extra]) -> Result<Input, Refusal> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Refusal::new("the input is empty"));
    }
    // Before anything is looked for in it: who sends a book must not keep the table waiting.
    if text.len() > 8 * LONGEST {
        return Err(Refusal::new(format!("the input is longer than {} bytes", 8 * LONGEST)));
    }
    md::plain("the input", text).map_err(|fault| Refusal::new(fault.message))?;
    if let Some(inner) = wrapped(text, &[('<', '>'), ('＜', '＞')])
        && !inner.0.trim().eq_ignore_ascii_case("ooc")
    {
        return control(inner.0, inner.1);
    }
    let (domain, rest) = domain(text)?;
    let (header, rest) = header(rest, extra)?;
    // A question may be about a flag or about another header.
    let bare_question = header == Header::Ooc && !rest.trim_start().starts_with(['{', '｛', '"', '“']);
    let (body, rest) = if bare_question { (rest, "") } else { body(rest, text, extra)? };
    let flags = flags(rest, extra)?;
    if body.trim().is_empty() {
        return Err(Refusal::new(format!("[{}] has an empty body", header.name())));
    }
    if body.chars().count() > LONGEST {
        return Err(Refusal::new(format!("the body is longer than {LONGEST} characters")));
    }
    let body = body.trim().to_owned();
    let flag = body.find(" --risk").or_else(|| body.find(" --intent")).filter(|_| header != Header::Ooc);
    if let Some(at) = flag {
        let (before, flag) = (clip(body[..at].trim(), 40), clip(body[at..].trim(), 30));
        let example = format!("[{}]{{{before}}} {flag}", header.name());
        return Err(Refusal { sentence: "flags stand after the braces".into(), example });
    }
    let voice = voice(header, &body)?;
    let intent = match header {
        _ if voice.is_some() => Intent::Mind,
        Header::Act | Header::Cast => Intent::Act,
        Header::Look => Intent::Inv,
        Header::Ask => Intent::Talk,
        Header::Fight => Intent::Combat,
        Header::Manage => Intent::Mgmt,
        Header::Ooc => Intent::Ooc,
    };
    let action_summary = clip(&body.split_whitespace().collect::<Vec<_>>().join(" "), 20);
    let (risk, intent_note, cast) = (flags.risk, flags.note, header == Header::Cast);
    Ok(Input::Move(Move { header, intent, body, action_summary, risk, intent_note, domain, voice, cast }))
}

/// Refuses an input whose first bytes already show that it is none; `false` while they do not show it either way.
pub fn begins(text: &str, extra: &[Extra]) -> Result<bool, Refusal> {
    let text = text.trim_start();
    let named = |rest: &str| rest.chars().any(|c| !c.is_alphanumeric() && c != '_');
    let rest = match text.strip_prefix(['@', '＠']) {
        Some(word) if !named(word) => return Ok(false),
        _ => domain(text)?.1,
    };
    let open = rest.chars().next().filter(|c| matches!(c, '[' | '【' | '<' | '＜'));
    match (rest.is_empty(), open) {
        (true, _) => Ok(false),
        (false, Some('<' | '＜')) => match wrapped(rest, &[('<', '>'), ('＜', '＞')]) {
            Some((inner, _)) if inner.trim().eq_ignore_ascii_case("ooc") => Ok(true),
            Some((inner, _)) => control(inner, "").map(|_| true),
            None => Ok(false),
        },
        (false, Some(_)) if wrapped(rest, &BRACKETS).is_none() => Ok(false),
        (false, _) => header(rest, extra).map(|_| true),
    }
}

#[cfg(test)]
mod tests;
