//! Looking: open things are described, hidden things need a check, and what was seen once is nothing new.

use super::people::insight;
use super::unclear::not_understood;
use super::{Play, bystander, manage};
use crate::check::Tier;
use crate::grammar::{capital, sentence, the, the_first};
use crate::hud::{exits, people, things};
use crate::known::{known, searched};
use crate::refs::normal;
use crate::rule::Effect;
use crate::verbs::{Verb, alike, meaning};
use crate::world::{Object, ObjectKind};
use acheron_base::Result;

pub(super) fn run(play: &mut Play<'_>) -> Result<()> {
    let world = play.world;
    if matches!(normal(&play.rest()).as_str(), "me" | "myself" | "self" | "at me" | "at myself") {
        manage::status(play);
        return Ok(());
    }
    let spoken = play.refs.iter().filter_map(|own| world.object(own));
    let spoken =
        spoken.into_iter().find(|object| object.kind != ObjectKind::Loc || object.handle != play.state.location);
    match spoken {
        Some(object) if play.verb() == Some(Verb::Read) => insight(play, object),
        Some(object) if object.kind == ObjectKind::Npc && play.reads() => insight(play, object),
        // "The room" is this one, whatever else has the word in its name.
        Some(object) if is_general(&meaning(&play.rest())) && !called(play, object) => around(play),
        Some(object) => match nearer(play, object) {
            Some(facts) => detail(play, &facts),
            None => one(play, object),
        },
        None => {
            let words = play.other_words();
            let facts = speaking(play, &words);
            match () {
                () if is_around(play) => around(play),
                () if !facts.is_empty() => detail(play, &facts),
                () if bystander::look(play)? => Ok(()),
                () => {
                    not_understood(play, "nothing of that name is to be seen here");
                    Ok(())
                }
            }
        }
    }
}

/// The facts of this place that the words mean rather than something which has one of them in its name.
fn nearer(play: &Play<'_>, object: &Object) -> Option<Vec<String>> {
    let words = meaning(&play.rest());
    let facts = speaking(play, &words);
    let whole = |fact: &String| words.iter().all(|word| meaning(fact).iter().any(|other| alike(word, other)));
    (!called(play, object) && facts.iter().any(whole)).then_some(facts)
}

/// Whether the words are the handle, the name or an alias of something. A quest has its aliases for the log; a thing, a person and a
/// place are called by them.
fn called(play: &Play<'_>, object: &Object) -> bool {
    let words = meaning(&play.rest());
    let aliased = !matches!(object.kind, ObjectKind::Quest | ObjectKind::Faction);
    let mut names = std::iter::once(&object.name).chain(object.aliases.iter().filter(|_| aliased));
    object.handle == play.found.body.trim() || names.any(|name| meaning(name) == words)
}

/// Words for what is here as a whole, and for looking at it.
const AROUND: [&str; 23] = [
    "around",
    "everything",
    "anything",
    "something",
    "place",
    "room",
    "surroundings",
    "search",
    "corner",
    "hidden",
    "clue",
    "clues",
    "look",
    "area",
    "see",
    "scene",
    "secret",
    "secrets",
    "haste",
    "heedless",
    "noise",
    "find",
    "scour",
];

fn is_general(words: &[String]) -> bool {
    !words.is_empty() && words.iter().all(|word| AROUND.contains(&word.as_str()))
}

/// Whether the words look at nothing in particular.
fn is_around(play: &Play<'_>) -> bool {
    let risky = play.found.risk.is_some();
    let verb = matches!(play.verb(), Some(Verb::Search)) || play.rules.social.search(&play.found.body).is_some();
    let words = play.other_words();
    risky || verb || words.is_empty() || is_general(&words)
}

/// The facts of this place that speak most of these words: what is seen when one looks there. Empty where none does.
fn speaking(play: &Play<'_>, words: &[String]) -> Vec<String> {
    let Some(place) = play.world.object(&play.state.location) else { return Vec::new() };
    let held = place.facts.iter().filter(|fact| play.state.holds(&fact.when)).map(|fact| &fact.text);
    let hits = |text: &String| {
        let own = meaning(text);
        words.iter().filter(|word| word.len() > 2 && own.iter().any(|other| alike(word, other))).count()
    };
    let scored: Vec<(usize, String)> = held.chain([&place.summary]).map(|text| (hits(text), text.clone())).collect();
    let most = scored.iter().map(|(points, _)| *points).max().unwrap_or(0);
    scored.into_iter().filter(|(points, _)| *points == most && most > 0).map(|(_, text)| text).take(3).collect()
}

/// Looks at something that facts of the place speak of.
fn detail(play: &mut Play<'_>, facts: &[String]) -> Result<()> {
    play.out.action = facts.iter().map(|fact| sentence(fact)).collect::<Vec<_>>().join(" ");
    let mut fresh = false;
    for fact in facts {
        fresh |= play.state.memory.note(&format!("{} {}", play.state.location, meaning(fact).join("_")));
    }
    let words = play.rest();
    let looked = match words.split_once(' ') {
        Some(("at", what)) => format!("at {}", the(what)),
        Some((
            "under" | "behind" | "in" | "into" | "inside" | "over" | "through" | "beneath" | "between" | "beyond",
            _,
        )) => words,
        _ => format!("at {}", the(&words)),
    };
    play.row(format!("look {}", crate::md::clip(&looked, 63)), if fresh { "seen" } else { "seen before" });
    if fresh {
        play.effect(&Effect::Minutes(5))?;
    } else {
        play.out.no_progress = Some("it is as it was".into());
    }
    Ok(())
}

fn one(play: &mut Play<'_>, object: &Object) -> Result<()> {
    let world = play.world;
    let here = match object.kind {
        ObjectKind::Npc => people(&play.state, world).any(|own| own.handle == object.handle),
        ObjectKind::Item => {
            play.state.inventory.contains(&object.handle)
                || things(&play.state, world).any(|own| own.handle == object.handle)
        }
        ObjectKind::Loc => exits(&play.state, world).any(|own| own.handle == object.handle),
        ObjectKind::Quest => play.state.quests.contains_key(&object.handle),
        ObjectKind::Faction => true,
    };
    let down = play.state.memory.down.contains_key(&object.handle);
    if down && play.state.place_of(object) == play.state.location {
        play.out.action = format!("{} lies unconscious, and breathes.", object.name);
        play.row(format!("look at {}", object.name), "seen");
        play.out.said = true;
        return Ok(());
    }
    if !here {
        // A word for something that is elsewhere may also stand in a fact of this place.
        let words = meaning(&play.rest());
        let facts = speaking(play, &words);
        if !facts.is_empty() {
            return detail(play, &facts);
        }
        let why = match known(&play.state, world, object) {
            true => format!("{} cannot be seen from here", the(&object.name)),
            false => "nothing of that name is to be seen here".to_owned(),
        };
        not_understood(play, why);
        return Ok(());
    }
    play.out.action = format!("{}: {}", the_first(&object.name), sentence(&object.summary));
    let held = object.facts.iter().filter(|fact| object.kind != ObjectKind::Loc && play.state.holds(&fact.when));
    for fact in held.collect::<Vec<_>>() {
        play.out.action.push_str(&format!(" {}", sentence(&fact.text)));
    }
    let key =
        if object.kind == ObjectKind::Loc { format!("{} from afar", object.handle) } else { object.handle.clone() };
    // Looking again tells the same, and takes no time.
    let looked = play.state.memory.note(&format!("{key} looked at"));
    play.state.memory.note(&key);
    play.row(format!("look at {}", the(&object.name)), if looked { "seen" } else { "seen before" });
    // Key text is told in a sentence; the whole of it stays on its page.
    play.out.text = Some(sentence(object.field("text"))).filter(|text| !text.is_empty());
    if looked {
        play.effect(&Effect::Minutes(5))?;
    } else {
        play.out.no_progress = Some("it is as it was".into());
    }
    Ok(())
}

pub(super) fn around(play: &mut Play<'_>) -> Result<()> {
    let world = play.world;
    let name = the(world.name(&play.state.location));
    play.out.action = format!("You look over {name}, corner by corner.");
    let hidden = concealed(play).next().is_some();
    // A search that is named has a time and a difficulty of its own: a glance, footprints, documents.
    let (minutes, own_dc) = match play.rules.social.search(&play.found.body) {
        Some(search) => (search.minutes.clamp(1, 600) as u64, Some(search.dc)),
        None => (10, None),
    };
    let mut failed = false;
    if play.judged.roll.unwrap_or(hidden || play.found.risk.is_some()) {
        let dc = concealed(play).next().and_then(|item| item.number("dc")).or(own_dc);
        let tier = match dc {
            Some(dc) if play.found.risk.is_none() => play.check_at(&format!("search {name}"), "int", dc as i32),
            _ => play.check(&format!("search {name}"), "int"),
        };
        failed = tier == Tier::Failure;
        if failed {
            play.pay(&[])?;
        } else {
            uncover(play, if tier == Tier::Great { 2 } else { 1 })?;
            play.effect(&Effect::Minutes(minutes))?;
        }
    } else {
        play.effect(&Effect::Minutes(minutes))?;
        play.row(format!("look around {name}"), "seen");
    }
    if !failed && concealed(play).next().is_none() {
        play.state.memory.note(&searched(&play.state.location));
    }
    let seen: Vec<Object> = things(&play.state, world).cloned().collect();
    for item in seen {
        play.discover(&item.handle, &item);
    }
    if play.out.found.is_empty() {
        let reason = match (failed, play.state.time.night()) {
            (true, _) => "the search turns up nothing this time",
            (false, true) => "it is too dark to see more",
            (false, false) => "what there was to see has been seen",
        };
        play.out.no_progress = Some(reason.into());
    }
    Ok(())
}

/// The hidden things here that have not been found.
fn concealed<'a>(play: &'a Play<'_>) -> impl Iterator<Item = &'a Object> {
    let (state, world) = (&play.state, play.world);
    world.of(ObjectKind::Item).filter(move |item| {
        let carried = state.inventory.contains(&item.handle);
        !carried && state.place_of(item) == state.location && state.status(world, &item.handle) == "hidden"
    })
}

/// Brings up to `count` hidden things to light.
pub(super) fn uncover(play: &mut Play<'_>, count: usize) -> Result<()> {
    let found: Vec<Object> = concealed(play).take(count).cloned().collect();
    for item in found {
        play.effect(&Effect::Status(item.handle.clone(), "active".into()))?;
        play.discover(&item.handle, &item);
    }
    Ok(())
}

impl Play<'_> {
    /// Tells of something for the first time; a second time there is nothing to tell.
    pub(super) fn discover(&mut self, key: &str, object: &Object) {
        if self.state.memory.note(key) {
            self.out.found.push(format!("{}: {}", capital(&object.name), object.summary));
        }
    }
}

/// A spell or a rite: it always needs a check, and people who are present notice it.
pub(super) fn cast(play: &mut Play<'_>) -> Result<()> {
    play.out.action = "The words are spoken and the air takes note of them.".into();
    let what = play.what();
    let tier = play.check(&what, "will");
    if play.world.indicator("Rumor").is_some() && people(&play.state, play.world).next().is_some() {
        play.effect(&Effect::Level { name: "Rumor".into(), by: 1, reason: "a rite before witnesses".into() })?;
    }
    if tier == Tier::Failure {
        play.pay(&[])?;
        play.out.no_progress = Some("the rite slips and leaves only a taste of iron".into());
        return Ok(());
    }
    play.effect(&Effect::Minutes(10))?;
    uncover(play, 2)?;
    if play.out.found.is_empty() {
        play.out.no_progress = Some("nothing answers to the words".into());
    }
    Ok(())
}
