//! What a narrator adds to a move. It follows only from a move by which something has changed, its reason has to do with the move,
//! a day has a limit, and it never ends the story: the last step and the last hit point are the kernel's.

use super::Play;
use crate::ending;
use crate::hud::people;
use crate::prose::words::{content, same};
use crate::rule::Effect;
use crate::state::State;
use acheron_base::Result;

/// The most that narrators change in one day of the world: steps of each level and clock, minutes, hit points lost and healed.
const DAY: [(&str, i64); 4] = [("step", 2), ("minutes", 180), ("lost", 4), ("healed", 2)];

/// Applies the effects of a narrator's proposal that hold. `before` is the state in which the move began. An effect that breaks a rule
/// is reported; one that does not fit what came of the move, which a narrator cannot know, is set aside.
pub(super) fn run(play: &mut Play<'_>, before: &State) -> Result<()> {
    let effects = play.judged.consequences.clone();
    let undone = undone(play, before);
    for effect in effects {
        let told = |why: &str| format!("consequences: `{effect}` is not taken: {why}");
        if let Some(why) = undone.or_else(|| spent(play, &effect)) {
            play.out.set_aside.push(told(why));
        } else if let Some(why) = unrelated(play, &effect).or(ends(play, &effect)?) {
            play.out.reports.push(told(why));
        } else {
            spend(play, &effect);
            play.effect(&effect)?;
        }
    }
    Ok(())
}

/// Why nothing can follow from the move.
fn undone(play: &Play<'_>, before: &State) -> Option<&'static str> {
    let what = play.what();
    let understood = |(action, result): &(String, String)| match result.as_str() {
        "impossible" | "not understood" => false,
        // A move that only the narrator tells of: the kernel knows of nothing that was done.
        "told" => *action != what,
        _ => true,
    };
    let failed = |check: &crate::check::Check| check.tier == crate::check::Tier::Failure;
    match () {
        () if !play.out.rows.iter().all(understood) => Some("the kernel knows of nothing that was done"),
        () if play.out.checks.iter().any(failed) => Some("the check failed"),
        () if play.out.no_progress.is_some() => Some("nothing came of the move"),
        () if play.out.found.is_empty() && !changed(before, &play.state) => Some("the move has changed nothing"),
        () => None,
    }
}

/// Whether a move has changed more than what passes by itself: time, clocks and what they set off, hunger, fatigue.
fn changed(before: &State, after: &State) -> bool {
    let own = |state: &State| {
        let memory = &state.memory;
        let known = (state.location.clone(), state.inventory.clone(), state.clues.clone(), state.seen.clone());
        let people = (memory.moods.clone(), memory.trust.clone(), state.told.clone(), state.foes.clone());
        let placed = (memory.placed.clone(), memory.noted.clone(), memory.holding.clone());
        (known, people, placed, state.quests.clone(), state.statuses.clone())
    };
    own(before) != own(after)
}

/// Why a reason is none: it shares no word with the move, with what came of it, or with the place and the people in it.
fn unrelated(play: &Play<'_>, effect: &Effect) -> Option<&'static str> {
    let reason = content(effect.reason());
    if reason.is_empty() {
        return None;
    }
    let mut about = vec![play.found.body.clone(), play.out.action.clone()];
    about.extend(play.out.rows.iter().map(|(action, result)| format!("{action} {result}")));
    about.extend(play.out.found.iter().chain(&play.out.text).cloned());
    let place = play.world.object(&play.state.location).into_iter();
    for own in place.chain(people(&play.state, play.world)) {
        about.extend([own.name.clone(), own.summary.clone(), own.field("role").to_owned()]);
        about.extend(own.facts.iter().map(|fact| fact.text.clone()));
    }
    let about: Vec<String> = about.iter().flat_map(|text| content(text)).collect();
    let shared = reason.iter().any(|word| about.iter().any(|own| same(word, own)));
    (!shared).then_some("its reason has nothing to do with the move")
}

/// The key of an effect in the count of the day, how far it goes, and how far the day lets it.
fn share(effect: &Effect) -> Option<(String, i64, i64)> {
    let (kind, key, by) = match effect {
        Effect::Level { name, by, .. } => ("step", name.clone(), by.abs()),
        Effect::Tick { clock, by, .. } => ("step", format!("clock {clock}"), by.abs()),
        Effect::Minutes(minutes) => ("minutes", "minutes".into(), i64::try_from(*minutes).unwrap_or(i64::MAX)),
        Effect::Hp(by) if *by < 0 => ("lost", "hp lost".into(), by.abs()),
        Effect::Hp(by) => ("healed", "hp healed".into(), *by),
        _ => return None,
    };
    let most = DAY.iter().find(|(own, _)| *own == kind).map_or(0, |(_, most)| *most);
    Some((key, by, most))
}

fn today(play: &Play<'_>) -> i64 {
    (play.state.time.minutes() / (24 * 60)) as i64 + 1
}

fn spent(play: &Play<'_>, effect: &Effect) -> Option<&'static str> {
    let (key, by, most) = share(effect)?;
    let own = &play.state.memory.narrated;
    let so_far = own.get(&key).filter(|_| own.get("day") == Some(&today(play))).copied().unwrap_or(0);
    (so_far.saturating_add(by) > most).then_some("it is more than narrators change in a day")
}

fn spend(play: &mut Play<'_>, effect: &Effect) {
    let Some((key, by, _)) = share(effect) else { return };
    let day = today(play);
    let own = &mut play.state.memory.narrated;
    if own.get("day") != Some(&day) {
        own.clear();
        own.insert("day".into(), day);
    }
    *own.entry(key).or_insert(0) += by;
}

/// Why the effect would end what only the kernel ends.
fn ends(play: &Play<'_>, effect: &Effect) -> Result<Option<&'static str>> {
    let (mut without, mut with) = (play.state.clone(), play.state.clone());
    without.fire(play.world)?;
    with.apply(effect, play.world)?;
    with.fire(play.world)?;
    let reached = |state: &crate::state::State| ending::reached(state, play.world).is_some();
    Ok(match () {
        () if with.hp == 0 && without.hp > 0 => Some("the last hit point is the kernel's to take"),
        () if reached(&with) && !reached(&without) => Some("the last step to an ending is the kernel's"),
        () => None,
    })
}
