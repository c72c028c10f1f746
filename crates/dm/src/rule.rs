//! The two small languages of a cartridge: conditions (`Rumor>=2 & @brass_key`) and effects (`Heat+1 (seen); take @lamp`).
//!
//! Both are parsed when the cartridge is loaded, so that a misspelt rule is a fault with a line and never a surprise in play.
//! A narrator speaks the language of effects too, and gets the same refusals.

use std::fmt;

use acheron_base::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Less,
    AtMost,
    Equal,
    AtLeast,
    More,
}

/// One thing that must hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    Level(String, Order, i64),
    /// The item is carried.
    Has(String),
    Quest(String, String),
    ClockFull(String),
    Clue(String),
    At(String),
    /// The place was visited.
    Seen(String),
    /// The thing is used up, or the person has left for good.
    Gone(String),
    Night,
    Not(Box<Term>),
}

/// Everything that must hold; nothing at all holds always.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition(pub Vec<Term>);

impl Condition {
    pub fn parse(text: &str) -> Result<Self> {
        let terms = text.split('&').map(str::trim).filter(|term| !matches!(*term, "" | "-"));
        Ok(Condition(terms.map(term).collect::<Result<_>>()?))
    }

    /// The terms that can be read, and what is wrong with each of the others.
    pub fn parse_each(text: &str) -> (Self, Vec<String>) {
        let terms = text.split('&').map(str::trim).filter(|term| !matches!(*term, "" | "-"));
        let (read, wrong): (Vec<_>, Vec<_>) = terms.map(term).partition(Result::is_ok);
        (Condition(read.into_iter().flatten().collect()), messages(wrong))
    }

    /// Whether it denies what the other asks for, so that both never hold at once.
    pub fn excludes(&self, other: &Condition) -> bool {
        let denies = |one: &Condition, other: &Condition| {
            one.0.iter().any(|term| matches!(term, Term::Not(inner) if other.0.contains(inner)))
        };
        // A quest has one status at a time.
        let differs = |term: &Term| match term {
            Term::Quest(quest, status) => {
                other.0.iter().any(|term| matches!(term, Term::Quest(own, as_it) if own == quest && as_it != status))
            }
            _ => false,
        };
        denies(self, other) || denies(other, self) || self.0.iter().any(differs)
    }

    /// Whether it asks for this thing, or for its absence.
    pub fn speaks_of(&self, item: &str) -> bool {
        self.0.iter().any(|term| match term {
            Term::Has(own) => own == item,
            Term::Not(inner) => matches!(inner.as_ref(), Term::Has(own) if own == item),
            _ => false,
        })
    }
}

fn term(text: &str) -> Result<Term> {
    if let Some(rest) = text.strip_prefix('!') {
        // One is enough: a thousand of them would be a thousand terms in one another.
        if rest.trim_start().starts_with('!') {
            return Err(Error::invalid(format!(
                "`{}` is denied twice: write one ! or none",
                crate::md::clip(text, 40)
            )));
        }
        return Ok(Term::Not(Box::new(term(rest.trim())?)));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [handle] if handle.starts_with('@') => Ok(Term::Has(self::handle(handle)?)),
        ["quest", quest, status] => Ok(Term::Quest(handle(quest)?, (*status).to_owned())),
        ["clock", clock, "full"] => Ok(Term::ClockFull((*clock).to_owned())),
        ["clue", clue] => Ok(Term::Clue(handle(clue)?)),
        ["at", place] => Ok(Term::At(handle(place)?)),
        ["seen", place] => Ok(Term::Seen(handle(place)?)),
        ["gone", object] => Ok(Term::Gone(handle(object)?)),
        ["night"] => Ok(Term::Night),
        _ => level(text),
    }
}

fn level(text: &str) -> Result<Term> {
    let orders =
        [(">=", Order::AtLeast), ("<=", Order::AtMost), (">", Order::More), ("<", Order::Less), ("=", Order::Equal)];
    for (sign, order) in orders {
        if let Some((name, value)) = text.split_once(sign) {
            let value =
                value.trim().parse().map_err(|_| Error::invalid(format!("`{text}` compares with no number")))?;
            return Ok(Term::Level(word(name)?, order, value));
        }
    }
    Err(Error::invalid(format!("`{text}` is not a condition")))
}

/// A handle, with its `@`: lower-case letters, digits and underscores (other scripts' letters too).
pub fn handle(text: &str) -> Result<String> {
    let lawful = text.strip_prefix('@').is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c == '_' || c.is_numeric() || (c.is_alphabetic() && !c.is_uppercase()))
    });
    if lawful { Ok(text.to_owned()) } else { Err(Error::invalid(format!("`{text}` is not a handle like @old_gate"))) }
}

fn word(text: &str) -> Result<String> {
    let text = text.trim();
    if !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_') {
        Ok(text.to_owned())
    } else {
        Err(Error::invalid(format!("`{text}` is not a name")))
    }
}

/// One change of the world.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Level {
        name: String,
        by: i64,
        reason: String,
    },
    Tick {
        clock: String,
        by: i64,
        reason: String,
    },
    Take(String),
    Lose(String),
    Clue(String),
    Reveal(String),
    Minutes(u64),
    Hp(i64),
    Status(String, String),
    Quest(String, String),
    Move(String),
    /// A thing or a person is in another place.
    Put(String, String),
    Mood(String, String),
    /// A part of the player's holding grows or shrinks.
    Hold(String, i64),
}

/// The moods of a person.
pub const MOODS: [&str; 4] = ["friendly", "neutral", "wary", "hostile"];

/// The parts of a holding.
pub const HOLDING: [&str; 5] = ["lands", "followers", "soldiers", "food", "loyalty"];

/// Effects in a row, separated by semicolons.
pub fn effects(text: &str) -> Result<Vec<Effect>> {
    text.split(';').map(str::trim).filter(|one| !matches!(*one, "" | "-")).map(effect).collect()
}

/// The effects that can be read, and what is wrong with each of the others.
pub fn effects_each(text: &str) -> (Vec<Effect>, Vec<String>) {
    let all = text.split(';').map(str::trim).filter(|one| !matches!(*one, "" | "-")).map(effect);
    let (read, wrong): (Vec<_>, Vec<_>) = all.partition(Result::is_ok);
    (read.into_iter().flatten().collect(), messages(wrong))
}

fn messages<T>(faults: Vec<Result<T>>) -> Vec<String> {
    faults.into_iter().filter_map(Result::err).map(|fault| fault.message).collect()
}

fn effect(text: &str) -> Result<Effect> {
    let (head, reason) = match text.split_once('(') {
        Some((head, rest)) => (head.trim(), rest.trim_end().trim_end_matches(')').trim().to_owned()),
        None => (text, String::new()),
    };
    let words: Vec<&str> = head.split_whitespace().collect();
    match words.as_slice() {
        ["take", item] => Ok(Effect::Take(handle(item)?)),
        ["lose", item] => Ok(Effect::Lose(handle(item)?)),
        ["clue", clue] => Ok(Effect::Clue(handle(clue)?)),
        ["reveal", place] => Ok(Effect::Reveal(handle(place)?)),
        ["move", place] => Ok(Effect::Move(handle(place)?)),
        ["time", minutes] => {
            let minutes = minutes.parse().ok().filter(|minutes| *minutes <= 100_000);
            Ok(Effect::Minutes(minutes.ok_or_else(|| Error::invalid(format!("`{text}` gives no minutes")))?))
        }
        ["status", object, status] => Ok(Effect::Status(handle(object)?, (*status).to_owned())),
        ["quest", quest, status] => Ok(Effect::Quest(handle(quest)?, (*status).to_owned())),
        ["put", what, place] => Ok(Effect::Put(handle(what)?, handle(place)?)),
        ["mood", who, mood] if MOODS.contains(mood) => Ok(Effect::Mood(handle(who)?, (*mood).to_owned())),
        ["mood", _, mood] => Err(Error::invalid(format!("`{mood}` is not a mood: {}", MOODS.join(", ")))),
        ["hold", change] => {
            let (part, by) = step(change)?;
            match HOLDING.contains(&part.as_str()) {
                true => Ok(Effect::Hold(part, by)),
                false => Err(Error::invalid(format!("`{part}` is not a part of a holding: {}", HOLDING.join(", ")))),
            }
        }
        ["clock", change] => {
            let (clock, by) = step(change)?;
            Ok(Effect::Tick { clock, by, reason })
        }
        [change] if change.starts_with("hp") => Ok(Effect::Hp(step(change)?.1)),
        [change] => {
            let (name, by) = step(change)?;
            if reason.is_empty() {
                return Err(Error::invalid(format!("the change `{text}` of an indicator needs a reason in brackets")));
            }
            Ok(Effect::Level { name, by, reason })
        }
        _ => Err(Error::invalid(format!("`{text}` is not an effect"))),
    }
}

/// The names of clues in a page: `clue @nine_boats (nine boats in nine tides)`, wherever it stands.
pub fn clue_names(text: &str) -> Vec<(String, String)> {
    let parts = text.split(['|', ';', '\n']).filter_map(|part| part.trim().strip_prefix("clue "));
    let named = parts.filter_map(|part| {
        let (clue, name) = part.split_once('(')?;
        let name = name.trim_end().strip_suffix(')')?.trim();
        Some((handle(clue.trim()).ok()?, name.to_owned())).filter(|(_, name)| !name.is_empty())
    });
    named.collect()
}

/// `Heat+1` → ("Heat", 1).
fn step(text: &str) -> Result<(String, i64)> {
    let at = text.find(['+', '-']).ok_or_else(|| Error::invalid(format!("`{text}` says neither + nor -")))?;
    let by: i64 = text[at..].parse().map_err(|_| Error::invalid(format!("`{text}` changes by no number")))?;
    if !(-1000..=1000).contains(&by) {
        return Err(Error::invalid(format!("`{text}` changes by too much")));
    }
    Ok((word(&text[..at])?, by))
}

impl Effect {
    /// The reason that is told with it, where it has one.
    pub fn reason(&self) -> &str {
        match self {
            Effect::Level { reason, .. } | Effect::Tick { reason, .. } => reason,
            _ => "",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Level { name, by, reason } => write!(f, "{name}{by:+} ({reason})"),
            Effect::Tick { clock, by, reason } if reason.is_empty() => write!(f, "clock {clock}{by:+}"),
            Effect::Tick { clock, by, reason } => write!(f, "clock {clock}{by:+} ({reason})"),
            Effect::Take(item) => write!(f, "take {item}"),
            Effect::Lose(item) => write!(f, "lose {item}"),
            Effect::Clue(clue) => write!(f, "clue {clue}"),
            Effect::Reveal(place) => write!(f, "reveal {place}"),
            Effect::Minutes(minutes) => write!(f, "time {minutes}"),
            Effect::Hp(by) => write!(f, "hp{by:+}"),
            Effect::Status(object, status) => write!(f, "status {object} {status}"),
            Effect::Quest(quest, status) => write!(f, "quest {quest} {status}"),
            Effect::Move(place) => write!(f, "move {place}"),
            Effect::Put(what, place) => write!(f, "put {what} {place}"),
            Effect::Mood(who, mood) => write!(f, "mood {who} {mood}"),
            Effect::Hold(part, by) => write!(f, "hold {part}{by:+}"),
        }
    }
}

#[cfg(test)]
mod tests;
