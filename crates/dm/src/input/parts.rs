//! The parts of an input: the instruction in angle brackets; the domain, header, body, flags and inner voice of a move. Each takes its
//! own part from the front of the text. Only `input` uses it.

use super::{Control, Domain, Extra, Header, Input, Refusal, Risk};
use crate::md::clip;
use acheron_base::nearest::nearest_within;

const DOMAINS: [(Domain, &str, &str); 5] = [
    (Domain::Scene, "scene", "sc"),
    (Domain::Social, "social", "so"),
    (Domain::Invest, "invest", "iv"),
    (Domain::Combat, "combat", "cb"),
    (Domain::Manage, "manage", "ma"),
];

const VOICES: [(&str, &str); 7] = [
    ("scholar", "学者"),
    ("trauma", "创伤"),
    ("doubt", "怀疑"),
    ("weariness", "疲惫"),
    ("alertness", "警觉"),
    ("emotion", "情感"),
    ("holy_spirit", "圣灵"),
];

/// The text between a pair of brackets at the start, and what follows.
pub(super) fn wrapped<'a>(text: &'a str, pairs: &[(char, char)]) -> Option<(&'a str, &'a str)> {
    let first = text.chars().next()?;
    let (_, close) = pairs.iter().find(|(open, _)| *open == first)?;
    let rest = &text[first.len_utf8()..];
    let end = rest.find(*close)?;
    Some((&rest[..end], &rest[end + close.len_utf8()..]))
}

/// The instructions, as a refusal names them.
const CONTROLS: &str = "<continue>, <initialize>, <play on>, <new campaign NAME> and <switch campaign NAME>";

pub(super) fn control(inner: &str, after: &str) -> Result<Input, Refusal> {
    let refuse = |sentence: String| Refusal { sentence, example: "<continue>".into() };
    if !after.trim().is_empty() {
        return Err(refuse("a control instruction stands alone".into()));
    }
    let words = inner.split_whitespace().collect::<Vec<_>>().join(" ");
    let lower = words.to_lowercase();
    let control = match lower.as_str() {
        "initialize" | "initialise" | "初始化" => Control::Initialize,
        "continue" | "hot start" | "继续" | "热启动" => Control::Continue,
        "play on" => Control::PlayOn,
        _ => {
            let (verbs, rest): (&[&str], fn(String) -> Control) = if lower.starts_with("new") || lower.starts_with('新')
            {
                (&["new campaign ", "新战役 "], Control::NewCampaign)
            } else {
                (&["switch campaign ", "switch ", "切换战役 "], Control::SwitchCampaign)
            };
            // Lower case may change the length of a word, so the name is taken from the words as typed.
            let named = verbs.iter().find_map(|verb| {
                let head: String = words.chars().take(verb.chars().count()).collect();
                (head.to_lowercase() == *verb).then(|| words[head.len()..].trim().to_owned())
            });
            // `<switch campaign>` without a name is no switch to a campaign of that name.
            match named.filter(|name| !name.is_empty() && name.to_lowercase() != "campaign") {
                Some(name) => rest(name.strip_prefix("campaigns/").unwrap_or(&name).to_owned()),
                None => {
                    let sentence = format!("<{}> is not a control instruction; there are {CONTROLS}", clip(&words, 40));
                    return Err(refuse(sentence));
                }
            }
        }
    };
    Ok(Input::Control(control))
}

pub(super) fn domain(text: &str) -> Result<(Option<Domain>, &str), Refusal> {
    let Some(rest) = text.strip_prefix(['@', '＠']) else { return Ok((None, text)) };
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let word = rest[..end].to_lowercase();
    match DOMAINS.iter().find(|(_, long, short)| *long == word || *short == word) {
        Some((domain, ..)) => Ok((Some(*domain), rest[end..].trim_start())),
        None => {
            Err(Refusal::new(format!("the input must begin with a header; \"@{word}\" is neither that nor a domain")))
        }
    }
}

pub(super) const BRACKETS: [(char, char); 2] = [('[', ']'), ('【', '】')];

pub(super) fn header<'a>(text: &'a str, extra: &[Extra]) -> Result<(Header, &'a str), Refusal> {
    if let Some((inner, rest)) = wrapped(text, &[('<', '>'), ('＜', '＞')])
        && inner.trim().eq_ignore_ascii_case("ooc")
    {
        return Ok((Header::Ooc, rest));
    }
    let Some((word, rest)) = wrapped(text, &BRACKETS) else {
        let mut refusal = Refusal::new("the input must begin with a header at the start of the line");
        let line = text.lines().next().unwrap_or(text);
        if let Some((guess, body)) = bare(line).or_else(|| Some((guess(line)?, line))) {
            refusal.sentence.push_str(&format!("; perhaps [{}]", guess.name()));
            refusal.example = format!("[{}]{{{}}}", guess.name(), clip(body, 60));
        }
        return Err(refusal);
    };
    if let Some(header) = known(word, extra) {
        return Ok((header, rest));
    }
    let mut sentence = format!("unknown header [{}]", clip(word, 20));
    if let Some(name) = nearest_within(word, Header::ALL.iter().map(|header| header.name()), 2) {
        sentence.push_str(&format!("; the nearest is [{name}]"));
    }
    Err(Refusal::new(sentence))
}

fn known(word: &str, extra: &[Extra]) -> Option<Header> {
    let own = extra.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.trim())).map(|(_, header)| *header);
    Header::named(word).or(own)
}

/// A header that was typed without its brackets, and what follows it: `ACT: go home`. A verb that is also a header, such as `look`, is
/// part of the sentence unless it stands in capitals or before a colon.
fn bare(line: &str) -> Option<(Header, &str)> {
    let end = line.find(|c: char| !c.is_alphanumeric())?;
    let (word, rest) = line.split_at(end);
    let header = Header::named(word)?;
    let marked = word.chars().all(char::is_uppercase) || rest.trim_start().starts_with([':', '：', '-']);
    let body = rest.trim_start_matches(|c: char| c.is_whitespace() || [':', '：', '-'].contains(&c));
    ((marked || header == Header::Act) && !body.is_empty()).then_some((header, body))
}

/// The header that the first verb of a bare sentence suggests. A hint only: nothing is done with it.
fn guess(text: &str) -> Option<Header> {
    let verb = text.split_whitespace().next()?.to_lowercase();
    Some(match verb.as_str() {
        "look" | "examine" | "inspect" | "search" | "read" | "watch" => Header::Look,
        "ask" | "talk" | "say" | "tell" | "speak" => Header::Ask,
        "fight" | "attack" | "hit" | "strike" => Header::Fight,
        "cast" | "pray" => Header::Cast,
        "rest" | "sleep" | "eat" | "status" | "inventory" => Header::Manage,
        _ => Header::Act,
    })
}

/// The body and what follows it. `whole` is only there to count columns.
pub(super) fn body<'a>(rest: &'a str, whole: &str, extra: &[Extra]) -> Result<(&'a str, &'a str), Refusal> {
    let column = |at: &str| whole.chars().count() - at.chars().count() + 1;
    let start = rest.trim_start();
    let unclosed =
        |what: char| Refusal::new(format!("the body that `{what}` opens at column {} is not closed", column(start)));
    match start.chars().next() {
        Some(open @ ('{' | '｛')) => {
            let mut depth = 0usize;
            for (at, c) in start.char_indices() {
                match c {
                    '{' | '｛' => depth += 1,
                    '}' | '｝' => depth -= 1,
                    _ => (),
                }
                if depth == 0 {
                    return Ok((&start[open.len_utf8()..at], &start[at + c.len_utf8()..]));
                }
            }
            Err(unclosed(open))
        }
        Some(open @ ('"' | '“')) => {
            let inner = &start[open.len_utf8()..];
            let end = inner.find(['"', '”']).ok_or_else(|| unclosed(open))?;
            let close = inner[end..].chars().next().map_or(1, char::len_utf8);
            Ok((&inner[..end], &inner[end + close..]))
        }
        _ => {
            let end = start.find(" --").unwrap_or(start.len());
            several(&start[..end], extra)?;
            Ok((&start[..end], &start[end..]))
        }
    }
}

/// Refuses a second header: two moves in one input are never merged.
fn several(text: &str, extra: &[Extra]) -> Result<(), Refusal> {
    let mut rest = text;
    while let Some(at) = rest.find(['[', '【']) {
        rest = &rest[at..];
        if let Some((word, _)) = wrapped(rest, &BRACKETS)
            && known(word, extra).is_some()
        {
            return Err(Refusal::new("one tag per input: send the second header as an input of its own"));
        }
        rest = &rest[rest.chars().next().map_or(1, char::len_utf8)..];
    }
    Ok(())
}

#[derive(Default)]
pub(super) struct Flags {
    pub risk: Option<Risk>,
    pub note: Option<String>,
}

pub(super) fn flags(text: &str, extra: &[Extra]) -> Result<Flags, Refusal> {
    let mut flags = Flags::default();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        several(rest, extra)?;
        let Some(flag) = rest.strip_prefix("--") else {
            return Err(Refusal::new(format!("`{}` follows the body; only --risk and --intent may", clip(rest, 30))));
        };
        let end = flag.find(char::is_whitespace).unwrap_or(flag.len());
        let (name, value) = (&flag[..end], flag[end..].trim_start());
        let (value, after) = match value.chars().next() {
            Some(open @ ('"' | '“')) => {
                let inner = &value[open.len_utf8()..];
                let end = inner
                    .find(['"', '”'])
                    .ok_or_else(|| Refusal::new(format!("the text of --{name} is not closed")))?;
                let close = inner[end..].chars().next().map_or(1, char::len_utf8);
                (&inner[..end], &inner[end + close..])
            }
            _ => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
        };
        match name {
            "risk" => {
                flags.risk = Some(match value.to_lowercase().as_str() {
                    "low" => Risk::Low,
                    "mid" => Risk::Mid,
                    "high" => Risk::High,
                    _ => return Err(Refusal::new("risk must be low|mid|high")),
                });
            }
            "intent" if !value.trim().is_empty() => flags.note = Some(clip(value.trim(), 200)),
            "intent" => return Err(Refusal::new("--intent needs a text in quotes")),
            other => {
                return Err(Refusal::new(format!("unknown flag --{}; there are --risk and --intent", clip(other, 20))));
            }
        }
        rest = after.trim_start();
    }
    Ok(flags)
}

/// The inner voice of `{inner: X}`.
pub(super) fn voice(header: Header, body: &str) -> Result<Option<String>, Refusal> {
    let Some((key, name)) = body.split_once([':', '：']) else { return Ok(None) };
    if header != Header::Act || !matches!(key.trim().to_lowercase().as_str(), "inner" | "内心") {
        return Ok(None);
    }
    let name = name.trim().to_lowercase();
    match VOICES.iter().find(|(english, chinese)| *english == name || *chinese == name) {
        Some((english, _)) => Ok(Some((*english).to_owned())),
        None => {
            let known: Vec<&str> = VOICES.iter().map(|(english, _)| *english).collect();
            Err(Refusal::new(format!("no inner voice `{}`; there are {}", clip(&name, 20), known.join(", "))))
        }
    }
}
