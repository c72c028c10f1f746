//! From the start of the program to a mount that answers, and what it is when nobody asks.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Run;
use super::house::{Scratch, TestHost, plain, started, status};
use super::idle::{threads, watched};
use super::method::compare_timed;
use super::table::{Aim, Figure};

pub fn rows(run: &Run) -> Vec<Figure> {
    let scratch = Scratch::new();
    start(&scratch); // makes the state
    let pace = run.pace(20, 3);
    let again = compare_timed(pace, || start(&scratch), nothing);
    let fresh = compare_timed(run.pace(10, 1), || start(&Scratch::new()), nothing);

    let house = TestHost::start(&plain());
    for name in ["", "agents/charon", "agents/charon/memory", "agents/charon/jobs", "global/library"] {
        assert!(std::fs::read_dir(house.path(name)).expect("a directory").count() > 0);
    }
    // Longer than threads stay that only had something to do once.
    std::thread::sleep(Duration::from_secs(if run.quick { 1 } else { 12 }));
    let rss = status(house.pid(), "VmRSS") as f64 / 1024.0;
    let quiet = watched(house.pid(), Duration::from_secs(if run.quick { 1 } else { 10 }));
    vec![
        Figure::ratio("start to an answering mount ÷ /bin/true", again, Aim::AtMost(20.0))
            .because("profiled: of the start of the host, three fifths open the services of the agent, an eighth the database, an eighth the library of prompts"),
        Figure::ratio("the same, making the state", fresh, Aim::Told),
        Figure::number("idle RSS", rss, "MiB", Aim::AtMost(20.0)).detail(format!(
            "{} threads, {} KiB of it its own",
            threads(house.pid()),
            status(house.pid(), "RssAnon")
        ))
        .because("two thirds are pages of the program's file, which all hosts share"),
        Figure::number("context switches of all threads while idle", quiet.switches as f64, "", Aim::AtMost(0.0))
            .detail(format!("in {:?}", quiet.over)),
    ]
}

/// How long it takes until the mount has answered a question.
fn start(scratch: &Scratch) -> Duration {
    let command = TestHost::command(scratch, &plain());
    let began = Instant::now();
    let mut daemon = started(command);
    assert!(scratch.path().join("mnt/README.md").exists());
    let took = began.elapsed();
    let pid = nix::unistd::Pid::from_raw(daemon.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("a process");
    let _ = daemon.wait();
    took
}

fn nothing() -> Duration {
    let began = Instant::now();
    let done = Command::new("/bin/true").stdin(Stdio::null()).stdout(Stdio::piped()).status();
    assert!(done.is_ok_and(|status| status.success()));
    began.elapsed()
}
