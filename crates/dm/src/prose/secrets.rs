//! Whether a sentence tells a secret: its words in a row, or enough of the words that carry it, in whatever order and form, with
//! the words that say the same and with every way to call a person. What a page tells openly is no secret. `prose` and `deeds`
//! use it.

use std::collections::HashMap;

use super::words::{ComparedWord, content, stem, weak};
use crate::refs::normal;
use crate::state::State;
use crate::world::{Cartridge, Object, ObjectKind};

/// The words of a secret in a row that tell it.
pub const RUN: usize = 6;

/// A word counts two points; one of a person, or one that is met everywhere, counts one.
const STRONG: usize = 2;

/// What is known of a world when a sentence is compared with its secrets: its people, and what its pages tell openly.
pub struct OpenPages<'a> {
    state: &'a State,
    people: Vec<CalledPerson<'a>>,
    /// The sentences of pages that hold now: their words, and whose they are.
    told: Vec<(SaidSentence, &'a str)>,
    /// In how many sentences a stem stands.
    often: HashMap<String, usize>,
}

/// A person, and the words that call them.
struct CalledPerson<'a> {
    npc: &'a Object,
    names: Vec<String>,
    roles: Vec<String>,
    called: Vec<ComparedWord>,
    home: Vec<String>,
}

/// A word of a secret.
struct SecretWord {
    word: ComparedWord,
    /// The person it calls.
    person: Option<usize>,
    points: usize,
}

/// A secret that has not been told.
pub struct UntoldSecret {
    /// Its text in normal form.
    pub text: String,
    /// Its clauses: each one tells something.
    parts: Vec<Vec<SecretWord>>,
    /// The share of a clause that tells it.
    enough: (usize, usize),
    /// Whether it is somebody's, so that two words of it tell it.
    owned: bool,
    pub report: String,
}

/// A sentence that is compared with secrets.
pub struct SaidSentence {
    words: Vec<String>,
    compared: Vec<ComparedWord>,
    pronoun: bool,
}

impl SaidSentence {
    pub fn new(sentence: &str) -> SaidSentence {
        let pronoun = normal(sentence).split(' ').any(|word| PRONOUNS.contains(&word));
        let words = content(sentence);
        let compared = words.iter().map(|word| ComparedWord::new(word)).collect();
        SaidSentence { words, compared, pronoun }
    }
}

/// The first name, the aliases and the role of a person, as words: names apart from common nouns.
fn called<'a>(npc: &'a Object, state: &State, world: &Cartridge) -> CalledPerson<'a> {
    let (mut names, mut roles) = (Vec::new(), Vec::new());
    let first = npc.name.split(' ').find(|word| word.chars().next().is_some_and(char::is_uppercase));
    names.extend(first.map(normal));
    let last = |text: &str| text.split(' ').next_back().unwrap_or_default().to_owned();
    for alias in npc.aliases.iter().map(String::as_str).chain([npc.field("role")]).filter(|own| !own.is_empty()) {
        let proper = alias.chars().next().is_some_and(char::is_uppercase);
        if proper { names.push(normal(alias)) } else { roles.push(last(&normal(alias))) }
    }
    let called = roles.iter().map(|role| ComparedWord::new(role)).collect();
    CalledPerson { npc, names, roles, called, home: content(world.name(state.place_of(npc))) }
}

impl CalledPerson<'_> {
    fn is(&self, word: &str) -> bool {
        self.names.iter().chain(&self.roles).any(|own| own == word)
    }

    /// Whether the words of a sentence call this person: by name, by role, or by the place where they are.
    fn called_in(&self, words: &[String], compared: &[ComparedWord]) -> bool {
        let at_home = || {
            let folk = ["man", "woman", "girl", "boy", "fellow", "lad", "lass"];
            words.iter().any(|own| folk.contains(&own.as_str())) && words.iter().any(|own| self.home.contains(own))
        };
        words.iter().any(|own| self.names.contains(own))
            || compared.iter().any(|own| self.called.iter().any(|role| role.same(own)))
            || at_home()
    }
}

impl<'a> OpenPages<'a> {
    pub fn new(world: &'a Cartridge, state: &'a State) -> OpenPages<'a> {
        let people = world.of(ObjectKind::Npc).map(|npc| called(npc, state, world)).collect();
        let mut told: Vec<(SaidSentence, &str)> = Vec::new();
        for object in &world.objects {
            let mut open = |text: &str| {
                if !text.is_empty() {
                    told.push((SaidSentence::new(text), object.handle.as_str()));
                }
            };
            open(&object.summary);
            open(object.field("greeting"));
            object.facts.iter().filter(|own| state.holds(&own.when)).for_each(|own| open(&own.text));
            for topic in object.topics.iter().filter(|own| state.holds(&own.answer.when)) {
                open(&format!("{} {}", topic.words.join(" "), topic.answer.text));
            }
        }
        let mut often: HashMap<String, usize> = HashMap::new();
        for word in told.iter().flat_map(|(own, _)| &own.words) {
            *often.entry(stem(word)).or_default() += 1;
        }
        OpenPages { state, people, told, often }
    }

    fn points(&self, word: &str) -> usize {
        let everywhere = self.often.get(&stem(word)).is_some_and(|count| *count >= 3);
        if everywhere || weak(word) { 1 } else { STRONG }
    }

    /// Whether one sentence of the pages has all of these words.
    fn tells(&self, words: &[&SecretWord]) -> bool {
        let has = |told: &SaidSentence, owner: &str, wanted: &SecretWord| match wanted.person {
            Some(at) => {
                let person = &self.people[at];
                person.npc.handle == owner || person.called_in(&told.words, &told.compared)
            }
            None => told.compared.iter().any(|own| own.same(&wanted.word)),
        };
        self.told.iter().any(|(told, owner)| words.iter().all(|wanted| has(told, owner, wanted)))
    }
}

impl UntoldSecret {
    /// A secret of `owner`, who stands in it as he or she. Half of a clause tells it.
    pub fn new(secret: &str, owner: Option<&str>, report: String, pages: &OpenPages<'_>) -> UntoldSecret {
        let owner = owner.and_then(|handle| pages.people.iter().position(|own| own.npc.handle == handle));
        let parts = clauses(secret).iter().map(|part| words(part, owner, pages)).collect();
        UntoldSecret { text: normal(secret), parts, enough: (1, 2), owned: owner.is_some(), report }
    }

    /// A sentence that is told only at an end: most of it tells it, for its words are those of the world.
    pub fn ending(line: &str, pages: &OpenPages<'_>) -> UntoldSecret {
        let own = UntoldSecret::new(line, None, "it tells how the story may end".into(), pages);
        UntoldSecret { enough: (3, 4), ..own }
    }

    /// Whether a sentence in normal form repeats all of it, or so many of its words in a row.
    pub fn repeated_in(&self, text: &str, run: usize) -> bool {
        let words: Vec<&str> = self.text.split(' ').filter(|word| !word.is_empty()).collect();
        let text = format!(" {text} ");
        !words.is_empty()
            && words.windows(words.len().min(run)).any(|run| text.contains(&format!(" {} ", run.join(" "))))
    }

    /// Whether a sentence has enough of the words that carry a clause of it.
    pub fn paraphrased_in(&self, sentence: &SaidSentence, pages: &OpenPages<'_>) -> bool {
        let SaidSentence { words: said, compared, pronoun } = sentence;
        self.parts.iter().any(|part| {
            // Each word of the sentence stands for one word of the secret.
            let mut left: Vec<&ComparedWord> = compared.iter().collect();
            let mut met = |own: &&SecretWord| match own.person {
                Some(at) => {
                    let person = &pages.people[at];
                    let here = pages.state.place_of(person.npc) == pages.state.location;
                    person.called_in(said, compared) || *pronoun && here
                }
                None => {
                    let at = left.iter().position(|word| word.is(&own.word));
                    let at = at.or_else(|| left.iter().position(|word| word.same(&own.word)));
                    at.map(|at| left.remove(at)).is_some()
                }
            };
            let found: Vec<&SecretWord> = part.iter().filter(|own| met(own)).collect();
            let least = if self.owned || part.len() < 4 { 2 } else { 3 };
            found.len() >= least && self.is_enough(part, &found) && !pages.tells(&found)
        })
    }

    fn is_enough(&self, part: &[SecretWord], found: &[&SecretWord]) -> bool {
        let got: usize = found.iter().map(|own| own.points).sum();
        let all: usize = part.iter().map(|own| own.points).sum();
        let strong = found.iter().filter(|own| own.points == STRONG).count();
        let (share, of) = self.enough;
        // Words that are met everywhere tell a secret only nearly all together.
        let carried = strong > 0 || got * 4 >= all * 3;
        // A secret about somebody is told of them, or nearly whole.
        let people = part.iter().filter(|own| own.person.is_some()).count();
        let about = people == 0 || found.iter().any(|own| own.person.is_some()) || strong >= 3 || got * 3 >= all * 2;
        carried && about && got * of >= all * share
    }
}

/// Words that may stand for a person who is there.
const PRONOUNS: [&str; 8] = ["he", "she", "him", "her", "his", "hers", "i", "my"];

/// The clauses of a sentence; one of two words or less belongs to the one before it.
fn clauses(text: &str) -> Vec<String> {
    let joints = [". ", "; ", ", and ", ", because ", ", but ", ", since ", ", for "];
    let marked = joints.iter().fold(text.to_owned(), |text, joint| text.replace(joint, "\u{1}"));
    let mut parts: Vec<String> = Vec::new();
    for part in marked.split('\u{1}').map(str::trim).filter(|part| !part.is_empty()) {
        match parts.last_mut() {
            Some(last) if content(part).len() < 3 || content(last).len() < 3 => {
                last.push(' ');
                last.push_str(part);
            }
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

fn words(clause: &str, owner: Option<usize>, pages: &OpenPages<'_>) -> Vec<SecretWord> {
    let person = |word: &str| pages.people.iter().position(|own| own.is(word));
    let mut found: Vec<SecretWord> = Vec::new();
    for word in content(clause) {
        let person = person(&word);
        if person.is_none() || !found.iter().any(|own| own.person == person) {
            let points = if person.is_some() { 1 } else { pages.points(&word) };
            found.push(SecretWord { word: ComparedWord::new(&word), person, points });
        }
    }
    let stands_in = normal(clause).split(' ').any(|word| PRONOUNS.contains(&word));
    if let Some(owner) = owner.filter(|_| stands_in || found.len() < 3)
        && !found.iter().any(|own| own.person == Some(owner))
    {
        found.push(SecretWord { word: ComparedWord::new(""), person: Some(owner), points: 1 });
    }
    found
}

#[cfg(test)]
mod tests;
