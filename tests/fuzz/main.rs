//! Every parser that takes bytes from outside, given bytes that nobody would write.
//!
//! Runs on stable Rust, in `scripts/test`: the same inputs for everybody. `FUZZ_INPUTS=10000000 FUZZ_SEED=$RANDOM cargo
//! test --test fuzz` looks further. What it finds is mended, and its input put into `tests/corpus/<target>/`, which is
//! tried first. A new target is a function and a line in one of the lists below.

mod calls;
mod driver;
mod game;
mod names;
mod replies;
mod streams;

use driver::{Kind, Target};

/// A test for each target, so that they run side by side and are named when they fail.
macro_rules! targets {
    ($($module:ident: $($name:ident)*;)*) => {
        $($(#[test]
        fn $name() {
            driver::drive(&$module::$name());
        })*)*

        fn all() -> Vec<Target> {
            vec![$($($module::$name()),*),*]
        }
    };
}

targets! {
    calls: control_payload tool_call dm_tool program_answer symbol;
    replies: structured_output phase_command phase_payload recall_tag provider_event native_stream;
    game: dm_input archive_delta dm_rule dm_table;
    names: selector memory_path permission_path search_query session_id mount_table;
    streams: event_stream terminal_marks transcript model_script recording mountspec template front_matter wiki_link;
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let mut names: Vec<String> = all().iter().map(|target| target.name.to_owned()).collect();
    names.sort();
    let mut folders: Vec<String> = std::fs::read_dir(driver::corpus_root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort();
    assert_eq!(folders, names);
}

/// What kind of answer a sentence is: without what it quotes, so that each sentence counts once.
fn kind(sentence: &str) -> Kind {
    let plain = sentence.bytes().take(80).filter(u8::is_ascii_alphabetic);
    plain.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
