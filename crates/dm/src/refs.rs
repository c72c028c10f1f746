//! Resolves the references of an input: HUD codes of this turn, `@handle`s, names and aliases.
//!
//! An ambiguous name is never guessed: the refusal lists up to three candidates, and nothing changes.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization;

use crate::world::{Cartridge, Object, ObjectKind};
use acheron_base::nearest::nearest_within;

/// Why a reference was not resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unclear {
    UnknownHandle { handle: String, nearest: Option<String> },
    StaleCode(String),
    Several { words: String, candidates: Vec<(String, String)> },
}

impl Unclear {
    pub fn sentence(&self) -> String {
        match self {
            Unclear::UnknownHandle { handle, nearest: Some(near) } => {
                format!("unknown handle {handle}; the nearest is {near}")
            }
            Unclear::UnknownHandle { handle, nearest: None } => format!("unknown handle {handle}"),
            Unclear::StaleCode(code) => format!("{code} is no code of this turn's HUD"),
            Unclear::Several { words, candidates } => {
                let shown: Vec<String> = candidates.iter().map(|(handle, name)| format!("{handle} ({name})")).collect();
                format!("`{words}` may be {}; say which by its handle", shown.join(", "))
            }
        }
    }
}

impl Unclear {
    /// A handle that would have been understood.
    pub fn instead(&self) -> Option<&str> {
        match self {
            Unclear::UnknownHandle { nearest, .. } => nearest.as_deref(),
            Unclear::StaleCode(_) => None,
            Unclear::Several { candidates, .. } => candidates.first().map(|(handle, _)| handle.as_str()),
        }
    }
}

/// Lower case, compatibility forms folded, everything that is not a letter or a digit a single space.
pub fn normal(text: &str) -> String {
    let folded: String = text.nfkc().collect::<String>().to_lowercase();
    let spaced: String = folded.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { ' ' }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The handles that the text speaks of, in the order in which they stand.
pub fn resolve(text: &str, world: &Cartridge, hud: &BTreeMap<String, String>) -> Result<Vec<String>, Unclear> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut plain = String::new();
    for (at, word) in tokens(text) {
        if word.starts_with('@') && word.len() > 1 {
            match world.object(&word.to_lowercase()) {
                Some(object) => found.push((at, object.handle.clone())),
                None => return Err(unknown(&word, world, hud)),
            }
        } else if let Some(code) = code(&word) {
            let bound = hud.get(&code).and_then(|id| world.by_id(id));
            match bound {
                Some(object) => found.push((at, object.handle.clone())),
                // `L1` and its like mean a code wherever the HUD has ever been shown.
                None => return Err(Unclear::StaleCode(word)),
            }
        } else {
            plain.push_str(&word);
            plain.push(' ');
        }
    }
    named(&normal(&plain), world, hud, &mut found)?;
    found.sort();
    let mut handles: Vec<String> = Vec::new();
    for (_, handle) in found {
        if !handles.contains(&handle) {
            handles.push(handle);
        }
    }
    Ok(handles)
}

/// Words, with handles and codes whole.
fn tokens(text: &str) -> Vec<(usize, String)> {
    let (mut words, mut word, mut start) = (Vec::new(), String::new(), 0);
    for (at, c) in text.char_indices() {
        let c = if c == '＠' { '@' } else { c };
        if c.is_alphanumeric() || c == '_' || c == '@' || c == '\'' {
            if word.is_empty() {
                start = at;
            }
            word.push(c);
        } else if !word.is_empty() {
            words.push((start, std::mem::take(&mut word)));
        }
    }
    if !word.is_empty() {
        words.push((start, word));
    }
    words
}

/// `N1` → `N1`, `P2` → `L2`; nothing else is a code.
fn code(word: &str) -> Option<String> {
    let (letter, number) = word.split_at_checked(1)?;
    let letter = if letter == "P" { "L" } else { letter };
    let lawful = "LNIQF".contains(letter)
        && !number.is_empty()
        && number.len() <= 3
        && number.bytes().all(|b| b.is_ascii_digit());
    lawful.then(|| format!("{letter}{number}"))
}

/// The nearest handle of what the HUD shows: any other might be a secret.
fn unknown(word: &str, world: &Cartridge, hud: &BTreeMap<String, String>) -> Unclear {
    let shown = hud.values().filter_map(|id| world.by_id(id));
    let nearest = nearest_within(word, shown.map(|object| object.handle.as_str()), 3);
    Unclear::UnknownHandle { handle: word.to_owned(), nearest: nearest.map(str::to_owned) }
}

/// Names and aliases in a normal text: the longest first, each stretch of text taken once.
fn named(
    text: &str,
    world: &Cartridge,
    hud: &BTreeMap<String, String>,
    found: &mut Vec<(usize, String)>,
) -> Result<(), Unclear> {
    let shown: Vec<&Object> = hud.values().filter_map(|id| world.by_id(id)).collect();
    let at_hand = |object: &&&Object| shown.iter().any(|own| own.handle == object.handle);
    let mut names: BTreeMap<String, Vec<&Object>> = BTreeMap::new();
    for object in &world.objects {
        let own = std::iter::once(object.name.as_str()).chain(object.aliases.iter().map(String::as_str));
        for name in own.map(normal).filter(|name| !name.is_empty()) {
            let bare = name.strip_prefix("the ").unwrap_or(&name).to_owned();
            let list = names.entry(bare).or_default();
            if !list.iter().any(|other| other.handle == object.handle) {
                list.push(object);
            }
        }
    }
    let mut longest: Vec<(&String, &Vec<&Object>)> = names.iter().collect();
    longest.sort_by_key(|(name, _)| std::cmp::Reverse(name.chars().count()));
    let mut left = format!(" {text} ");
    for (name, objects) in longest {
        // Scripts without spaces have no word ends to look for.
        let pattern = if name.is_ascii() { format!(" {name} ") } else { name.clone() };
        let Some(at) = left.find(&pattern) else { continue };
        let mut near = objects.iter().filter(at_hand);
        let only = near.next().filter(|_| near.next().is_none());
        let one = match objects.as_slice() {
            [object] => Some(object),
            _ => only,
        };
        if let Some(object) = one {
            found.push((at, object.handle.clone()));
            let blank = format!(" {} ", "\u{1}".repeat(pattern.len().saturating_sub(2)));
            left = left.replace(&pattern, &blank);
        } else if !objects.iter().any(|object| found.iter().any(|(_, handle)| *handle == object.handle)) {
            let candidates =
                objects.iter().take(3).map(|object| (object.handle.clone(), object.name.clone())).collect();
            return Err(Unclear::Several { words: name.clone(), candidates });
        }
    }
    by_one_word(&left, &shown, found);
    Ok(())
}

/// Finds what is at hand by one word of its name, where the word means nothing else there: people and things before places.
fn by_one_word(left: &str, shown: &[&Object], found: &mut Vec<(usize, String)>) {
    for word in left.split(' ').filter(|word| word.chars().count() > 3) {
        let has = |object: &&&Object| head(&object.name).split(' ').any(|own| own == word);
        let (places, others): (Vec<&&Object>, Vec<&&Object>) =
            shown.iter().filter(has).partition(|object| object.kind == ObjectKind::Loc);
        let meant = if others.is_empty() { places } else { others };
        if let ([object], Some(at)) = (meant.as_slice(), left.find(&format!(" {word} "))) {
            found.push((at, object.handle.clone()));
        }
    }
}

/// The words of a name that are its own: a skin of water is a skin, and no water.
fn head(name: &str) -> String {
    let name = normal(name);
    let end = [" of ", " for ", " with ", " in "].iter().filter_map(|word| name.find(word)).min();
    end.map_or(name.clone(), |end| name[..end].to_owned())
}

#[cfg(test)]
mod tests;
