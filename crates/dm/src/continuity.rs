//! `check.json`: checks that a campaign is consistent. Six checks of every session, three after initialisation, and the ways back of quests.

use serde::Serialize;
use serde_json::Value;

use crate::files::ReadFiles;
use crate::world::Cartridge;
use crate::{boot, json, md, session};
use acheron_base::Result;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub ok: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    pub ok: bool,
    pub findings: Vec<Finding>,
}

pub fn check(files: &dyn ReadFiles, world: &Cartridge) -> Result<Report> {
    let mut findings = Vec::new();
    let mut find = |check: &'static str, fault: Option<String>| {
        findings.push(Finding { check, ok: fault.is_none(), detail: fault.unwrap_or_default() });
    };
    let session = boot::current(files)?;
    let text = files.read(&session)?;
    let newest = files.paths()?.into_iter().filter(|path| session::is_session(path)).max();
    let pointed = match (&text, newest) {
        (None, _) => Some(format!("{session} is not there")),
        (Some(_), Some(newest)) if newest > session => Some(format!("{newest} is newer than {session}")),
        _ => None,
    };
    find("current_session", pointed);
    let text = text.unwrap_or_default();
    let last = session::turns(&text).pop().unwrap_or_default().to_owned();
    find("last_decision", last.is_empty().then(|| format!("{session} has no Decision")));
    let read = |path: &str| -> Result<Value> {
        let text = files.read(path)?.unwrap_or_default();
        Ok(json::read(path, &text).unwrap_or(Value::Null))
    };
    let (panel, pack, objects) = (read("STATE_PANEL.json")?, read("HOT_PACK.json")?, read("OBJECT_INDEX.json")?);
    // A correction or a patch has no hour of its own: the last Decision that has one counts.
    let time =
        session::turns(&text).into_iter().rev().find_map(|turn| session::field(turn, "In-world time")).unwrap_or("-");
    let agrees = pack["context"]["t"] == time && pack["context"]["loc"] == panel["location"];
    find(
        "hot_pack",
        (!agrees && !last.is_empty())
            .then(|| format!("the last Decision is at {time}, the pack at {}", pack["context"]["t"])),
    );
    let told = boot::told(files)?;
    let conflicts = told.map(|told| session::conflicts(&panel, &told)).unwrap_or_default();
    find("state_panel", conflicts.first().cloned());
    let listed = |key: &str, handle: &Value| {
        objects[key].as_array().is_some_and(|rows| rows.iter().any(|row| row["handle"] == *handle))
    };
    let played = panel["turn"].as_u64().unwrap_or(0) > 0;
    find(
        "object_index",
        (played && !listed("locations", &panel["location"]))
            .then(|| format!("{} is not in the index", panel["location"])),
    );
    let world_state = files.read("WORLD_STATE.md")?.unwrap_or_default();
    let kept = md::field(&world_state, "turn").and_then(|turn| turn.parse::<u64>().ok()).unwrap_or(0);
    let age = panel["turn"].as_u64().unwrap_or(0).saturating_sub(kept);
    find("world_state", (age > 5).then(|| format!("it is {age} turns old")));
    find("initialised", boot::uninitialised(files)?.map(str::to_owned));
    let pc = super::pc::Pc::read(&files.read("characters/PCs/pc_current.md")?.unwrap_or_default());
    find("character", pc.name.is_empty().then(|| "pc_current.md names nobody".to_owned()));
    let asked = boot::preferences(&files.read("PLAYER_PROFILE.md")?.unwrap_or_default()).count();
    let most = boot::MOST_PREFERENCES;
    find("player_profile", (asked > most).then(|| format!("it has {asked} preferences; at most {most} are read")));
    let lost = world.quests.iter().find(|quest| !quest.main && world.object(&quest.return_to).is_none());
    find("return_to", lost.map(|quest| format!("side quest {} has no way back", quest.handle)));
    let fault = world.faults.first().map(ToString::to_string);
    find("cartridge", fault);
    Ok(Report { ok: findings.iter().all(|finding| finding.ok), findings })
}
