//! Random walks: whatever is typed in whatever order, nothing breaks inside, the files follow from the journal, and there is always
//! a move that changes something.

use acheron_base::Code;
use expect_test::expect_file;
use serde_json::{Value, json};

use super::Game;
use super::attacks::script;
use crate::act::Act;
use crate::dice::Dice;
use crate::menu;
use crate::state::State;
use crate::world::Cartridge;

/// How many walks, and of how many inputs: a few short ones in a plain run, all of them with `DM_WALKS_ALL=1`. A long campaign is
/// slow to play without optimisation: `DM_WALKS_ALL=1 cargo test --release -p acheron-dm --lib walks` takes minutes.
fn measure() -> (u64, u64) {
    if all() { (200, 200) } else { (3, 60) }
}

fn all() -> bool {
    std::env::var_os("DM_WALKS_ALL").is_some()
}

/// Something that chooses, the same for the same seed.
pub(super) struct Chooser(Dice);

impl Chooser {
    pub fn new(seed: u64) -> Chooser {
        Chooser(Dice::new(seed, "walk", 0))
    }

    fn one_in(&mut self, many: u32) -> bool {
        self.0.throw(many, "") == 1
    }

    pub fn among<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let at = self.0.throw(all.len() as u32, "") as usize - 1;
        self.0.thrown.clear();
        &all[at]
    }
}

const HEADERS: [&str; 6] = ["ACT", "LOOK", "ASK", "FIGHT", "CAST", "MANAGE"];

const VERBS: [&str; 26] = [
    "",
    "go to",
    "take",
    "drop",
    "give",
    "eat",
    "drink",
    "buy",
    "steal",
    "search",
    "look at",
    "talk to",
    "ask about",
    "threaten",
    "hit",
    "open",
    "light",
    "wait",
    "rest until morning",
    "inventory",
    "status",
    "train",
    "harvest",
    "march slowly to",
    "make peace with",
    "use",
];

const ODD: [&str; 12] = [
    "[ACT]{fly to the moon}",
    "[OOC] How do checks work?",
    "[ACT]{inner: doubt}",
    "[MANAGE]{settle}",
    "[MANAGE]{rest}",
    "[LOOK]{around} --risk high",
    "[ACT]{take I9}",
    "[ACT]{}",
    "dance",
    "[CAST]{啊 | \u{202e} `rm` | --risk}",
    "[ACT]{go to @nowhere}",
    "[FIGHT]{everybody at once} --risk low",
];

/// Any input: mostly one of the menu, else words of the world put together, else something odd.
fn input(game: &Game, chooser: &mut Chooser) -> String {
    if chooser.one_in(12) {
        return (*chooser.among(&ODD)).to_owned();
    }
    if chooser.one_in(2) {
        return menu_input(game, chooser);
    }
    let object = chooser.among(&game.world.objects).clone();
    let codes: Vec<String> = game.json("STATE_PANEL.json")["hud"].as_object().unwrap().keys().cloned().collect();
    let code = if codes.is_empty() { "N1".to_owned() } else { chooser.among(&codes).clone() };
    let name = chooser.among(&[object.handle.clone(), object.name.clone(), code.clone(), code]).clone();
    let risk = chooser.among(&["", "", "", " --risk mid", " --risk high"]);
    format!("[{}]{{{} {name}}}{risk}", chooser.among(&HEADERS), chooser.among(&VERBS))
}

pub(super) fn menu_input(game: &Game, chooser: &mut Chooser) -> String {
    let menu = game.json(".kernel/menu.json");
    chooser.among(menu.as_array().unwrap())["input"].as_str().unwrap().to_owned()
}

/// The act that an input is: a menu also offers instructions.
pub(super) fn meant(input: String, proposal: Option<Value>) -> Act {
    match input.as_str() {
        "<play on>" => Act::PlayOn,
        "<continue>" => Act::Load,
        _ => Act::Turn { input, proposal },
    }
}

fn step(game: &Game, attacks: &[Value], chooser: &mut Chooser) -> Act {
    if chooser.one_in(25) {
        return chooser.among(&[Act::Undo, Act::Rebuild, Act::Load, Act::PlayOn]).clone();
    }
    let proposal = chooser.one_in(3).then(|| chooser.among(attacks).clone());
    meant(input(game, chooser), proposal)
}

/// Everything of the panel but the count of turns and scenes, and the codes.
fn standing(game: &Game) -> Value {
    let mut panel = game.json("STATE_PANEL.json");
    let own = panel.as_object_mut().unwrap();
    own.retain(|key, _| !matches!(key.as_str(), "turn" | "scenes" | "hud"));
    panel
}

impl Game {
    fn copy(&self) -> Game {
        let Game { files, world, seed, seq } = self;
        Game { files: files.clone(), world: world.clone(), seed: *seed, seq: *seq }
    }
}

/// Whether some suggestion of the kernel changes something. Each of them is taken: it does not offer what it refuses or does not
/// understand.
fn goes_on(game: &Game) -> bool {
    let state = State::read(&game.json("STATE_PANEL.json"), &game.world);
    let before = standing(game);
    let mut moved = false;
    for input in menu::build(&state, &game.world, &[]).into_iter().map(|item| item.input) {
        let mut next = game.copy();
        let output = next.act(&meant(input.clone(), None)).unwrap_or_else(|fault| panic!("offered {input}: {fault}"));
        assert!(!output.contains("| not understood |"), "offered {input}: {output}");
        moved |= standing(&next) != before;
    }
    moved
}

/// What the walks came to: places, clues, stages and endings.
#[derive(Default)]
pub(super) struct Reached(std::collections::BTreeSet<(&'static str, String)>);

impl Reached {
    pub fn note(&mut self, panel: &Value) {
        let mut all = |kind: &'static str, list: &Value| {
            let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
            self.0.extend(words.map(|word| (kind, word.to_owned())));
        };
        all("places", &panel["seen"]);
        all("clues", &panel["clues"]);
        all("endings", &panel["endings"]);
        for (handle, quest) in panel["quests"].as_object().into_iter().flatten() {
            let done = quest["stage"].as_u64().unwrap_or(0);
            self.0.extend((0..done).map(|stage| ("stages", format!("{handle} {}", stage + 1))));
        }
    }

    pub fn count(&self, kind: &str) -> usize {
        self.0.iter().filter(|(own, _)| *own == kind).count()
    }
}

/// How many there are of each kind.
pub(super) fn all_of(world: &Cartridge) -> [(&'static str, usize); 4] {
    [
        ("places", world.of(crate::world::ObjectKind::Loc).count()),
        ("clues", world.clues.len()),
        ("stages", world.quests.iter().map(|quest| quest.stages.len()).sum()),
        ("endings", world.endings.len()),
    ]
}

fn walk(id: &str, seed: u64, attacks: &[Value], reached: &mut Reached) {
    let (mut game, mut chooser) = (Game::with_seed(id, seed), Chooser::new(seed));
    for at in 0..measure().1 {
        let act = step(&game, attacks, &mut chooser);
        if let Err(fault) = game.act(&act) {
            assert!(fault.code != Code::Internal, "{id} {seed}, input {at}: {act:?}: {fault}");
        }
        reached.note(&game.json("STATE_PANEL.json"));
        if at % 20 == 19 {
            game.lawful();
            assert!(goes_on(&game), "{id} {seed}, input {at}: no move changes anything\n{}", standing(&game));
        }
    }
    game.replayed();
}

fn walks(id: &str) -> Reached {
    let attacks: Vec<Value> = script().into_iter().map(|attack| attack.proposal).chain([json!({})]).collect();
    let mut reached = Reached::default();
    for seed in 0..measure().0 {
        walk(id, seed, &attacks, &mut reached);
    }
    reached
}

/// One row per cartridge: how much of it the walks came to.
fn coverage(walked: &[(&str, Reached)]) -> String {
    let (walks, inputs) = measure();
    let mut text = format!(
        "# How far chance comes in a game\n\nBoth cartridges were walked {walks} times with {inputs} random inputs each: suggestions of the menu, words of \
         the world\nput together by chance, nonsense, undoing and loading, and in every third turn a hostile narrator. None of it led to \
         an\ninternal error; every campaign was equal to a replay of its journal; after each twentieth input some\nsuggestion changed the state. This is what the \
         walks reached, of what there is (see `crates/dm/src/tests/walks.rs`; `DM_WALKS_ALL=1` walks 200 times 200 inputs):\n\n\
         | cartridge | places | clues | stages of quests | endings |\n|---|---|---|---|---|\n"
    );
    for (id, reached) in walked {
        let cells = all_of(&Game::of(id).world).map(|(kind, of)| format!("{} of {of}", reached.count(kind)));
        text.push_str(&format!("| {id} | {} |\n", cells.join(" | ")));
    }
    text
}

#[test]
fn random_walks_break_nothing_and_are_never_stuck() {
    let other = std::thread::spawn(|| walks("longdry"));
    let walked = [("brinewick", walks("brinewick")), ("longdry", other.join().unwrap())];
    let text = coverage(&walked);
    // The page of a full run is not that of a plain one.
    let page = include_str!("../../../../docs/tour/game-coverage.md");
    if all() || !page.contains("walked 200 times") {
        expect_file!["../../../../docs/tour/game-coverage.md"].assert_eq(&text);
    }
    for (id, reached) in walked {
        let [(_, places), ..] = all_of(&Game::of(id).world);
        assert!((2..=places).contains(&reached.count("places")), "{id}: {text}");
    }
}
