//! A turn, from the first stage to the last. Pure: a shelf, an input, perhaps a proposal in; changes and pages out.

use serde_json::{Value, json};

use super::boot::{self, Boot};
use super::delta::apply::{Author, Change, changes, complete};
use super::delta::{Delta, Item, text};
use super::dice::Dice;
use super::fetch::{self, Fetched};
use super::input::{Header, Input, Intent, Move, Refusal, parse};
use super::json::{difference, render as print};
use super::pack::{self, Around};
use super::play::{self, Play};
use super::proposal::{Sieve, Sifted};
use super::session::{self, Decision};
use super::shelf::Shelf;
use super::state::State;
use super::world::{Cartridge, Kind};
use super::{engine, hud, json, md, menu, refs, render};
use acheron_base::{Error, Result};

/// The table that a turn is played at.
#[derive(Clone, Copy)]
pub struct Seat<'a> {
    pub world: &'a Cartridge,
    pub shelf: &'a dyn Shelf,
    pub campaign: &'a str,
    pub seed: u64,
    /// The real time, as it stands in the session.
    pub at: &'a str,
}

/// What a move was understood to be, and what a narrator may know of it.
pub struct Ready {
    pub found: Move,
    pub refs: Vec<String>,
    pub boot: Boot,
    pub fetched: Fetched,
}

/// What a turn leaves.
#[derive(Debug)]
pub struct Played {
    pub changes: Vec<Change>,
    pub output: String,
    pub reports: Vec<String>,
}

/// A refusal as an error whose sentence is the whole block.
fn refuse(refusal: &Refusal) -> Error {
    Error::invalid(refusal.render().trim_end())
}

/// C0 to C2: what the turn stands on. Changes nothing.
pub fn ready(seat: Seat<'_>, input: &str) -> Result<Ready> {
    let found = match parse(input, &seat.world.extra).map_err(|refusal| refuse(&refusal))? {
        Input::Move(found) => found,
        Input::Control(_) => return Err(Error::invalid("a control instruction is no turn")),
    };
    if found.intent != Intent::Ooc
        && let Some(why) = boot::uninitialised(seat.shelf)?
    {
        return Err(Error::invalid(why));
    }
    let boot = boot::read(seat.shelf, seat.world)?;
    let refs = match found.intent {
        Intent::Mind | Intent::Ooc => Vec::new(),
        _ => {
            let unclear = |unclear: refs::Unclear| Error::invalid(format!("[Error] {}", unclear.sentence()));
            refs::resolve(&found.body, seat.world, &boot.state.hud).map_err(unclear)?
        }
    };
    let active =
        boot.state.quests.iter().filter(|(_, quest)| quest.status == "active").map(|(handle, _)| handle.clone());
    let fetched = fetch::fetch(&found, &refs, &boot.state.location, &active.collect::<Vec<_>>(), seat.world);
    Ok(Ready { found, refs, boot, fetched })
}

/// The whole turn.
pub fn turn(seat: Seat<'_>, input: &str, proposal: Option<&Value>) -> Result<Played> {
    let ready = ready(seat, input)?;
    if ready.found.header == Header::Ooc {
        return Ok(explain(&ready));
    }
    let rules = engine::rules().map_err(|fault| Error::internal(fault.to_string()))?;
    let Ready { found, refs, boot, fetched } = ready;
    let sieve = Sieve {
        world: seat.world,
        state: &boot.state,
        shelf: seat.shelf,
        campaign: seat.campaign,
        session: &boot.session,
        input,
        pc: &boot.pc.name,
    };
    let sifted = proposal.map(|value| sieve.sift(value)).unwrap_or_default();
    let governance = seat.shelf.read("GOVERNANCE_PANEL.md")?.unwrap_or_default();
    let mut state = boot.state.clone();
    state.turn += 1;
    let dice = Dice::new(seat.seed, seat.campaign, state.turn);
    let mut play = Play {
        world: seat.world,
        rules,
        found: &found,
        refs: &refs,
        pc: &boot.pc,
        judged: &sifted.judged,
        governance: &governance,
        state,
        dice,
        out: play::Outcome::default(),
        settled: None,
    };
    play::run(&mut play)?;
    archive(seat, input, &found, &boot, fetched, &sifted, play)
}

/// Questions about the rules: an answer with its page, and nothing changes.
fn explain(ready: &Ready) -> Played {
    let (path, line) = engine::cite(&ready.found.body);
    let output = format!("[OOC]\n{line}\n(see engine/{path})\n");
    Played { changes: Vec::new(), output, reports: Vec::new() }
}

/// C4 to C7: the pages, and the delta that carries them.
fn archive(
    seat: Seat<'_>,
    input: &str,
    found: &Move,
    boot: &Boot,
    fetched: Fetched,
    sifted: &Sifted,
    play: Play<'_>,
) -> Result<Played> {
    let (world, out, mut state) = (seat.world, play.out, play.state);
    let entries = hud::entries(&state, world);
    state.hud = hud::bindings(&entries);
    let options = menu::build(&state, world, &sifted.options);
    let output = render::output(&render::Page {
        scene: &sifted.scene.clone().unwrap_or_else(|| render::scene(&state, world)),
        action: action(sifted, &out),
        out: &out,
        risk: found.risk.map(|risk| format!("{risk:?}").to_lowercase()).as_deref(),
        menu: &options,
        hud: &hud::render(&state, world, &entries),
        guide: boot.guide(),
        corrections: &boot.corrections,
    });
    let panel = state.write(&boot.panel);
    let resolution = render::resolution(&out);
    let on_disk = json::read("STATE_PANEL.json", &seat.shelf.read("STATE_PANEL.json")?.unwrap_or_default())?;
    let decision = Decision {
        turn: state.turn,
        title: found.action_summary.clone(),
        real_time: seat.at.to_owned(),
        world_time: state.time.to_string(),
        input: input.to_owned(),
        rolls: out.checks.iter().map(|check| format!("{} ({})", check.formula, check.tier.name())).collect(),
        resolution: resolution.clone(),
        consequences: out.consequences.iter().chain(&out.cost).cloned().collect(),
        indicators: out.indicators.clone(),
        clocks: out.clocks.clone(),
        found: out.found.clone(),
        corrections: boot.corrections.clone(),
        reports: sifted.reports.clone(),
        state: difference(&boot.panel, &panel).unwrap_or_else(|| json!({})),
        panel: print(&panel),
    }
    .render();
    let around = Around {
        pc: boot.pc.name.clone(),
        style: boot.style.clone(),
        hooks: menu::hooks(&state, world),
        last: resolution,
    };
    let mut delta =
        Delta { items: vec![Item::append(&boot.session, decision.clone())], risk_flags: fetched.risk_flags };
    let mut patch = |path: &str, before: &Value, after: &Value| {
        if let Some(patch) = difference(before, after) {
            delta.items.push(Item::patch(path, format!("{patch:#}")));
        }
    };
    patch("STATE_PANEL.json", &on_disk, &panel);
    patch("HOT_PACK.json", &boot.pack, &hot_pack(boot, &state, world, &around));
    panels(seat, &boot.state, &state, &mut patch)?;
    if delta.items.iter().all(|item| item.path != "HOT_PACK.json") {
        delta.items.push(Item::patch("HOT_PACK.json", "{}"));
    }
    pages(seat, boot, &state, play.settled, &mut delta)?;
    delta.items.extend(sifted.delta.items.iter().cloned());
    complete(&delta, &boot.session)?;
    // The block is read back before it is obeyed: what stands in `delta` is what was done.
    let block = text::render(&delta);
    let mut made = changes(&text::parse(&block)?, seat.shelf, seat.campaign, &boot.session, Author::Kernel)?;
    made.extend(windows(seat, boot, &decision)?);
    let mut write = |path: &str, text: String| made.push(Change::Write { path: path.to_owned(), text });
    write(".kernel/output.md", output.clone());
    write(".kernel/delta.md", block);
    write(".kernel/menu.json", print(&json!(options)));
    write(".kernel/hud.json", print(&json!(entries)));
    write(".kernel/boot.md", boot.summary(world));
    if !play.dice.thrown.is_empty() {
        let lines: String = play.dice.thrown.iter().map(|throw| format!("{}\n", json!(throw))).collect();
        made.push(Change::Append { path: ".kernel/dice.ndjson".into(), text: lines });
    }
    Ok(Played { changes: made, output, reports: sifted.reports.clone() })
}

/// What is told of the deed: the narrator's words if it has any, else the kernel's.
fn action<'a>(sifted: &'a Sifted, out: &'a play::Outcome) -> &'a str {
    match sifted.prose(out.tier()).unwrap_or(&out.action) {
        "" => "It is done as it was said.",
        told => told,
    }
}

fn hot_pack(boot: &Boot, state: &State, world: &Cartridge, around: &Around) -> Value {
    let mut pack = boot.pack.clone();
    pack["context"] = pack::context(state, world, around, &boot.pack["context"]);
    if boot.guide() {
        pack["context"]["guide_shown"] = json!(1);
    }
    pack
}

/// The panels beside the state: what is active, and where the main line stands.
fn panels(seat: Seat<'_>, before: &State, after: &State, patch: &mut impl FnMut(&str, &Value, &Value)) -> Result<()> {
    let world = seat.world;
    if let Some(old) = seat.shelf.read("OBJECT_INDEX.json")? {
        let old = json::read("OBJECT_INDEX.json", &old)?;
        let mut new = old.clone();
        let active: Vec<&super::world::Object> =
            world.objects.iter().filter(|object| is_active(after, world, object)).collect();
        for (key, kind) in
            [("npcs", Kind::Npc), ("locations", Kind::Loc), ("quests", Kind::Quest), ("items", Kind::Item)]
        {
            let rows = active.iter().filter(|object| object.kind == kind);
            let row = |object: &&super::world::Object| {
                json!({"id": object.id(), "handle": object.handle, "name": object.name, "type": object.kind, "status": status(after, world, object),
                       "summary": md::clip(&object.summary, 80), "path": object.path})
            };
            new[key] = rows.map(row).collect();
        }
        patch("OBJECT_INDEX.json", &old, &new);
    }
    if let Some(old) = seat.shelf.read("MAINLINE_PANEL.json")? {
        let old = json::read("MAINLINE_PANEL.json", &old)?;
        let mut new = old.clone();
        new["next_beat"] = json!(menu::hooks(after, world));
        patch("MAINLINE_PANEL.json", &old, &new);
    }
    if before.clues != after.clues
        && let Some(old) = seat.shelf.read("clues/CLUE_LOG.json")?
    {
        let old = json::read("clues/CLUE_LOG.json", &old)?;
        let mut new = old.clone();
        let row = |(clue, n): (&String, usize)| json!({"id": format!("c{n:03}"), "handle": clue, "source": "session", "summary": clue.trim_start_matches('@').replace('_', " "), "status": "active"});
        new["clues"] = after.clues.iter().zip(1..).map(row).collect();
        patch("clues/CLUE_LOG.json", &old, &new);
    }
    Ok(())
}

fn is_active(state: &State, world: &Cartridge, object: &super::world::Object) -> bool {
    match object.kind {
        Kind::Loc => object.handle == state.location,
        Kind::Npc => hud::people(state, world).any(|npc| npc.handle == object.handle),
        Kind::Quest => state.quests.contains_key(&object.handle),
        Kind::Item => state.inventory.contains(&object.handle),
        Kind::Faction => false,
    }
}

fn status(state: &State, world: &Cartridge, object: &super::world::Object) -> String {
    match state.quests.get(&object.handle) {
        Some(quest) if quest.status == "active" => "active".into(),
        Some(_) => "resolved".into(),
        None => state.status(world, &object.handle).to_owned(),
    }
}

/// The Markdown pages that a turn keeps up: the quest log when quests moved, the world every fifth turn, governance when settled.
fn pages(seat: Seat<'_>, boot: &Boot, state: &State, settled: Option<String>, delta: &mut Delta) -> Result<()> {
    let world = seat.world;
    let mut section = |path: &str, text: String| -> Result<()> {
        if seat.shelf.read(path)?.is_some() {
            delta.items.push(Item::section(path, text));
        }
        Ok(())
    };
    if boot.state.quests != state.quests {
        let row = |(handle, quest): (&String, &super::state::Progress)| {
            format!("| {handle} | {} | {} | {} |\n", world.name(handle), quest.stage, quest.status)
        };
        let rows: String = state.quests.iter().map(row).collect();
        section(
            "quests/QUEST_LOG.md",
            format!("## Progress\n\n| @handle | quest | stages done | status |\n|---|---|---|---|\n{rows}"),
        )?;
    }
    if state.turn.is_multiple_of(5) || boot.state.fired != state.fired {
        let levels: String = state.indicators.iter().map(|(name, value)| format!("- {name}: {value}\n")).collect();
        section("WORLD_STATE.md", format!("## Indicators\n\n- turn: {}\n{levels}", state.turn))?;
    }
    if let Some(panel) = settled {
        for chapter in super::mechanics::governance::CHAPTERS {
            let body = md::section(&panel, chapter).unwrap_or_default().trim().to_owned();
            section("GOVERNANCE_PANEL.md", format!("## {chapter}\n\n{body}"))?;
        }
    }
    Ok(())
}

/// The two windows on the session: the last two turns verbatim, one digest more of what came before.
fn windows(seat: Seat<'_>, boot: &Boot, decision: &str) -> Result<Vec<Change>> {
    let kept = session::turns(&boot.snapshot);
    let last = kept.last().map(|turn| format!("{turn}\n\n")).unwrap_or_default();
    let snapshot = session::snapshot(&format!("{last}{decision}"));
    let (path, digest_path) = (session::snapshot_path(&boot.session), session::compressed_path(&boot.session));
    let mut made = vec![Change::Write { path: path.clone(), text: snapshot }];
    let before = seat.shelf.read(&digest_path)?;
    let fresh = before.is_none();
    let start = match before {
        Some(_) => String::new(),
        // An origin's session has turns that were never digested.
        None => session::compressed(&seat.shelf.read(&boot.session)?.unwrap_or_default()),
    };
    let leaving = if kept.len() >= 2 { session::digest(kept[kept.len() - 2]) } else { String::new() };
    let text = format!("{start}{leaving}");
    if fresh {
        made.push(Change::Write { path: digest_path, text });
    } else if !text.is_empty() {
        made.push(Change::Append { path: digest_path, text });
    }
    let index = format!("# Sessions\n\n- newest snapshot: {path}\n");
    if seat.shelf.read("sessions/SESSION_INDEX.md")?.as_deref() != Some(index.as_str()) {
        made.push(Change::Write { path: "sessions/SESSION_INDEX.md".into(), text: index });
    }
    Ok(made)
}
