//! The rules that a patch of `STATE_PANEL.json` keeps when a tool makes it: those that effects keep in a turn. `tools` uses it.

use std::fmt::Display;

use serde_json::Value;

use crate::rule::MOODS;
use crate::state::FULL_HP;
use crate::time::Time;
use crate::world::{Cartridge, ObjectKind};
use acheron_base::{Error, Result};

/// The most bytes of a panel.
const LARGEST: usize = 64 << 10;
/// The most bytes of the notes in it.
const NOTES: usize = 8 << 10;

/// Keys that only a turn moves: dice, codes and triggers hang on them.
const COUNTED: [&str; 11] =
    ["turn", "hud", "fired", "ate", "drank", "noted", "scenes", "down", "warned", "ended", "endings"];

/// Refuses a panel in which a changed key breaks a rule. Keys that the rules do not know are free.
pub fn lawful(before: &Value, after: &Value, world: &Cartridge) -> Result<()> {
    let keys = before.as_object().into_iter().flatten().chain(after.as_object().into_iter().flatten());
    for key in keys.map(|(key, _)| key).filter(|key| before.get(key.as_str()) != after.get(key.as_str())) {
        let (old, new) = (&before[key], &after[key]);
        match key.as_str() {
            key if COUNTED.contains(&key) => return refuse(format!("`{key}` is counted by turns")),
            "indicators" => indicators(old, new, world)?,
            "clocks" => clocks(new, world)?,
            "hp" => number("hp", new, 0, FULL_HP)?,
            "fatigue" => number("fatigue", new, 0, 5)?,
            "location" => known(std::slice::from_ref(new), world, ObjectKind::Loc, "place")?,
            "seen" => known(list(new), world, ObjectKind::Loc, "place")?,
            "inventory" => known(list(new), world, ObjectKind::Item, "item")?,
            "clues" => clues(new, world)?,
            "quests" => quests(new, world)?,
            "statuses" | "moods" | "foes" | "told" | "trust" => people(key, new, world)?,
            "placed" => placed(new, world)?,
            "holding" => {
                new.as_object().into_iter().flatten().try_for_each(|(part, own)| number(part, own, 0, 1_000_000))?;
            }
            "time" => time(old, new)?,
            "notes" if new.to_string().len() > NOTES => {
                return refuse(format!("STATE_PANEL.json: notes have at most {NOTES} bytes"));
            }
            _ => (),
        }
    }
    Ok(())
}

/// Refuses an index of active objects in which one stands under another kind than its own.
pub fn objects(after: &Value, world: &Cartridge) -> Result<()> {
    for (key, kind, name) in [
        ("npcs", ObjectKind::Npc, "person"),
        ("locations", ObjectKind::Loc, "place"),
        ("quests", ObjectKind::Quest, "quest"),
        ("items", ObjectKind::Item, "item"),
    ] {
        for row in list(&after[key]) {
            let handle = row["handle"].as_str().unwrap_or_default();
            match world.object(handle) {
                Some(own) if own.kind == kind => (),
                Some(own) => return refuse(format!("{handle} is {}, not one of {key}", own.kind.article())),
                None => return refuse(format!("unknown {name} {handle}")),
            }
        }
    }
    Ok(())
}

/// Refuses a panel that is too long.
pub fn fits(path: &str, text: &str) -> Result<()> {
    match text.len() {
        ..=LARGEST => Ok(()),
        size => refuse(format!("{path} would have {size} bytes; it has at most {LARGEST}")),
    }
}

fn refuse(message: impl Display) -> Result<()> {
    Err(Error::invalid(message.to_string()))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn number(name: &str, value: &Value, low: i64, high: i64) -> Result<()> {
    match value.as_i64() {
        Some(number) if (low..=high).contains(&number) => Ok(()),
        _ => refuse(format!("{name} is {low} to {high}, not {value}")),
    }
}

fn known(values: &[Value], world: &Cartridge, kind: ObjectKind, name: &str) -> Result<()> {
    let is = |value: &Value| value.as_str().and_then(|own| world.object(own)).is_some_and(|own| own.kind == kind);
    match values.iter().find(|value| !is(value)) {
        Some(stranger) => refuse(format!("unknown {name} {}", stranger.as_str().unwrap_or("without a handle"))),
        None => Ok(()),
    }
}

fn indicators(old: &Value, new: &Value, world: &Cartridge) -> Result<()> {
    for indicator in &world.indicators {
        let (old, value) = (&old[&indicator.name], &new[&indicator.name]);
        if old != value {
            number(&indicator.name, value, indicator.min, indicator.max)?;
        }
    }
    let stranger =
        |(name, value): &(&String, &Value)| world.indicator(name).is_none() && old.get(name.as_str()) != Some(value);
    match new.as_object().into_iter().flatten().find(stranger) {
        Some((name, _)) => refuse(format!("unknown indicator {name}")),
        None => Ok(()),
    }
}

fn clocks(new: &Value, world: &Cartridge) -> Result<()> {
    let mut met: Vec<&str> = Vec::new();
    for clock in list(new) {
        let id = clock["id"].as_str().unwrap_or("-");
        let Some(face) = world.clocks.iter().find(|face| face.id == id) else {
            return refuse(format!("unknown clock {id}"));
        };
        if met.contains(&id) {
            return refuse(format!("clock {id} is there twice"));
        }
        if clock["segments"].as_i64() != Some(face.segments) {
            return refuse(format!("clock {id} has {} segments, not {}", face.segments, clock["segments"]));
        }
        number(&format!("clock {id}"), &clock["filled"], 0, face.segments)?;
        met.push(id);
    }
    match world.clocks.iter().find(|face| !met.contains(&face.id.as_str())) {
        Some(face) => refuse(format!("clock {} is missing: a patch holds the whole list", face.id)),
        None => Ok(()),
    }
}

fn clues(new: &Value, world: &Cartridge) -> Result<()> {
    match list(new).iter().find(|clue| !clue.as_str().is_some_and(|clue| world.clues.contains_key(clue))) {
        Some(clue) => refuse(format!("unknown clue {}", clue.as_str().unwrap_or("without a handle"))),
        None => Ok(()),
    }
}

fn quests(new: &Value, world: &Cartridge) -> Result<()> {
    for (handle, quest) in new.as_object().into_iter().flatten() {
        let Some(own) = world.quests.iter().find(|own| own.handle == *handle) else {
            return refuse(format!("unknown quest {handle}"));
        };
        let status = quest["status"].as_str().unwrap_or("-");
        if !matches!(status, "active" | "done" | "failed" | "hidden") {
            return refuse(format!("a quest cannot be `{status}`"));
        }
        if quest["stage"].as_u64().is_none_or(|stage| stage > own.stages.len() as u64) {
            return refuse(format!("{handle} has {} stages, not {}", own.stages.len(), quest["stage"]));
        }
    }
    Ok(())
}

/// What is kept about somebody by handle: a status, hit points, secrets told.
fn people(key: &str, new: &Value, world: &Cartridge) -> Result<()> {
    for (handle, value) in new.as_object().into_iter().flatten() {
        let object = world.object(handle);
        match (key, object) {
            ("statuses", Some(_)) if value.is_string() => (),
            ("statuses", Some(_)) => return refuse(format!("{key} of {handle} must be a word")),
            ("statuses", None) => return refuse(format!("unknown handle {handle}")),
            ("moods", Some(own)) if own.kind == ObjectKind::Npc => match value.as_str() {
                Some(mood) if MOODS.contains(&mood) => (),
                _ => {
                    let mood = value.as_str().unwrap_or("-");
                    return refuse(format!("`{mood}` is not a mood: {}", MOODS.join(", ")));
                }
            },
            ("moods", _) => return refuse(format!("unknown person {handle}")),
            (_, Some(own)) if own.kind == ObjectKind::Npc => {
                let secrets = (own.easy_secrets.len() + own.hard_secrets.len()) as i64;
                match (key, value.as_i64()) {
                    ("told", Some(told)) if (0..=secrets).contains(&told) => (),
                    ("told", _) => return refuse(format!("{handle} has {secrets} secrets, not {value}")),
                    ("trust", _) => number(&format!("the trust of {handle}"), value, -5, 5)?,
                    _ => number(&format!("the hp of {handle}"), value, 0, 200)?,
                }
            }
            _ => return refuse(format!("unknown person {handle}")),
        }
    }
    Ok(())
}

/// Where things and people are: in a place of the world, or nowhere.
fn placed(new: &Value, world: &Cartridge) -> Result<()> {
    for (handle, at) in new.as_object().into_iter().flatten() {
        if world.object(handle).is_none() {
            return refuse(format!("unknown handle {handle}"));
        }
        if at.as_str().is_none_or(|at| at.starts_with('@')) {
            known(std::slice::from_ref(at), world, ObjectKind::Loc, "place")?;
        }
    }
    Ok(())
}

/// The most minutes that a patch lets pass.
const LEAP: u64 = 30 * 24 * 60;

fn time(old: &Value, new: &Value) -> Result<()> {
    let (Some(new), old) = (new.as_str(), old.as_str().unwrap_or("-")) else {
        return refuse("time is like `day 2, 08:40`");
    };
    let (then, now) = (Time::read(old), Time::read(new));
    match (then.is_dated(), now.is_dated()) {
        (true, false) => refuse("time is like `day 2, 08:40`"),
        (true, true) if now.minutes() < then.minutes() => refuse("time does not go back: undo takes back a turn"),
        (true, true) if now.minutes() - then.minutes() > LEAP => refuse("time moves at most 30 days in one patch"),
        _ => Ok(()),
    }
}
