//! A turn, from the first stage to the last: files, an input and perhaps a proposal in; changes and text out. `act` uses it.

use serde_json::{Value, json};

use crate::answer::hud_block;
use crate::boot::{self, Boot};
use crate::deeds::TurnDeeds;
use crate::delta::apply::{Author, Change, changes, complete};
use crate::delta::{Delta, DeltaItem, text as block};
use crate::dice::{DICE, Dice};
use crate::fetch::{self, Fetched};
use crate::files::ReadFiles;
use crate::grammar::sentence;
use crate::input::{Header, Input, Intent, Move, Refusal, parse};
use crate::json::{difference, render as print};
use crate::pack::{self, PackContext};
use crate::play::{self, Play};
use crate::proposal::{FAILED, FilteredProposal, ProposalFilter, STOPPED, brought, failed, stopped};
use crate::prose::ProseFilter;
use crate::session::{self, Decision};
use crate::state::State;
use crate::telling::tell;
use crate::verbs::Leading;
use crate::world::Cartridge;
use crate::{campaign_pages, ending, hud, json, md, menu, questions, refs, render, verbs};
use acheron_base::{Error, Result};

/// The surroundings of an act: cartridge, files of the campaign, seed of the dice, time.
#[derive(Clone, Copy)]
pub struct ActContext<'a> {
    pub world: &'a Cartridge,
    pub files: &'a dyn ReadFiles,
    pub campaign: &'a str,
    pub seed: u64,
    /// The real time, as it stands in the session.
    pub at: &'a str,
}

/// A move as it was understood, with the facts that a narrator may know.
pub struct PreparedTurn {
    pub found: Move,
    pub refs: Vec<String>,
    /// A second order of the input, which is not played.
    pub left: Option<String>,
    pub boot: Boot,
    pub fetched: Fetched,
}

/// The result of a turn.
#[derive(Debug)]
pub struct TurnResult {
    pub changes: Vec<Change>,
    pub output: String,
    pub reports: Vec<String>,
}

/// The longest answer of a model to a question, in characters.
const LONGEST_ANSWER: usize = 1200;

/// A refusal as an error whose sentence is the whole block.
fn refuse(refusal: &Refusal) -> Error {
    Error::invalid(refusal.render().trim_end())
}

/// C0 to C2: what the turn stands on. Changes nothing.
pub fn ready(context: ActContext<'_>, input: &str) -> Result<PreparedTurn> {
    let mut found = match parse(input, &context.world.extra).map_err(|refusal| refuse(&refusal))? {
        Input::Move(found) => found,
        Input::Control(_) => return Err(Error::invalid("a control instruction is no turn")),
    };
    if found.intent != Intent::Ooc
        && let Some(why) = boot::uninitialised(context.files)?
    {
        return Err(refuse(&Refusal::plain(why)));
    }
    let boot = boot::read(context.files, context.world)?;
    if let Some(title) = ending::closed(&boot.state, context.world).filter(|_| found.intent != Intent::Ooc) {
        let sentence =
            format!("the story has ended: {title}; read story.md, or send <play on> to open the campaign again");
        return Err(refuse(&Refusal { sentence, example: "<play on>".into() }));
    }
    let left = second_order(&mut found);
    let refs = match found.intent {
        Intent::Mind | Intent::Ooc => Vec::new(),
        _ => {
            let unclear = |unclear: refs::Unclear| {
                let example = format!("[{}]{{{}}}", found.header.name(), unclear.instead().unwrap_or("around"));
                refuse(&Refusal { sentence: unclear.sentence(), example })
            };
            refs::resolve(&found.body, context.world, &boot.state.hud).map_err(unclear)?
        }
    };
    let fetched = fetch::fetch(&found, &refs, &boot.state, context.world);
    Ok(PreparedTurn { found, refs, left, boot, fetched })
}

/// Takes a second order out of the move.
fn second_order(found: &mut Move) -> Option<String> {
    if found.header == Header::Ooc || found.intent == Intent::Mind {
        return None;
    }
    let leading = match found.header {
        Header::Ask => Leading::Talk,
        Header::Look | Header::Fight | Header::Cast => Leading::Header,
        _ => Leading::Verb,
    };
    let (first, left) = verbs::orders(&found.body, leading);
    let (first, left) = (first.to_owned(), left?.to_owned());
    found.body = first;
    Some(left)
}

/// The whole turn.
pub fn turn(context: ActContext<'_>, input: &str, proposal: Option<&Value>) -> Result<TurnResult> {
    let ready = ready(context, input)?;
    if ready.found.header == Header::Ooc {
        return explain(context, &ready, proposal);
    }
    let rules = &context.world.engine.rules;
    let PreparedTurn { found, refs, left, boot, fetched } = ready;
    let filter = ProposalFilter {
        world: context.world,
        state: &boot.state,
        files: context.files,
        campaign: context.campaign,
        session: &boot.session,
        input,
        pc: &boot.pc.name,
        lines_veils: boot.lines_veils(),
    };
    let filtered = proposal.map(|value| filter.apply(value)).unwrap_or_default();
    let governance = context.files.read("GOVERNANCE_PANEL.md")?.unwrap_or_default();
    let mut state = boot.state.clone();
    state.turn += 1;
    let dice = Dice::new(context.seed, context.campaign, state.turn);
    let mut play = Play {
        world: context.world,
        rules,
        found: &found,
        refs: &refs,
        pc: &boot.pc,
        judged: &filtered.judged,
        governance: &governance,
        left: left.as_deref(),
        state,
        dice,
        out: play::Outcome::default(),
        settled: None,
    };
    play::run(&mut play)?;
    archive(context, input, &found, &boot, fetched, &filtered, play)
}

/// Questions about the rules: an answer with its page, and nothing changes. The page's own sentence comes first; a model's answer is
/// marked as its own, and stands only where a page speaks of the question.
fn explain(context: ActContext<'_>, ready: &PreparedTurn, proposal: Option<&Value>) -> Result<TurnResult> {
    let found = questions::find(&ready.found.body, context.world);
    let (state, input) = (&ready.boot.state, ready.found.body.as_str());
    let (pc, lines_veils) = (&ready.boot.pc.name, ready.boot.lines_veils());
    let prose =
        ProseFilter { world: context.world, state, input, pc, filed: &[], lines_veils, untold: Default::default() };
    let (mut answer, mut reports) = (found.answer.clone(), Vec::new());
    let said = proposal.and_then(|value| value["answer"].as_str());
    if said.is_some() && !found.known {
        reports.push("answer: no page of the rules speaks of that, and a narrator makes no rules".into());
    } else if let Some(said) = said {
        let cleaned = prose.explanation(&md::clip(said, LONGEST_ANSWER), &format!("{}\n{}", found.text, found.answer));
        reports.extend(cleaned.reports.iter().map(|why| prose.discreet(&format!("answer: {why}"))));
        if !cleaned.text.is_empty() {
            answer = format!("{}\nThe narrator's words, which are no rule: {}", found.answer, cleaned.text);
        }
    } else if let Some(why) = proposal.and_then(|value| value[FAILED].as_str()) {
        reports.push(failed(&prose, why));
    } else if let Some(why) = proposal.and_then(|value| value[STOPPED].as_str()) {
        reports.push(stopped(why));
    }
    let output = format!("[OOC]\n{answer}\n(see {})\n{}", found.page, hud_block(context)?);
    Ok(TurnResult { changes: Vec::new(), output, reports })
}

/// C4 to C7: the pages, and the delta that carries them.
fn archive(
    context: ActContext<'_>,
    input: &str,
    found: &Move,
    boot: &Boot,
    fetched: Fetched,
    filtered: &FilteredProposal,
    play: Play<'_>,
) -> Result<TurnResult> {
    let (world, out, mut state) = (context.world, play.out, play.state);
    for stem in filtered.delta.items.iter().filter_map(|item| brought(&item.path)) {
        state.memory.brought.entry(stem.to_owned()).or_insert_with(|| state.location.clone());
    }
    let deeds = TurnDeeds::new(world, &boot.state, &state, &boot.pc.name).of_move(play.refs, &found.body, &out);
    let text = tell(filtered, &out, &deeds);
    let reports: Vec<String> = filtered.reports.iter().chain(&out.reports).chain(&text.reports).cloned().collect();
    let scene = text.scene.clone().unwrap_or_else(|| render::scene(&state, world, &out.action));
    if text.scene.is_none() {
        // Only a scene of the kernel shows the next fact of the place.
        *state.memory.scenes.entry(state.location.clone()).or_insert(0) += 1;
    }
    let entries = hud::entries(&state, world);
    state.hud = hud::bindings(&entries);
    let options = menu::build(&state, world, &text.options);
    let output = render::output(&render::Page {
        scene: &scene,
        action: &text.action,
        out: &out,
        risk: found.risk.map(|risk| format!("{risk:?}").to_lowercase()).as_deref(),
        menu: &options,
        hud: &hud::render(&state, world, &entries),
        guide: boot.guide(),
        corrections: &boot.corrections,
    });
    let panel = state.write(&boot.panel);
    let resolution = render::resolution(&out);
    let on_disk = json::read("STATE_PANEL.json", &context.files.read("STATE_PANEL.json")?.unwrap_or_default())?;
    let decision = Decision {
        turn: state.turn,
        title: found.action_summary.clone(),
        real_time: context.at.to_owned(),
        world_time: state.time.to_string(),
        input: input.to_owned(),
        rolls: out.checks.iter().map(|check| format!("{} ({})", check.formula, check.tier.name())).collect(),
        resolution: resolution.clone(),
        consequences: out
            .consequences
            .iter()
            .cloned()
            .chain(out.cost.iter().map(|own| format!("cost: {own}")))
            .collect(),
        indicators: out.indicators.clone(),
        clocks: out.clocks.clone(),
        found: out.found.clone(),
        told: told(text.scene.as_deref(), &text.action, &out),
        corrections: boot.corrections.clone(),
        reports: reports.clone(),
        set_aside: text.set_aside.clone(),
        state: difference(&boot.panel, &panel).unwrap_or_else(|| json!({})),
        panel: print(&panel),
    }
    .render();
    let around = PackContext {
        pc: boot.pc.name.clone(),
        style: boot.style.clone(),
        hooks: menu::hooks(&state, world),
        last: resolution,
    };
    let mut delta =
        Delta { items: vec![DeltaItem::append(&boot.session, decision.clone())], risk_flags: fetched.risk_flags };
    let mut patch = |path: &str, before: &Value, after: &Value| {
        if let Some(patch) = difference(before, after) {
            delta.items.push(DeltaItem::patch(path, format!("{patch:#}")));
        }
    };
    patch("STATE_PANEL.json", &on_disk, &panel);
    patch("HOT_PACK.json", &boot.pack, &hot_pack(boot, &state, world, &around));
    campaign_pages::panels(context, &boot.session, &boot.state, &state, &mut patch)?;
    if delta.items.iter().all(|item| item.path != "HOT_PACK.json") {
        delta.items.push(DeltaItem::patch("HOT_PACK.json", "{}"));
    }
    pages(context, boot, &state, play.settled, &mut delta)?;
    delta.items.extend(filtered.delta.items.iter().cloned());
    complete(&delta, &boot.session)?;
    // The block is read back before it is obeyed: what stands in `delta` is what was done.
    let written = block::render(&delta);
    let mut made = changes(&block::parse(&written)?, context.files, context.campaign, &boot.session, Author::Kernel)?;
    made.extend(windows(context, boot, &decision)?);
    let mut write = |path: &str, text: String| made.push(Change::Write { path: path.to_owned(), text });
    write(".kernel/output.md", output.clone());
    write(".kernel/delta.md", written);
    write(".kernel/menu.json", print(&json!(options)));
    write(".kernel/hud.json", print(&json!(entries)));
    write(".kernel/boot.md", boot.summary(world));
    if !play.dice.thrown.is_empty() {
        made.push(Change::Append { path: DICE.into(), text: play.dice.log() });
    }
    let aside = text.set_aside.iter().map(|own| format!("set aside: {own}"));
    Ok(TurnResult { changes: made, output, reports: reports.into_iter().chain(aside).collect() })
}

/// What the player was told, for the record: a narrator's scene, the action, key text, the inner voice, the epilogue.
fn told(scene: Option<&str>, action: &str, out: &play::Outcome) -> String {
    let mut text = scene.map(|scene| format!("{scene} ")).unwrap_or_default();
    text.push_str(action);
    for more in out.text.iter().chain(&out.inner) {
        text.push_str(&format!(" {}", sentence(more)));
    }
    if let Some(ending) = &out.epilogue {
        text.push_str(&format!(" Epilogue, {}:", ending.title));
        ending.lines.iter().for_each(|line| text.push_str(&format!(" {}", sentence(line))));
    }
    text
}

fn hot_pack(boot: &Boot, state: &State, world: &Cartridge, around: &PackContext) -> Value {
    let mut pack = boot.pack.clone();
    pack["context"] = pack::context(state, world, around, &boot.pack["context"]);
    if boot.guide() {
        pack["context"]["guide_shown"] = json!(1);
    }
    pack
}

/// The Markdown pages that a turn keeps up: the quest log when quests moved, the world every fifth turn, index, roster and
/// companion when they changed, governance when settled.
fn pages(
    context: ActContext<'_>,
    boot: &Boot,
    state: &State,
    settled: Option<String>,
    delta: &mut Delta,
) -> Result<()> {
    let world = context.world;
    let mut section = |path: &str, text: String| -> Result<()> {
        if context.files.read(path)?.is_some() {
            delta.items.push(DeltaItem::section(path, text));
        }
        Ok(())
    };
    if boot.state.quests != state.quests {
        let row = |(handle, quest): (&String, &crate::state::Progress)| {
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
    let roster = campaign_pages::roster(state, world, context.files)?;
    let index = campaign_pages::index(state, world, &boot.session);
    for (path, sections) in [
        (campaign_pages::INDEX, index.to_vec()),
        (campaign_pages::ROSTER, roster),
        (campaign_pages::COMPANION, vec![campaign_pages::companion(state, world)]),
    ] {
        let page = context.files.read(path)?.unwrap_or_default();
        for text in sections.into_iter().filter(|text| !campaign_pages::stands(&page, text)) {
            section(path, text)?;
        }
    }
    if let Some(panel) = settled {
        for chapter in crate::mechanics::governance::CHAPTERS {
            let body = md::section(&panel, chapter).unwrap_or_default().trim().to_owned();
            section("GOVERNANCE_PANEL.md", format!("## {chapter}\n\n{body}"))?;
        }
    }
    Ok(())
}

/// The two windows on the session: the last two turns verbatim, one digest more of what came before.
fn windows(context: ActContext<'_>, boot: &Boot, decision: &str) -> Result<Vec<Change>> {
    let kept = session::turns(&boot.snapshot);
    let last = kept.last().map(|turn| format!("{turn}\n\n")).unwrap_or_default();
    let snapshot = session::snapshot(&format!("{last}{decision}"));
    let (path, digest_path) = (session::snapshot_path(&boot.session), session::compressed_path(&boot.session));
    let mut made = vec![Change::Write { path: path.clone(), text: snapshot }];
    let before = context.files.read(&digest_path)?;
    let fresh = before.is_none();
    let start = match before {
        Some(_) => String::new(),
        // An origin's session has turns that were never digested.
        None => session::compressed(&context.files.read(&boot.session)?.unwrap_or_default()),
    };
    let leaving = if kept.len() >= 2 { session::digest(kept[kept.len() - 2]) } else { String::new() };
    let text = format!("{start}{leaving}");
    if fresh {
        made.push(Change::Write { path: digest_path, text });
    } else if !text.is_empty() {
        made.push(Change::Append { path: digest_path, text });
    }
    let index = format!("# Sessions\n\n- newest snapshot: {path}\n");
    if context.files.read("sessions/SESSION_INDEX.md")?.as_deref() != Some(index.as_str()) {
        made.push(Change::Write { path: "sessions/SESSION_INDEX.md".into(), text: index });
    }
    Ok(made)
}
