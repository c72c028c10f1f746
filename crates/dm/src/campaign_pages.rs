//! The pages of a campaign that say where play stands: the index, the roster of people met, the companion, the log of clues, and the
//! panels beside the state.
//! `turn` and `init` write them; each function gives the sections as they should be.

use serde_json::{Value, json};

use crate::files::ReadFiles;
use crate::state::State;
use crate::turn::ActContext;
use crate::world::{Cartridge, Object, ObjectKind};
use crate::{hud, json, known, md, menu};
use acheron_base::Result;

pub const INDEX: &str = "index.md";
pub const ROSTER: &str = "characters/NPCs_active/npc_roster.md";
pub const COMPANION: &str = "characters/PCs/pet_current.md";
pub const CLUES: &str = "clues/CLUE_LOG.json";

/// The sections of `index.md`: what waits to be done, and where everything stands.
pub fn index(state: &State, world: &Cartridge, session: &str) -> [String; 2] {
    let goals: String = menu::waiting(state, world)
        .map(|(quest, stage)| {
            format!("- {} ({quest}): {}\n", world.name(&quest), known::goal(state, world, &quest, stage))
        })
        .collect();
    let goals = if goals.is_empty() { "- nothing waits: look around\n".to_owned() } else { goals };
    let place = format!("{} ({})", world.name(&state.location), state.location);
    [
        format!("## Next goal\n\n{goals}"),
        format!(
            "## Pointers\n\n- session: {session}\n- place: {place}\n- time: {}\n- turn: {}\n",
            state.time, state.turn
        ),
    ]
}

/// The sections of the roster: everybody whom the page knows or who is here now, and whom a narrator has filed.
pub fn roster(state: &State, world: &Cartridge, files: &dyn ReadFiles) -> Result<Vec<String>> {
    let page = files.read(ROSTER)?.unwrap_or_default();
    let listed = |npc: &Object| page.contains(&format!("| {} |", npc.handle));
    let here = |npc: &Object| hud::people(state, world).any(|own| own.handle == npc.handle);
    let rows: String = world
        .of(ObjectKind::Npc)
        .filter(|npc| listed(npc) || here(npc))
        .map(|npc| {
            let place = if is_companion(state, world, npc) { "with you" } else { state.place_of(npc) };
            let mood = Some(state.mood(npc)).filter(|mood| !mood.is_empty()).unwrap_or("-");
            let status = state.status(world, &npc.handle);
            format!("| {} | {} | {place} | {mood} | {status} |\n", npc.handle, npc.name)
        })
        .collect();
    let own = files.paths()?;
    let filed: String = own
        .iter()
        .filter(|path| path.starts_with("characters/NPCs_active/") && *path != ROSTER)
        .map(|path| format!("- {path}\n"))
        .collect();
    let head = "| @handle | name | where | disposition | status |\n|---|---|---|---|---|\n";
    let met = if rows.is_empty() { "- none yet\n".to_owned() } else { format!("{head}{rows}") };
    let mut sections = vec![format!("## Active\n\n{met}")];
    if !filed.is_empty() {
        sections.push(format!("## Filed\n\n{filed}"));
    }
    Ok(sections)
}

fn is_companion(state: &State, world: &Cartridge, npc: &Object) -> bool {
    state.status(world, &npc.handle) == "companion"
}

/// The page of the companion: a person or beast whose status is `companion`, which `status @name companion` makes it.
pub fn companion(state: &State, world: &Cartridge) -> String {
    let own = world.of(ObjectKind::Npc).find(|npc| is_companion(state, world, npc));
    let rows = match own {
        Some(npc) => format!("| Name | {} |\n| Handle | {} |\n| About | {} |\n", npc.name, npc.handle, npc.summary),
        None => "| Name | - |\n".to_owned(),
    };
    format!("# Companion\n\n| Field | Value |\n|---|---|\n{rows}")
}

/// The log with the clues that are new; a row that is there stays as it was written.
pub fn clues(old: &Value, state: &State, world: &Cartridge, session: &str) -> Value {
    let known: Vec<Value> = old["clues"].as_array().cloned().unwrap_or_default();
    let row = |(clue, n): (&String, usize)| {
        let written = known.iter().find(|row| row["handle"] == *clue);
        let source = format!("{session} {:04}", state.turn);
        written.cloned().unwrap_or_else(|| json!({"id": format!("c{n:03}"), "handle": clue, "source": source, "summary": world.clue(clue), "status": "active"}))
    };
    let mut new = old.clone();
    new["clues"] = state.clues.iter().zip(1..).map(row).collect();
    new
}

/// The panels beside the state: what is active, and where the main line stands.
pub fn panels(
    context: ActContext<'_>,
    session: &str,
    before: &State,
    after: &State,
    patch: &mut impl FnMut(&str, &Value, &Value),
) -> Result<()> {
    let world = context.world;
    if let Some(old) = context.files.read("OBJECT_INDEX.json")? {
        let old = json::read("OBJECT_INDEX.json", &old)?;
        let mut new = old.clone();
        let active: Vec<&Object> = world.objects.iter().filter(|object| is_active(after, world, object)).collect();
        for (key, kind) in [
            ("npcs", ObjectKind::Npc),
            ("locations", ObjectKind::Loc),
            ("quests", ObjectKind::Quest),
            ("items", ObjectKind::Item),
        ] {
            let rows = active.iter().filter(|object| object.kind == kind);
            let row = |object: &&Object| {
                json!({"id": object.id(), "handle": object.handle, "name": object.name, "type": object.kind, "status": status(after, world, object),
                       "summary": md::clip(&object.summary, 80), "path": object.path})
            };
            new[key] = rows.map(row).collect();
        }
        patch("OBJECT_INDEX.json", &old, &new);
    }
    if let Some(old) = context.files.read("MAINLINE_PANEL.json")? {
        let old = json::read("MAINLINE_PANEL.json", &old)?;
        let mut new = old.clone();
        new["next_beat"] = json!(menu::hooks(after, world));
        patch("MAINLINE_PANEL.json", &old, &new);
    }
    if before.clues != after.clues
        && let Some(old) = context.files.read(CLUES)?
    {
        let old = json::read(CLUES, &old)?;
        patch(CLUES, &old, &clues(&old, after, world, session));
    }
    Ok(())
}

fn is_active(state: &State, world: &Cartridge, object: &Object) -> bool {
    match object.kind {
        ObjectKind::Loc => object.handle == state.location,
        ObjectKind::Npc => hud::people(state, world).any(|npc| npc.handle == object.handle),
        ObjectKind::Quest => state.quests.contains_key(&object.handle),
        ObjectKind::Item => state.inventory.contains(&object.handle),
        ObjectKind::Faction => false,
    }
}

fn status(state: &State, world: &Cartridge, object: &Object) -> String {
    match state.quests.get(&object.handle) {
        Some(quest) if quest.status == "active" => "active".into(),
        Some(_) => "resolved".into(),
        None => state.status(world, &object.handle).to_owned(),
    }
}

/// Whether the section stands on the page as it should.
pub fn stands(page: &str, section: &str) -> bool {
    let title = section.lines().next().and_then(md::heading).map_or("", |(_, title)| title);
    let body = section.split_once('\n').map_or("", |(_, body)| body);
    md::section(page, title).is_some_and(|own| own.trim() == body.trim())
}
