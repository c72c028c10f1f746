//! Initialisation of a campaign: the questions, and the changes that the answers lead to. A wrong answer changes nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::boot::BOOTSTRAP;
use crate::delta::apply::Change;
use crate::files::{ReadFiles, need};
use crate::grammar::the;
use crate::json::render as print;
use crate::memory::Memory;
use crate::pack::{self, PackContext};
use crate::session::{self, Decision};
use crate::state::{Clock, FULL_HP, State};
use crate::time::Time;
use crate::world::{Cartridge, Hook, ObjectKind};
use crate::{boot, campaign_pages, hud, json, md, menu, refs};
use acheron_base::{Error, Result};

/// What is asked, and what may be answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Answers {
    /// YYYY-MM-DD; today where absent.
    pub date: String,
    /// The name of the session file, made from the character's name where absent.
    pub slug: String,
    /// One of the five presets, in English or Chinese.
    pub preset: String,
    pub style: String,
    pub difficulty: String,
    pub rules: String,
    pub pacing: String,
    pub combat_freq: String,
    pub mystery_vs_action: String,
    pub lines_veils: String,
    /// The character's name. Required.
    pub pc_name: String,
    pub pc_archetype: String,
    pub pc_drive: String,
    /// Words; those that name a stat (str, dex, int, will, cha) raise it.
    pub pc_strengths: String,
    pub pc_weakness: String,
    pub pc_bg_hook: String,
    /// A place by handle or name; the cartridge's own start where absent.
    pub start_loc: String,
    pub start_hook: String,
}

/// English and Chinese name, then STYLE to MYSTERY_VS_ACTION.
const PRESETS: [(&str, &str, [&str; 6]); 5] = [
    ("Easy Narrative", "轻松叙事", ["gentle, light", "easy", "narrative first", "fast", "low", "action"]),
    ("Standard Adventure", "标准冒险", ["epic, bright", "standard", "compromise", "medium", "medium", "balanced"]),
    (
        "Hardcore Realistic",
        "硬核写实",
        [
            "realistic, high pressure",
            "hardcore",
            "rules first",
            "slow",
            "low but lethal",
            "action, strong consequences",
        ],
    ),
    (
        "Mystery Investigation",
        "悬疑调查",
        ["realistic, suspense", "standard", "compromise", "medium", "low", "investigation first"],
    ),
    (
        "Religious Horror",
        "宗教恐怖",
        [
            "horror, religion, omens",
            "standard to hardcore",
            "compromise",
            "slow",
            "low",
            "horror and investigation first",
        ],
    ),
];

/// The questions of step A to C.
pub fn questionnaire(world: &Cartridge) -> String {
    let presets: Vec<&str> = PRESETS.iter().map(|(english, ..)| *english).collect();
    let hooks: String =
        world.hooks.iter().take(3).zip(1..).map(|(hook, n)| format!("   {n}. {}\n", hook.text)).collect();
    format!(
        "[Initialize] {}\n\
         A. How shall it be? `preset`: {}; or style, difficulty, rules, pacing, combat_freq, mystery_vs_action. `lines_veils`: what to leave out.\n\
         B. Who are you? `pc_name` (required), pc_archetype, pc_drive, pc_strengths, pc_weakness, pc_bg_hook.\n\
         C. How does it begin? `start_loc`, `start_hook`:\n{hooks}\
         Nothing is written until the answers are given with \"confirm\": true to the operation `init`.\n",
        world.title,
        presets.join(", "),
    )
}

/// The answer to `<initialize>`: the questions, or the refusal that the operation gives too.
pub fn asked(files: &dyn ReadFiles, world: &Cartridge) -> Result<String> {
    unbegun(files)?;
    Ok(questionnaire(world))
}

fn unbegun(files: &dyn ReadFiles) -> Result<()> {
    match boot::current(files)? == BOOTSTRAP {
        true => Ok(()),
        false => Err(Error::already_exists("the campaign is initialised already; <continue> picks it up")),
    }
}

/// The slug of a name: lower case, everything else a dash; `init` where nothing is left.
fn slug(text: &str) -> String {
    let dashed: String = text.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let parts: Vec<&str> = dashed.split('-').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "init".into() } else { parts.join("-").chars().take(40).collect() }
}

fn dated(text: &str) -> Option<()> {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return None };
    let digits =
        [year.len(), month.len(), day.len()] == [4, 2, 2] && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let (year, month, day): (u32, u32, u32) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (digits && (1..=last).contains(&day)).then_some(())
}

/// The longest name of a character.
const LONGEST_NAME: usize = 60;

/// A preference's line, on one line.
fn line(text: &str) -> String {
    md::clip(&text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "/"), 200)
}

impl Answers {
    /// The seven preferences, in their order.
    fn preferences(&self) -> Result<Vec<(&'static str, String)>> {
        let preset = match self.preset.trim() {
            "" => None,
            name => {
                let found =
                    PRESETS.iter().find(|(english, chinese, _)| english.eq_ignore_ascii_case(name) || *chinese == name);
                let names: Vec<&str> = PRESETS.iter().map(|(english, ..)| *english).collect();
                let unknown = || {
                    Error::invalid(format!(
                        "unknown preset: {} (expected one of: {})",
                        md::clip(name, 40),
                        names.join(", ")
                    ))
                };
                Some(found.ok_or_else(unknown)?)
            }
        };
        let own =
            [&self.style, &self.difficulty, &self.rules, &self.pacing, &self.combat_freq, &self.mystery_vs_action];
        if preset.is_none() && own.iter().all(|text| text.trim().is_empty()) {
            return Err(Error::invalid("no preferences provided; give a preset, or style, difficulty and the rest"));
        }
        let keys = ["STYLE", "DIFFICULTY", "RULES", "PACING", "COMBAT_FREQ", "MYSTERY_VS_ACTION"];
        let mut out: Vec<(&str, String)> = Vec::new();
        for (at, key) in keys.into_iter().enumerate() {
            let given = line(own[at]);
            let value =
                if given.is_empty() { preset.map_or("-", |(_, _, values)| values[at]).to_owned() } else { given };
            out.push((key, value));
        }
        let veils = line(&self.lines_veils);
        out.push(("LINES_VEILS", if veils.is_empty() { "-".into() } else { veils }));
        Ok(out)
    }

    fn modifiers(&self) -> Value {
        let words = refs::normal(&self.pc_strengths);
        let strong =
            |names: &[&str]| if names.iter().any(|name| words.split(' ').any(|word| word == *name)) { 3 } else { 1 };
        json!({
            "str": strong(&["str", "strong", "strength"]), "dex": strong(&["dex", "quick", "nimble", "stealth"]),
            "int": strong(&["int", "clever", "observant", "learned"]), "will": strong(&["will", "stubborn", "faith"]),
            "cha": strong(&["cha", "charming", "persuasive"]),
        })
    }
}

/// The summary that is shown before the confirmation. Checks the answers as `init` does.
pub fn summary(answers: &Answers, files: &dyn ReadFiles, world: &Cartridge, at: &str) -> Result<String> {
    init(answers, files, world, at)?;
    let preferences: Vec<String> = answers.preferences()?.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let own = [
        (
            "character",
            [line(&answers.pc_name), line(&answers.pc_archetype)].join(" · ").trim_end_matches(" · ").to_owned(),
        ),
        ("drive", line(&answers.pc_drive)),
        ("strengths", line(&answers.pc_strengths)),
        ("weakness", line(&answers.pc_weakness)),
        ("beginning", hook(answers, world)?.text),
    ];
    let own = own.iter().filter(|(_, text)| !text.is_empty()).map(|(key, text)| format!("{key}: {text}\n"));
    Ok(format!("[Initialize] to confirm\n{}\n{}", preferences.join("\n"), own.collect::<String>()))
}

/// Every product of the initialisation, or the first thing that is wrong.
pub fn init(answers: &Answers, files: &dyn ReadFiles, world: &Cartridge, at: &str) -> Result<Vec<Change>> {
    unbegun(files)?;
    for (key, text) in serde_json::json!(answers).as_object().into_iter().flatten() {
        md::plain(key, text.as_str().unwrap_or_default())?;
    }
    let name = line(&answers.pc_name);
    if name.is_empty() {
        return Err(Error::invalid("missing PC fields; give pc_name"));
    }
    if name.chars().count() > LONGEST_NAME {
        return Err(Error::invalid(format!("pc_name: a name has at most {LONGEST_NAME} characters")));
    }
    if answers.pc_name.contains(['[', ']', '{', '}', '<', '>', '|', '\n']) {
        return Err(Error::invalid("pc_name: a name has no brackets, bars or line breaks"));
    }
    let date = if answers.date.is_empty() { at.get(..10).unwrap_or(at) } else { &answers.date };
    dated(date).ok_or_else(|| Error::invalid(format!("invalid date (expected YYYY-MM-DD): {}", md::clip(date, 20))))?;
    let preferences = answers.preferences()?;
    let own = slug(if answers.slug.is_empty() { &name } else { &answers.slug });
    let session = format!("sessions/session_{date}_{own}.md");
    if files.read(&session)?.is_some() {
        return Err(Error::already_exists(format!("session already exists: {session}")));
    }
    let start = start(answers, world)?;
    let Hook { text: hook, carries } = hook(answers, world)?;
    let state = opening(world, &start, &carries);
    if let Some(gate) = state.shut(&start, world) {
        let why = if gate.reason.is_empty() { "it is shut" } else { &gate.reason };
        let place = the(world.name(&start));
        return Err(Error::invalid(format!("the story cannot begin at {place}: {why}; leave start_loc out")));
    }
    let panel = state.write(&json::read("STATE_PANEL.json", &need(files, "STATE_PANEL.json")?)?);
    let style = preferences.iter().find(|(key, _)| *key == "STYLE").map(|(_, value)| value.clone()).unwrap_or_default();
    let around = PackContext { pc: name.clone(), style, hooks: menu::hooks(&state, world), last: hook.clone() };
    let mut hot = json::read("HOT_PACK.json", &need(files, "HOT_PACK.json")?)?;
    let mainline = mainline(world, &around, &mut hot);
    hot["context"] = pack::context(&state, world, &around, &hot["context"]);
    hot["context"]["voice"] = json!(line(&answers.pc_archetype));
    let decision = Decision {
        turn: 0,
        title: "the opening".into(),
        real_time: at.to_owned(),
        world_time: state.time.to_string(),
        input: "<initialize>".into(),
        resolution: hook.clone(),
        state: panel.clone(),
        panel: print(&panel),
        ..Decision::default()
    }
    .render();
    let text = format!("# Session {date} · {name}\n\n{decision}");
    let profile: String = preferences.iter().map(|(key, value)| format!("- {key}={value}\n")).collect();
    let entries = hud::entries(&state, world);
    let index = format!("# Index\n\n{}", campaign_pages::index(&state, world, &session).join("\n"));
    let files = [
        (campaign_pages::INDEX, index),
        ("PLAYER_PROFILE.md", format!("# Player profile\n\n## Preferences\n\n{profile}")),
        ("characters/PCs/pc_current.md", character(answers, &name)),
        (session.as_str(), text.clone()),
        ("sessions/CURRENT_SESSION.md", format!("{session}\n")),
        ("STATE_PANEL.json", print(&panel)),
        ("HOT_PACK.json", print(&hot)),
        ("MAINLINE_PANEL.json", print(&mainline)),
        (".DM_BLUEPRINT.md", blueprint(world)),
        (".DM_PLANNER.md", planner(world)),
        (&session::snapshot_path(&session), session::snapshot(&text)),
        (&session::compressed_path(&session), session::COMPRESSED.to_owned()),
        (
            "sessions/SESSION_INDEX.md",
            format!("# Sessions\n\n- newest snapshot: {}\n", session::snapshot_path(&session)),
        ),
        (".kernel/hud.json", print(&json!(entries))),
        (".kernel/menu.json", print(&json!(menu::build(&state, world, &[])))),
        (".kernel/output.md", format!("[Initialize] {name} stands at {}. {hook}\n", world.name(&state.location))),
    ];
    Ok(files.into_iter().map(|(path, text)| Change::Write { path: path.to_owned(), text }).collect())
}

/// The main line of the story: its panel, and the same in short for the hot pack.
fn mainline(world: &Cartridge, around: &PackContext, hot: &mut Value) -> Value {
    let important = world.of(ObjectKind::Npc).filter(|npc| npc.field("important") == "yes");
    let key_npcs: Vec<&str> = important.map(|npc| npc.handle.as_str()).take(8).collect();
    let beats: Vec<&str> =
        world.quests.iter().filter(|quest| quest.main).map(|quest| world.name(&quest.handle)).collect();
    hot["spine"] = json!(world.spine);
    hot["key_npcs"] = json!(key_npcs);
    hot["theme"] = json!(if world.theme.is_empty() { "-" } else { &world.theme });
    hot["mainline"] = json!(beats.first().unwrap_or(&"-"));
    json!({"mainline": beats, "next_beat": around.hooks, "key_npcs": key_npcs})
}

/// The beginning: one of the cartridge by its number or its words, else the player's own; the first where none is given.
fn hook(answers: &Answers, world: &Cartridge) -> Result<Hook> {
    let given = line(&answers.start_hook);
    if given.is_empty() {
        let none = || Hook { text: "it begins".into(), carries: Vec::new() };
        return Ok(world.hooks.first().cloned().unwrap_or_else(none));
    }
    let number = given.trim_start_matches("hook").trim().trim_end_matches('.');
    if !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()) {
        let found = number.parse::<usize>().ok().and_then(|n| world.hooks.get(n.checked_sub(1)?));
        let most = world.hooks.len();
        return found
            .cloned()
            .ok_or_else(|| Error::invalid(format!("start_hook: there is no hook {number}; they are 1 to {most}")));
    }
    let own = world.hooks.iter().find(|hook| refs::normal(&hook.text) == refs::normal(&given)).cloned();
    Ok(own.unwrap_or(Hook { text: given, carries: Vec::new() }))
}

fn start(answers: &Answers, world: &Cartridge) -> Result<String> {
    let wanted = line(&answers.start_loc);
    if matches!(wanted.as_str(), "" | "-") {
        return Ok(if world.start.is_empty() { "-".into() } else { world.start.clone() });
    }
    let found =
        refs::resolve(&wanted, world, &Default::default()).map_err(|unclear| Error::invalid(unclear.sentence()))?;
    let place = found.into_iter().find(|own| {
        world.object(own).is_some_and(|object| object.kind == ObjectKind::Loc && object.status != "hidden")
    });
    place.ok_or_else(|| Error::not_found(format!("there is no place `{wanted}` in {}", world.title)))
}

/// The world as it is before anything has happened.
fn opening(world: &Cartridge, start: &str, carries: &[String]) -> State {
    let time = Time::read("day 1, 08:00");
    let mut state = State {
        ate: time.minutes(),
        memory: Memory { drank: time.minutes(), ..Memory::default() },
        time,
        location: start.to_owned(),
        hp: FULL_HP,
        indicators: world.indicators.iter().map(|own| (own.name.clone(), own.start)).collect(),
        clocks: world
            .clocks
            .iter()
            .map(|face| Clock { id: face.id.clone(), segments: face.segments, filled: 0, visible: face.visible })
            .collect(),
        seen: vec![start.to_owned()],
        inventory: world.carries.iter().chain(carries).cloned().collect(),
        ..State::default()
    };
    for quest in &world.quests {
        let open = world.object(&quest.handle).is_some_and(|object| object.status != "hidden");
        if open && state.holds(&quest.opens) {
            state.quests.entry(quest.handle.clone()).or_default().status = "active".into();
        }
    }
    state.hud = hud::bindings(&hud::entries(&state, world));
    state
}

fn character(answers: &Answers, name: &str) -> String {
    let cell = |text: &str| Some(line(text)).filter(|text| !text.is_empty()).unwrap_or_else(|| "-".into());
    let rows = [
        ("Name", name.to_owned()),
        ("Archetype", cell(&answers.pc_archetype)),
        ("Drive", cell(&answers.pc_drive)),
        ("Strengths", cell(&answers.pc_strengths)),
        ("Weakness", cell(&answers.pc_weakness)),
        ("Background hook", cell(&answers.pc_bg_hook)),
        ("Weapon", "dagger".into()),
        ("Armour", "leather".into()),
        ("Modifiers", answers.modifiers().to_string()),
    ];
    let rows: String = rows.iter().map(|(key, value)| format!("| {key} | {value} |\n")).collect();
    format!("# Character\n\n| Field | Value |\n|---|---|\n{rows}")
}

/// The backstage skeleton, from what the cartridge has: arcs, people, conflicts, ways in. Guidance, never fact.
fn blueprint(world: &Cartridge) -> String {
    let list = |lines: Vec<String>| lines.into_iter().map(|line| format!("- {line}\n")).collect::<String>();
    let arcs = world.of(ObjectKind::Quest).take(4).map(|quest| format!("{}: {}", quest.name, quest.summary)).collect();
    let people = world.of(ObjectKind::Npc).filter(|npc| npc.field("important") == "yes").take(8);
    let people = people.map(|npc| format!("{} ({})", npc.name, npc.field("role"))).collect();
    let conflicts = world
        .quests
        .iter()
        .filter(|quest| !quest.stakes.is_empty())
        .take(4)
        .map(|quest| quest.stakes.clone())
        .collect();
    let ways = world.quests.iter().filter(|quest| !quest.main).take(3);
    let ways =
        ways.map(|quest| format!("{}, back at {}", world.name(&quest.handle), world.name(&quest.return_to))).collect();
    let spine = world.spine.clone();
    format!(
        "# Blueprint (guidance, not fact)\n\n## SPINE\n\n{}\n## Arcs\n\n{}\n## Key people\n\n{}\n## Conflicts\n\n{}\n## Side entrances\n\n{}",
        list(spine),
        list(arcs),
        list(people),
        list(conflicts),
        list(ways)
    )
}

fn planner(world: &Cartridge) -> String {
    let fronts: String = world.clocks.iter().map(|face| format!("- {}: {}\n", face.id, face.event)).collect();
    format!("# Planner (hidden)\n\n## Fronts\n\n{fronts}\n## Next session\n\n- follow the players\n")
}
