//! `scripts/bench`: what the house costs, as ratios to what the ground costs. `docs/benchmarks.md` has the table.

mod agents;
mod bare;
mod calls;
mod confined;
mod crowd;
mod disk;
mod fair;
mod files;
mod gateway;
mod growth;
mod house;
mod idle;
mod mail;
mod method;
mod names;
mod prompts;
mod recall;
mod stale;
mod start;
mod store;
mod symbols;
mod table;
mod turns;
mod views;
mod waits;
mod workshop;

use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use nix::sys::signal::{SigHandler, Signal};

use method::Pace;
use table::Figure;

/// How thoroughly to measure.
pub struct Run {
    pub quick: bool,
}

impl Run {
    pub fn pace(&self, chunks: usize, ops: usize) -> Pace {
        Pace { chunks: if self.quick { chunks.min(6) } else { chunks }, ops }
    }
}

type Rows = fn(&Run) -> Vec<Figure>;

/// Every family of rows, by the word that chooses it.
const FAMILIES: &[(&str, Rows)] = &[
    ("files", files::rows),
    ("calls", calls::rows),
    ("waits", waits::rows),
    ("crowd", crowd::rows),
    ("names", names::rows),
    ("fair", fair::rows),
    ("start", start::rows),
    ("confined", confined::rows),
    ("store", store::rows),
    ("mail", mail::rows),
    ("growth", growth::rows),
    ("stale", stale::rows),
    ("agents", agents::rows),
    ("turns", turns::rows),
    ("disk", disk::rows),
    ("gateway", gateway::rows),
    ("prompts", prompts::rows),
    ("recall", recall::rows),
    ("symbols", symbols::rows),
    ("views", views::rows),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["__bare", dir, bytes] => {
            bare::serve(dir.as_ref(), bytes.parse().expect("a number")).expect("a session");
        }
        ["__workshop", dir, state] => workshop::serve(dir.as_ref(), state.as_ref()).expect("a workshop"),
        ["__tool_server", file] => calls::serve_http(file.as_ref()).expect("a server"),
        ["__listed", times] => fair::measure(times.parse().expect("a number")),
        ["__flood", how] => fair::flood(how),
        ["__reader", how] => waits::read(how, None),
        ["__reader", how, file] => waits::read(how, Some(file)),
        _ => measure(&words),
    }
}

/// The time that one family of rows may take: far more than it needs.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// Measures a family; one that hangs ends the bench, with its name.
fn in_time(name: &str, rows: Rows, quick: bool) -> Vec<Figure> {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(rows(&Run { quick })));
    let limit = if quick { LONGEST / 3 } else { LONGEST };
    match told.recv_timeout(limit) {
        Ok(figures) => figures,
        Err(RecvTimeoutError::Timeout) => {
            eprintln!("error: `{name}` was not measured within {} s", limit.as_secs());
            std::process::exit(3);
        }
        // It has said why.
        Err(RecvTimeoutError::Disconnected) => std::process::exit(101),
    }
}

/// A shell starts what runs in the background with interrupts ignored, and so would be what the rows start and interrupt.
fn heed_signals() {
    for signal in [Signal::SIGINT, Signal::SIGQUIT] {
        // SAFETY: nothing else handles signals here, and the default needs no function of ours.
        unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) }.expect("a signal");
    }
}

fn measure(words: &[&str]) {
    let mut run = Run { quick: false };
    let (mut chosen, mut file) = (Vec::new(), None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--quick" => run.quick = true,
            "--json" => file = words.next().map(PathBuf::from),
            word if FAMILIES.iter().any(|(name, _)| *name == word) => chosen.push(word),
            other => {
                let known: Vec<&str> = FAMILIES.iter().map(|(name, _)| *name).collect();
                eprintln!("error: there is no row `{other}`; the rows are {}", known.join(", "));
                std::process::exit(2);
            }
        }
    }
    heed_signals();
    method::check();
    method::pin().expect("a processor of our own");
    let mut figures = Vec::new();
    for (name, rows) in FAMILIES {
        if chosen.is_empty() || chosen.contains(name) {
            eprintln!("measuring {name}");
            figures.extend(in_time(name, *rows, run.quick));
        }
    }
    print!("{}", table::markdown(&figures));
    if let Some(file) = file {
        std::fs::write(&file, table::json(&figures).to_string()).expect("a file for the figures");
    }
}
