//! Talking: a greeting and common knowledge are free, a secret needs a check, and nobody talks who is not there or will not.

use super::people::{apologise, insight, interrogate};
use super::step::{asks_about, price, priced};
use super::unclear::cannot;
use super::{Play, bystander, quest};
use crate::check::Tier;
use crate::grammar::{capital, joined, sentence, the};
use crate::hud::people;
use crate::rule::{Effect, effects};
use crate::verbs::{Verb, alike, meaning, says, small_talk};
use crate::world::{Object, ObjectKind};
use acheron_base::Result;

pub(super) fn run(play: &mut Play<'_>) -> Result<()> {
    if bystander::run(play)? {
        return Ok(());
    }
    let Some(npc) = spoken_to(play) else { return Ok(()) };
    match play.verb() {
        Some(Verb::Read) => return insight(play, &npc),
        Some(Verb::Look) if play.reads() => return insight(play, &npc),
        Some(Verb::Apologise) => return apologise(play, &npc),
        Some(Verb::Interrogate) => return interrogate(play, &npc),
        _ => (),
    }
    if asks_about(play)
        && let Some(step) = priced(play, &npc.handle)
    {
        let (cost, word) = (joined(&price(step)), step.says.first().cloned().unwrap_or_default());
        play.out.action = format!("{} names the price: {cost}. Nothing is paid yet.", npc.name);
        play.row(format!("ask {} about the price", npc.name), "told");
        play.out.hints = vec![format!("[ACT]{{{word} {}}} pays it", npc.name)];
        play.out.said = true;
        return Ok(());
    }
    if play.state.mood(&npc) == "hostile" {
        play.effect(&Effect::Minutes(1))?;
        play.out.action = format!("{} wants no word from you.", npc.name);
        play.row(format!("talk to {}", npc.name), "refused");
        play.out.no_progress = Some(format!("{} is hostile: make peace first, or leave", npc.name));
        return Ok(());
    }
    if small_talk(&play.found.body, &play.name_words()) {
        return greet(play, &npc);
    }
    if topic(play, &npc)? || told_before(play, &npc)? {
        return Ok(());
    }
    match pressing(play, &npc) {
        true => press(play, &npc),
        // Somebody who is spoken to about nothing is greeted.
        false if play.other_words().is_empty() && names_people_only(play) => greet(play, &npc),
        false => unknown(play, &npc),
    }
}

/// Whether the move names people and nothing that could be asked about.
fn names_people_only(play: &Play<'_>) -> bool {
    // Somebody else who is named is asked about.
    let named: Vec<&Object> = play.refs.iter().filter_map(|own| play.world.object(own)).collect();
    named.len() < 2 && named.iter().all(|own| own.kind == ObjectKind::Npc)
}

/// The person who is spoken to; where it is nobody, the reason is told.
fn spoken_to(play: &mut Play<'_>) -> Option<Object> {
    let world = play.world;
    let present: Vec<Object> = people(&play.state, world).cloned().collect();
    let named = play.refs.iter().filter_map(|own| world.object(own)).find(|object| object.kind == ObjectKind::Npc);
    match (named, present.as_slice()) {
        (Some(npc), here) if here.iter().any(|own| own.handle == npc.handle) => Some(npc.clone()),
        (Some(npc), _) => {
            let down =
                play.state.place_of(npc) == play.state.location && play.state.memory.down.contains_key(&npc.handle);
            let why = if down { format!("{} is unconscious", npc.name) } else { play.not_here(npc, "is not here") };
            cannot(play, why);
            None
        }
        (None, []) => {
            cannot(play, "there is nobody here to talk to");
            None
        }
        (None, [only]) => Some(only.clone()),
        (None, several) => {
            let names: Vec<String> = several.iter().map(|npc| npc.name.clone()).collect();
            cannot(play, format!("{} are here: say to whom", joined(&names)));
            play.out.action = "You look from one to the other.".into();
            None
        }
    }
}

/// A greeting, as the person feels.
fn greet(play: &mut Play<'_>, npc: &Object) -> Result<()> {
    play.effect(&Effect::Minutes(1))?;
    let own = npc.field("greeting");
    play.out.action = match play.state.mood(npc) {
        _ if !own.is_empty() && play.state.trust(npc) >= 0 => sentence(own),
        "friendly" => format!("{} nods, and has a moment.", npc.name),
        "wary" => format!("{} answers with as few words as there are.", npc.name),
        _ => format!("{} answers, and waits for what is wanted.", npc.name),
    };
    play.row(format!("greet {}", npc.name), "answered");
    let known: Vec<String> = open_topics(play, npc);
    if !known.is_empty() {
        play.out.hints = vec![format!("{} would talk about {}", npc.name, joined(&known))];
    }
    Ok(())
}

/// The topics that a person has not been asked about, by their first word.
fn open_topics(play: &Play<'_>, npc: &Object) -> Vec<String> {
    let open = npc.topics.iter().filter(|topic| {
        let asked = play.state.memory.noted.contains(&key(npc, &topic.words));
        play.state.holds(&topic.answer.when) && !asked
    });
    open.filter_map(|topic| topic.words.first()).map(|word| the(word)).take(6).collect()
}

fn key(npc: &Object, words: &[String]) -> String {
    format!("{}:{}", npc.handle, words.first().map(String::as_str).unwrap_or_default())
}

/// Tells what the person says freely about what was asked. False where it is none of their topics.
fn topic(play: &mut Play<'_>, npc: &Object) -> Result<bool> {
    let body = &play.found.body;
    let asked = npc
        .topics
        .iter()
        .find(|topic| play.state.holds(&topic.answer.when) && topic.words.iter().any(|word| says(body, word)));
    let Some(topic) = asked else { return Ok(false) };
    play.out.action = format!("{}: \"{}\"", npc.name, sentence(&topic.answer.text));
    let word = topic.words.iter().find(|word| says(body, word)).unwrap_or(&topic.words[0]);
    let what = format!("ask {} about {}", npc.name, the(word));
    let fresh = play.state.memory.note(&key(npc, &topic.words));
    play.row(what, if fresh { "told" } else { "told again" });
    play.effect(&Effect::Minutes(if fresh { 10 } else { 2 }))?;
    if !fresh {
        play.out.no_progress = Some(format!("{} has said that before", npc.name));
    }
    Ok(true)
}

/// Tells again what the person has told as a step of a quest. False where the words ask for no such step.
fn told_before(play: &mut Play<'_>, npc: &Object) -> Result<bool> {
    let told = quest::done_before(play).filter(|step| step.target == npc.handle).map(|step| step.text.clone());
    let Some(text) = told else { return Ok(false) };
    play.out.action = sentence(&format!("You have had that talk with {}: {text}", npc.name));
    play.row(format!("ask {}", npc.name), "told again");
    play.effect(&Effect::Minutes(2))?;
    play.out.no_progress = Some(format!("{} has said that before", npc.name));
    Ok(true)
}

/// Whether the words press for more than is said freely: they name an approach, or something that is kept back.
fn pressing(play: &Play<'_>, npc: &Object) -> bool {
    const PRESS: [&str; 28] = [
        "press",
        "secret",
        "secrets",
        "truth",
        "hide",
        "hiding",
        "persuade",
        "convince",
        "threaten",
        "intimidate",
        "scare",
        "lie",
        "deceive",
        "pretend",
        "bluff",
        "charm",
        "flatter",
        "plead",
        "beg",
        "insist",
        "trouble",
        "troubles",
        "really",
        "know",
        "sing",
        "perform",
        "said",
        "happened",
    ];
    let words = play.other_words();
    let secrets = npc.easy_secrets.iter().chain(&npc.hard_secrets);
    let kept: Vec<String> = secrets.flat_map(|secret| meaning(secret)).filter(|word| word.len() > 3).collect();
    let bare = words.is_empty() && play.found.risk.is_some();
    // The approach may be the verb itself: `threaten Jun`.
    let approach = play.unnamed_words().iter().any(|word| PRESS.contains(&word.as_str()));
    let asks = |word: &String| word.len() > 3 && kept.iter().any(|other| alike(word, other));
    bare || approach || words.iter().any(asks)
}

/// The person knows nothing of it. It takes a moment, and no die is thrown.
fn unknown(play: &mut Play<'_>, npc: &Object) -> Result<()> {
    play.effect(&Effect::Minutes(2))?;
    play.row(format!("talk to {}", npc.name), "nothing to say");
    play.out.action = format!("{} has nothing to say to that.", npc.name);
    let known = open_topics(play, npc);
    play.out.no_progress = Some(format!("{} does not know, or does not tell it for the asking", npc.name));
    let mut hints = Vec::new();
    if !known.is_empty() {
        hints.push(format!("{} would talk about {}", npc.name, joined(&known)));
    }
    hints.push(format!("[ASK]{{press {} for what is not said}}", npc.handle));
    play.out.hints = hints;
    Ok(())
}

/// Presses for a secret: by persuasion, or by the approach that the words name.
fn press(play: &mut Play<'_>, npc: &Object) -> Result<()> {
    play.effect(&Effect::Minutes(10))?;
    let told = play.state.told.get(&npc.handle).copied().unwrap_or(0);
    let secrets: Vec<&String> = npc.easy_secrets.iter().chain(&npc.hard_secrets).collect();
    let Some(secret) = secrets.get(told.max(0) as usize) else {
        play.row(format!("press {}", npc.name), "nothing new");
        play.out.action = format!("{} has said what there was to say.", npc.name);
        play.out.no_progress = Some(format!("{} has no more to tell", npc.name));
        return Ok(());
    };
    let approach = play.rules.social.approach(&play.found.body);
    let hard = told as usize >= npc.easy_secrets.len();
    let (low, high) = approach.map_or((10, 20), |approach| (approach.low as i32, approach.high as i32));
    let trust = play.state.trust(npc) as i32;
    let dc = (if hard { high.min(16) } else { low } - trust).clamp(low.min(low - trust), high);
    let dc = play.found.risk.map_or(dc, |risk| risk.clamp(dc));
    let name = approach.map_or("persuasion", |approach| approach.name.as_str());
    let tier = play.check_at(&format!("{name} with {}", npc.name), "cha", dc);
    if name == "intimidation" {
        play.remember(&npc.handle, -1);
        play.sour(npc)?;
    }
    if tier == Tier::Failure {
        let risk = effects(approach.map_or("", |approach| approach.risk.as_str())).unwrap_or_default();
        let world = play.world;
        let lawful: Vec<Effect> = risk.into_iter().filter(|effect| play.state.lawful(effect, world).is_ok()).collect();
        play.pay(&lawful)?;
        play.out.action = format!("{} looks past the question.", npc.name);
        play.out.no_progress = Some(format!("{} says nothing that was not known", npc.name));
        return Ok(());
    }
    play.out.action = format!("{} is drawn into talk.", npc.name);
    let count = if tier == Tier::Great && !hard { 2 } else { 1 };
    for secret in std::iter::once(secret).chain(secrets.get(told as usize + 1)).take(count) {
        play.out.found.push(format!("{}: {}", npc.name, sentence(&capital(secret))));
    }
    let known = (told + count as i64).min(secrets.len() as i64);
    play.state.told.insert(npc.handle.clone(), known);
    Ok(())
}
