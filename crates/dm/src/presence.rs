//! Who and what may stand on the stage of a turn: the people who are here, the places that can be seen from here, the things and
//! quests that the player has met. A sentence of a narrator that puts anybody or anything else there is taken out; people may be
//! spoken of by those who know them. `deeds` uses it, after the move was played.

use std::ops::Range;

use crate::hud;
use crate::known::known;
use crate::lint::{self, ProseHit};
use crate::prose::sentences;
use crate::refs::normal;
use crate::state::State;
use crate::world::{Cartridge, Object, ObjectKind};

/// The stage of a turn.
pub struct Presence<'a> {
    pub world: &'a Cartridge,
    pub before: &'a State,
    pub after: &'a State,
    /// The handles that the move is about.
    pub about: &'a [String],
    /// What the kernel tells of the move, in normal form.
    pub told: &'a str,
}

/// A word of a sentence.
struct Token {
    range: Range<usize>,
    lower: String,
    capital: bool,
}

/// A name of somebody or something, as words.
struct StageName<'a> {
    words: Vec<String>,
    /// Whether it is a name and not a common noun.
    proper: bool,
    /// The whole name of the object, and not only a part or an alias of it.
    whole: bool,
    /// A family name: it may be a common word, so that only a capital makes it one.
    family: bool,
    means: Meant<'a>,
}

#[derive(Clone, Copy)]
enum Meant<'a> {
    Object(&'a Object),
    /// Somebody whom a narrator brought in, and where.
    Brought(&'a str),
}

/// A name where it stands in a sentence.
struct Mention<'a, 't> {
    name: &'a StageName<'a>,
    tokens: &'t [Token],
    at: usize,
    quoted: bool,
}

fn tokens(text: &str, part: &Range<usize>) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let mut start = None;
    for (at, c) in text[part.clone()].char_indices().chain([(part.len(), ' ')]) {
        match (c.is_alphanumeric() || c == '_', start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                let range = part.start + from..part.start + at;
                let word = &text[range.clone()];
                let capital = word.chars().next().is_some_and(char::is_uppercase);
                found.push(Token { lower: word.to_lowercase(), capital, range });
                start = None;
            }
            _ => (),
        }
    }
    found
}

fn proper(name: &str) -> bool {
    name.trim_start_matches("the ").chars().next().is_some_and(char::is_uppercase)
}

fn split(name: &str) -> Vec<String> {
    let name = normal(name);
    let bare = name.strip_prefix("the ").unwrap_or(&name);
    bare.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl<'a> Presence<'a> {
    /// The sentences that put on the stage what is not there. A scene shows this place and no other.
    pub fn hits(&self, text: &str, scene: bool) -> Vec<ProseHit> {
        let names = self.names();
        let quotes: Vec<Range<usize>> = lint::quotations(text).collect();
        let mut hits = Vec::new();
        for part in sentences(text) {
            let tokens = tokens(text, &part);
            let mut at = 0;
            while at < tokens.len() {
                let here: Vec<&StageName<'_>> = names.iter().filter(|name| name.stands(&tokens, at)).collect();
                let longest = here.iter().map(|name| name.words.len()).max().unwrap_or(0);
                let quoted = quotes.iter().any(|own| own.contains(&tokens[at].range.start));
                let own = here.into_iter().filter(|name| name.words.len() == longest);
                let faults: Vec<Option<String>> =
                    own.map(|name| self.fault(&Mention { name, tokens: &tokens, at, quoted }, scene)).collect();
                // A name that may mean several is meant as the one that fits.
                if !faults.is_empty() && faults.iter().all(Option::is_some) {
                    let report = faults.into_iter().flatten().next().unwrap_or_default();
                    hits.push(ProseHit { range: part.clone(), report });
                }
                at += longest.max(1);
            }
        }
        hits
    }

    fn names(&self) -> Vec<StageName<'a>> {
        let mut names = Vec::new();
        for object in self.world.objects.iter().filter(|own| own.kind != ObjectKind::Faction) {
            let means = Meant::Object(object);
            let name = |name: &str, whole: bool, family: bool| StageName {
                words: split(name),
                proper: proper(name),
                whole,
                family,
                means,
            };
            names.push(name(&object.name, true, false));
            names.extend(object.aliases.iter().map(|alias| name(alias, false, false)));
            if object.kind == ObjectKind::Npc {
                let parts = object.name.split(' ').filter(|word| proper(word) && *word != object.name);
                names.extend(parts.enumerate().map(|(at, word)| name(word, false, at > 0)));
                names.push(name(object.field("role"), false, false));
            }
        }
        for (stem, place) in &self.after.memory.brought {
            let means = Meant::Brought(place);
            let words: Vec<String> = stem.split('_').map(str::to_lowercase).collect();
            let name = |words: Vec<String>, whole| StageName { words, proper: true, whole, family: !whole, means };
            names.extend(words.first().map(|first| name(vec![first.clone()], false)));
            names.push(name(words, true));
        }
        names.retain(|name| !name.words.is_empty());
        names
    }

    fn fault(&self, mention: &Mention<'_, '_>, scene: bool) -> Option<String> {
        match mention.name.means {
            Meant::Brought(place) => {
                let here = *place == self.after.location || !scene && *place == self.before.location;
                (!here && !mention.is_spoken_of() && !mention.quoted)
                    .then(|| "it names somebody who is not here".into())
            }
            Meant::Object(object) => match object.kind {
                ObjectKind::Npc => self.person(mention, object, scene),
                ObjectKind::Loc => self.place(mention, object, scene),
                ObjectKind::Item => self.thing(mention, object),
                ObjectKind::Quest => self.quest(mention, object),
                ObjectKind::Faction => None,
            },
        }
    }

    fn person(&self, mention: &Mention<'_, '_>, npc: &Object, scene: bool) -> Option<String> {
        let at = |state: &State| match state.status(self.world, &npc.handle) {
            "companion" => true,
            "hidden" | "gone" => false,
            _ => state.place_of(npc) == state.location,
        };
        if at(self.after) || !scene && at(self.before) {
            return None;
        }
        let spoken = self.is_known(npc) && (mention.quoted || mention.is_spoken_of());
        (!spoken).then(|| match self.is_known(npc) {
            true => format!("{} is not here", npc.name),
            false => "it names somebody who is not here".into(),
        })
    }

    /// Whether the player has met somebody or something, the move is about it, or a person or a page here speaks of it.
    fn is_known(&self, object: &Object) -> bool {
        let names: Vec<String> = std::iter::once(&object.name)
            .chain(&object.aliases)
            .map(|name| format!(" {} ", split(name).join(" ")))
            .collect();
        let says = |text: &str| {
            let text = format!(" {} ", normal(text));
            names.iter().any(|name| text.contains(name.as_str()))
        };
        let place = self.world.object(&self.after.location).into_iter();
        let here = place.chain(hud::people(self.after, self.world));
        let mut open = here.flat_map(|own| {
            let facts = own.facts.iter().filter(|fact| self.after.holds(&fact.when)).map(|fact| fact.text.clone());
            let topics = own.topics.iter().map(|topic| format!("{} {}", topic.words.join(" "), topic.answer.text));
            facts.chain(topics).chain([own.summary.clone()])
        });
        self.about.contains(&object.handle)
            || known(self.after, self.world, object)
            || says(self.told)
            || open.any(|text| says(&text))
    }

    fn place(&self, mention: &Mention<'_, '_>, place: &Object, scene: bool) -> Option<String> {
        if place.handle == self.after.location {
            return None;
        }
        // A common noun may mean another yard or hall, unless the scene is set there.
        if mention.name.proper && !mention.quoted && !self.in_view(place) && !self.is_known(place) {
            return Some("it names a place that is not known".into());
        }
        let told_here = self.world.object(&self.after.location).is_some_and(|own| {
            let facts = own.facts.iter().map(|fact| fact.text.as_str()).chain([own.summary.as_str()]);
            let words = format!(" {} ", mention.name.words.join(" "));
            facts.into_iter().any(|text| format!(" {} ", normal(text)).contains(&words))
        });
        (scene && mention.sets_the_stage() && !told_here).then(|| format!("{} is not where the scene is", place.name))
    }

    /// Whether a way leads to the place from where the character is or was.
    fn in_view(&self, place: &Object) -> bool {
        let next = |state: &State| hud::exits(state, self.world).any(|own| own.handle == place.handle);
        place.handle == self.before.location || next(self.after) || next(self.before)
    }

    fn thing(&self, mention: &Mention<'_, '_>, item: &Object) -> Option<String> {
        let own = mention.name.whole && mention.name.words.len() > 1;
        (own && !self.is_known(item)).then(|| "it names a thing that has not been met".into())
    }

    /// A quest by its title: one that has not begun is named by nobody, one that has not ended is not ended by words.
    fn quest(&self, mention: &Mention<'_, '_>, quest: &Object) -> Option<String> {
        const OVER: [&str; 12] = [
            "done",
            "over",
            "complete",
            "completed",
            "finished",
            "failed",
            "settled",
            "closed",
            "won",
            "solved",
            "ends",
            "ended",
        ];
        if !mention.name.whole || !mention.is_title() {
            return None;
        }
        match self.after.quests.get(&quest.handle).map(|own| own.status.as_str()) {
            None | Some("hidden") => Some("it names a quest that has not begun".into()),
            Some("done" | "failed") => None,
            Some(_) => {
                let over = mention.tokens.iter().any(|own| OVER.contains(&own.lower.as_str()));
                over.then(|| format!("{} is not over", quest.name))
            }
        }
    }
}

impl StageName<'_> {
    fn stands(&self, tokens: &[Token], at: usize) -> bool {
        let Some(part) = tokens.get(at..at + self.words.len()) else { return false };
        if !part.iter().zip(&self.words).all(|(token, word)| token.lower == *word) {
            return false;
        }
        let before = at.checked_sub(1).map(|at| tokens[at].lower.as_str());
        let determined = matches!(before, Some("the" | "that" | "this"));
        match self.proper {
            // No person has an article; a short name may be a common word, and only a capital makes it one.
            true if self.family => part[0].capital && !determined,
            true => part[0].capital || self.words.iter().map(|word| word.len()).sum::<usize>() > 4,
            false => determined || part[0].capital && at > 0,
        }
    }
}

impl Mention<'_, '_> {
    fn before(&self, back: usize) -> &str {
        let skipped = ["the", "that", "this", "old", "poor", "young"];
        let mut words = self.tokens[..self.at].iter().rev().map(|own| own.lower.as_str());
        words.by_ref().filter(|word| !skipped.contains(word)).nth(back).unwrap_or_default()
    }

    fn after(&self, on: usize) -> &str {
        self.tokens.get(self.at + self.name.words.len() + on).map_or("", |own| own.lower.as_str())
    }

    /// Whether somebody is spoken of, and not put before the player.
    fn is_spoken_of(&self) -> bool {
        const BODY: [&str; 12] = [
            "hand", "hands", "eyes", "voice", "face", "fingers", "breath", "arm", "shadow", "shoulder", "smile", "back",
        ];
        const SPEAK: [&str; 18] = [
            "speaks", "speak", "talks", "talk", "word", "words", "name", "thinks", "mention", "tells", "hears",
            "heard", "afraid", "fear", "news", "rumours", "story", "stories",
        ];
        match (self.before(0), self.before(1)) {
            ("about" | "like" | "than" | "for" | "named" | "called", _) => true,
            ("of", before) => SPEAK.contains(&before),
            ("to", "belong" | "belongs" | "belonged" | "belonging") => true,
            _ => self.after(0) == "s" && !BODY.contains(&self.after(1)) && self.at > 0,
        }
    }

    /// Whether the sentence is set in the place: it begins with it, or somebody is at it.
    fn sets_the_stage(&self) -> bool {
        let first = self.tokens[..self.at].iter().all(|own| own.lower == "the");
        first && self.after(0) != "s" || matches!(self.before(0), "at" | "in" | "on" | "inside")
    }

    /// Whether the name stands with capitals, as a title does.
    fn is_title(&self) -> bool {
        let own = &self.tokens[self.at..self.at + self.name.words.len()];
        own.iter().filter(|token| token.lower.len() > 3).all(|token| token.capital)
    }
}

#[cfg(test)]
mod tests;
