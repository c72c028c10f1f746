//! A whole game of each cartridge as the player reads it, from the first page to the ending: the same seed gives the same bytes.

use expect_test::expect_file;

use super::Game;
use super::playthrough::{BRINEWICK, LONGDRY, inputs};

/// Every input of a script with its answer.
fn transcript(id: &str, script: &str, seed: u64) -> (String, Game) {
    let mut game = Game::with_seed(id, seed);
    let mut text = format!("A game of {id} with seed {seed}.\n\n{}", game.files[".kernel/output.md"]);
    for input in inputs(script) {
        let answer = game.play(input).unwrap_or_else(|fault| format!("{}\n", fault.message));
        text.push_str(&format!("\n> {input}\n\n{answer}"));
    }
    (text, game)
}

#[test]
fn a_whole_game_of_each_cartridge_reads_the_same_to_the_byte() {
    let committed = [
        ("brinewick", BRINEWICK, expect_file!["texts/brinewick.txt"]),
        ("longdry", LONGDRY, expect_file!["texts/longdry.txt"]),
    ];
    for (id, script, expected) in committed {
        let (text, game) = transcript(id, script, 7);
        assert!(text.contains("\nEpilogue: ") && text.contains("The campaign is closed."), "{id} does not end");
        expected.assert_eq(&text);
        game.replayed();
        assert_ne!(transcript(id, script, 8).0, text, "{id}: other dice tell another story");
    }
}
