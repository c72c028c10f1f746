//! Makes inputs out of a corpus and gives them to a target.
//!
//! No compiler's help is needed: a target tells what kind of answer an input got, and an input whose kind was not heard
//! before is itself changed further.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A number for the kind of answer; inputs of a new kind are kept.
pub type Kind = u64;

/// Something that takes bytes from outside.
pub struct Target {
    /// Also the folder of its corpus.
    pub name: &'static str,
    /// Words of its grammar, for the changes to throw in.
    pub words: &'static [&'static str],
    /// Takes one input; panics if the parser does, or if what it says cannot be true.
    pub run: fn(&[u8]) -> Kind,
}

/// Inputs a target, unless `FUZZ_INPUTS` says otherwise.
const INPUTS: u64 = 100_000;
/// One input in so many is long, to show what is not linear.
const LONG: u64 = 1000;
/// How long those are, and how long the others may grow unless the corpus has longer ones.
const LONGEST: usize = 8 << 10;
const USUAL: usize = 160;
/// No more inputs than this are kept for further changes.
const POOL: usize = 2000;

/// Bytes that are trouble everywhere.
const TROUBLE: [&[u8]; 28] = [
    b"\0",
    b"\n",
    b"\r\n",
    b"\t",
    b" ",
    b"\"",
    b"\\",
    b"\\\"",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"/",
    b"..",
    b"../",
    b"-1",
    b"0",
    b"18446744073709551616",
    b"1e999",
    b"null",
    b"\xff",
    b"\xe2\x80\xae",
    b"\xef\xbb\xbf",
    b"\xf0\x9f\x92\xa7",
];

pub fn corpus_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Tries every input of the corpus as it is, then as many changed ones as were asked for.
pub fn drive(target: &Target) {
    let asked = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = asked("FUZZ_SEED").unwrap_or(20_261_116);
    let inputs = asked("FUZZ_INPUTS").unwrap_or(INPUTS);
    let mut dice = Dice::new(target.name, seed);
    let mut pool = corpus(target.name);
    assert!(!pool.is_empty(), "tests/corpus/{} is empty", target.name);
    let mut heard: HashSet<Kind> = pool.iter().map(|input| tried(target, input)).collect();
    let usual = pool.iter().map(Vec::len).max().unwrap_or(0).max(USUAL);
    let mut slowest = (Duration::ZERO, 0);
    for number in 0..inputs {
        let input = match number % LONG {
            0 => long(target, &pool, usual, &mut dice),
            _ => changed(target, &pool, usual, &mut dice),
        };
        let began = Instant::now();
        let kind = tried(target, &input);
        slowest = slowest.max((began.elapsed(), input.len()));
        if heard.insert(kind) && pool.len() < POOL && input.len() <= usual {
            pool.push(input);
        }
    }
    let (took, length) = slowest;
    println!("{}: {inputs} inputs, {} kinds of answers, {took:?} at most for {length} bytes", target.name, heard.len());
}

/// Runs one input; if that fails, it is shown in a form that can be pasted.
fn tried(target: &Target, input: &[u8]) -> Kind {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).unwrap_or_else(|panic| {
        let shown: String =
            input.iter().take(4000).flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect();
        eprintln!("{} fails for these {} bytes:\nb\"{shown}\"", target.name, input.len());
        resume_unwind(panic)
    })
}

/// The corpus of a target: a file is an input, but one that is called `lines` or `*.play` has one a line.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(corpus_root().join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        match file.extension().is_some_and(|it| it == "play") || file.ends_with("lines") {
            true => all.extend(bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec)),
            false => all.push(bytes),
        }
    }
    all
}

fn changed(target: &Target, pool: &[Vec<u8>], usual: usize, dice: &mut Dice) -> Vec<u8> {
    let mut input = dice.one(pool).clone();
    for _ in 0..=dice.below(5) {
        change(&mut input, target, pool, dice);
    }
    input.truncate(usual);
    input
}

/// One change.
fn change(input: &mut Vec<u8>, target: &Target, pool: &[Vec<u8>], dice: &mut Dice) {
    let at = dice.below(input.len() + 1);
    let range = at..input.len().min(at + dice.below(24));
    match dice.below(12) {
        0..=2 if !target.words.is_empty() => insert(input, at, dice.one(target.words).as_bytes()),
        0..=3 => insert(input, at, dice.one::<&[u8]>(&TROUBLE)),
        4 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        5 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = dice.below(256) as u8;
            }
        }
        6 => drop(input.drain(range)),
        7 => {
            let copy = input[range].to_vec();
            insert(input, at, &copy);
        }
        8 => input.truncate(at),
        9 => {
            let copy = input[range].to_vec();
            let to = dice.below(input.len() + 1);
            insert(input, to, &copy);
        }
        10 if !target.words.is_empty() => drop(input.splice(range, dice.one(target.words).bytes())),
        _ => {
            let other = dice.one(pool);
            let from = dice.below(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
    }
}

/// A changed input in which one piece stands very often.
fn long(target: &Target, pool: &[Vec<u8>], usual: usize, dice: &mut Dice) -> Vec<u8> {
    let mut input = changed(target, pool, usual, dice);
    let piece = match dice.below(3) {
        0 if !target.words.is_empty() => dice.one(target.words).as_bytes().to_vec(),
        1 => {
            let at = dice.below(input.len() + 1);
            input[at..input.len().min(at + 1 + dice.below(30))].to_vec()
        }
        _ => dice.one(&TROUBLE).to_vec(),
    };
    let times = LONGEST.saturating_sub(input.len()) / piece.len().max(1);
    let at = dice.below(input.len() + 1);
    insert(&mut input, at, &piece.repeat(times));
    input
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    drop(input.splice(at..at, bytes.iter().copied()));
}

/// Numbers that look random and are the same each time (xorshift).
struct Dice(u64);

impl Dice {
    fn new(name: &str, seed: u64) -> Dice {
        Dice(crate::kind(name) ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % limit.max(1) as u64) as usize
    }

    fn one<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}
