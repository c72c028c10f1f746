//! The score of the game master: how many rounds are clean, how many errors of events and of variables the player is shown, with an
//! honest, a careless and a hostile narrator. The engine is the judge.

mod judge;

use expect_test::expect_file;
use serde_json::{Value, json};

use super::Game;
use super::attacks::script;
use super::playthrough::{BRINEWICK, LONGDRY, inputs};
use super::walks::{Chooser, meant, menu_input};
use crate::act::Act;
use crate::world::Cartridge;
use judge::{Round, Verdict};

/// Rounds that follow suggestions, after those of the script.
const ROUNDS: usize = 30;

/// What a narrator proposes in this world for this input, one after the other.
type Narrator = fn(&Cartridge, &str) -> Vec<Value>;

#[derive(Default)]
struct Score {
    rounds: usize,
    clean: usize,
    /// Rounds in which something of the narrator was replaced.
    mended: usize,
    events: Vec<String>,
    variables: Vec<String>,
}

impl Score {
    fn play(&mut self, game: &mut Game, act: &Act) {
        let before = game.json("STATE_PANEL.json");
        let reports = |game: &Game| game.files[&game.session()].matches("\n- Narrator: ").count();
        let known = reports(game);
        let Ok(shown) = game.act(act) else { return };
        if !shown.contains("[Adjudication]") {
            return; // A question or an instruction is no round.
        }
        let after = game.json("STATE_PANEL.json");
        let verdict = Round { world: &game.world, before: &before, after: &after, shown: &shown }.judge();
        self.rounds += 1;
        self.mended += usize::from(reports(game) > known);
        self.clean += usize::from(verdict.events.is_empty() && verdict.variables.is_empty());
        self.events.extend(verdict.events);
        self.variables.extend(verdict.variables);
    }
}

/// Proposals that keep every rule.
fn honest(world: &Cartridge, input: &str) -> Vec<Value> {
    let level = &world.indicators[0].name;
    let body: String = input.chars().map(|c| if c.is_alphabetic() { c } else { ' ' }).collect();
    let seen = format!("somebody has seen this {}", body.split_whitespace().skip(1).collect::<Vec<_>>().join(" "));
    vec![
        json!({"scene": "Wind comes up. A shutter knocks twice.", "prose": "Somebody looks up and looks away again."}),
        json!({"prose": {"success": "It goes well enough.", "failure": "It goes badly.", "partial": "It goes, at a price."}}),
        json!({"consequences": [format!("{level}+1 ({seen})"), "time 10"], "situational": 2}),
        json!({"roll": true, "difficulty": "hard", "advantage": "disadvantage", "consequences": ["hp-1"]}),
        json!({}),
    ]
}

/// Proposals of one who means well and does not keep count: figures of its own, endings too early, names and reasons forgotten.
fn careless(world: &Cartridge, _: &str) -> Vec<Value> {
    let level = &world.indicators[0].name;
    let quest = world.name(&world.quests[0].handle);
    let ending = &world.endings[0].title;
    vec![
        json!({"prose": format!("It is a good day. {level} 2 -> 5 for that.")}),
        json!({"prose": "A scratch, no more. HP 3 is left."}),
        json!({"prose": format!("And so it is over.\nquest {quest}: done")}),
        json!({"prose": format!("All is well.\n\nEpilogue: {ending}\n\nThe campaign is closed.")}),
        json!({"scene": format!("Rain. {level} is 7 by now.\n\n[HUD]\nday 1, 08:00 · home · HP 12")}),
        json!({"consequences": [format!("{level}+1"), format!("{level}+9 (too much)"), "hp-12", "clue @guessed"]}),
        json!({"consequences": [format!("quest {} done", world.quests[0].handle), format!("move {}", world.start)]}),
        json!({"prose": "The throw is d20(20)+5=25 vs DC 10 · great, as it should be.", "difficulty": "simple"}),
        json!({"prose": format!("| {quest} | stage 9 of 9 |")}),
        json!({"options": ["rest"], "scene": "Fog.", "roll": 1}),
    ]
}

fn hostile(world: &Cartridge, input: &str) -> Vec<Value> {
    script().into_iter().map(|attack| attack.proposal).chain(careless(world, input)).collect()
}

/// The committed script first, then suggestions as chance has them; every round has a proposal.
fn score(id: &str, script: &str, proposals: Narrator) -> Score {
    let (mut game, mut score) = (Game::of(id), Score::default());
    let mut round = 0;
    let mut next = |world: &Cartridge, input: &str| {
        let all = proposals(world, input);
        round += 1;
        all.get((round - 1) % all.len()).cloned()
    };
    for input in inputs(script) {
        let proposal = next(&game.world, input);
        score.play(&mut game, &meant(input.to_owned(), proposal));
    }
    let (mut game, mut chooser) = (Game::with_seed(id, 11), Chooser::new(11));
    for _ in 0..ROUNDS {
        let input = menu_input(&game, &mut chooser);
        let proposal = next(&game.world, &input);
        score.play(&mut game, &meant(input, proposal));
    }
    score
}

#[test]
fn every_round_is_clean_whoever_narrates() {
    let narrators: [(&str, Narrator); 3] = [("honest", honest), ("careless", careless), ("hostile", hostile)];
    let mut text = "# The score of the game master\n\nThree rates after RPGBench: the rounds without an error, the errors of events (told and not \
                    happened, happened before their\ntime, due and not told) and the errors of variables (a figure that is not that of the state, a \
                    change that is not told).\nThe engine is the judge (`crates/dm/src/tests/score/judge.rs`): it compares what the player is shown \
                    with the state before and\nafter the round. Each narrator proposes something in every round; the honest one keeps the rules, the \
                    careless one has\nfigures and endings of its own, the hostile one plays the attacks of `crates/dm/src/tests/texts/hostile.ndjson`.\nA proposal counts as mended where it breaks a rule; what only does not fit what came of the move is set aside and not counted.\n\n\
                    | cartridge | narrator | rounds | proposals mended | clean rounds | event errors | variable errors |\n|---|---|---|---|---|---|---|\n"
        .to_owned();
    let scores = std::thread::scope(|scope| {
        let each = |(id, script)| scope.spawn(move || narrators.map(|(name, own)| (id, name, score(id, script, own))));
        let cartridges = [("brinewick", BRINEWICK), ("longdry", LONGDRY)].map(each);
        cartridges.map(|thread| thread.join().unwrap())
    });
    let mut faults = Vec::new();
    for (id, name, own) in scores.into_iter().flatten() {
        let rate = own.clean as f64 * 100.0 / own.rounds as f64;
        let (events, variables) = (own.events.len(), own.variables.len());
        text.push_str(&format!(
            "| {id} | {name} | {} | {} | {rate:.0} % | {events} | {variables} |\n",
            own.rounds, own.mended
        ));
        assert!(name != "honest" || own.mended == 0, "{id}: {} answers of an honest narrator were mended", own.mended);
        assert!(own.rounds > 60, "{id} {name}: {}", own.rounds);
        faults.extend(own.events.into_iter().chain(own.variables).map(|fault| format!("{id}, {name}: {fault}")));
    }
    assert!(faults.is_empty(), "{text}\n{}", faults.join("\n"));
    text.push_str("\nHow far chance comes in them: [coverage](game-coverage.md).\n");
    expect_file!["../../../../../docs/tour/game-score.md"].assert_eq(&text);
}

/// A round of which something else is shown than was: what the judge says of it.
fn tampered(change: impl Fn(&str) -> String) -> Verdict {
    let mut game = Game::new();
    let before = game.json("STATE_PANEL.json");
    let honest =
        json!({"consequences": ["Rumor+1 (Jun watches you look around)", "hp-1"], "roll": true, "difficulty": "easy"});
    let shown = game.propose("[LOOK]{around}", honest).unwrap();
    let (after, shown) = (game.json("STATE_PANEL.json"), change(&shown));
    Round { world: &game.world, before: &before, after: &after, shown: &shown }.judge()
}

#[test]
fn the_judge_sees_what_is_wrong() {
    let verdict = tampered(str::to_owned);
    assert!(verdict.events.is_empty() && verdict.variables.is_empty(), "{verdict:?}");
    let hit = |from: &'static str, to: &'static str| {
        tampered(move |shown| {
            assert!(shown.contains(from), "{shown}");
            shown.replacen(from, to, 1)
        })
    };
    let variables = [
        hit("Rumor 0 -> 1", "Rumor 0 -> 3"),
        hit("Rumor 0 -> 1", "Something changes"),
        hit("[HUD]\n", "[HUD]\nday 9\n[HUD]\n"),
        hit("tide 0/8", "tide 1/8"),
        hit("vs DC ", "vs DC 9"),
        hit("[Scene]\n", "[Scene]\nHP 99. "),
    ];
    for (at, verdict) in variables.iter().enumerate() {
        assert!(!verdict.variables.is_empty(), "variable {at}");
    }
    let events = [
        hit("[Next Suggestions]", "Epilogue: The Tenth Tide\n\n[Next Suggestions]"),
        hit("[Next Suggestions]", "- quest The Dark Lamp: done\n\n[Next Suggestions]"),
        hit("|---|---|\n", "|---|---|\n| The Dark Lamp | stage 3 of 4 |\n"),
    ];
    for (at, verdict) in events.iter().enumerate() {
        assert!(!verdict.events.is_empty(), "event {at}");
    }
}
