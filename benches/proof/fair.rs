//! What one agent waits for while another one asks with 400 threads.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::json;

use super::Run;
use super::house::{Scratch, TestHost};
use super::table::{Aim, Figure, time};

const THREADS: usize = 400;
/// Where this program is in a sandbox.
const PROGRAM: &str = "/projects/p/fs/proof";

pub fn rows(run: &Run) -> Vec<Figure> {
    // Unlike the other rows: a crowd on one processor would measure the scheduler.
    let all = (0..nix::sched::CpuSet::count()).filter(|it| *it < processors());
    let mut every = nix::sched::CpuSet::new();
    all.for_each(|it| every.set(it).expect("a processor"));
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &every).expect("all processors");
    let times = if run.quick { 300 } else { 2_000 };
    let house = start();
    let quiet = listed(&house, times);
    let mut figures = Vec::new();
    for (word, how) in [("lists", "list"), ("opens files", "read"), ("asks for names that are not there", "stat")] {
        let crowd = Crowd::start(&house, how);
        let loud = listed(&house, times);
        drop(crowd);
        let what = format!("fair: p50 of an agent's ls while another agent {word} with {THREADS} threads ÷ quiet");
        let detail = format!("{} / {}", time(loud), time(quiet));
        figures.push(Figure::number(what, loud / quiet, "x", Aim::AtMost(3.0)).detail(detail));
    }
    figures
}

fn processors() -> usize {
    std::thread::available_parallelism()
        .map_or(1, std::num::NonZero::get)
        .max(std::fs::read_to_string("/proc/cpuinfo").map_or(1, |text| text.matches("processor\t").count()))
}

fn start() -> TestHost {
    let scratch = Scratch::new();
    let project = scratch.make("project");
    std::fs::copy(std::env::current_exe().expect("a program"), project.join("proof")).expect("a copy");
    let spec = json!({
        "layout": "acheron-1",
        "agents": { "charon": { "projects": ["p"] }, "many": { "projects": ["p"] } },
        "sandbox": { "limits": { "processes": 1000 } },
        "projects": { "p": { "binds": { "/": { "path": project } } } },
    });
    TestHost::in_scratch(scratch, &spec)
}

/// A program in the sandbox of an agent.
fn confined(house: &TestHost, agent: &str, words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acheron"));
    command.args(["exec", "--root"]).arg(house.path("")).args(["--agent", agent, "--", PROGRAM]).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a program")
}

/// Seconds that the median `ls` of an agent takes.
fn listed(house: &TestHost, times: usize) -> f64 {
    let mut child = confined(house, "charon", &["__listed", &times.to_string()]);
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    child.wait().expect("its end");
    line.trim().parse().unwrap_or_else(|_| panic!("no time: {line}"))
}

/// In a sandbox: lists a directory so many times, and tells the median.
pub fn measure(times: usize) {
    let list = |_| {
        let began = Instant::now();
        assert!(std::fs::read_dir("/agents/self/memory").expect("a directory").count() > 3);
        began.elapsed().as_secs_f64()
    };
    let mut all: Vec<f64> = (0..times).map(list).collect();
    all.sort_by(f64::total_cmp);
    println!("{}", all[all.len() / 2]);
}

/// Another agent's threads.
struct Crowd(Child);

impl Crowd {
    fn start(house: &TestHost, how: &str) -> Crowd {
        let mut child = confined(house, "many", &["__flood", how]);
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("its output")).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Crowd(child)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.0.id() as i32);
        _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        _ = self.0.wait();
    }
}

/// In a sandbox: many threads that ask without end.
pub fn flood(how: &str) {
    let ask: fn(usize) = match how {
        "list" => |_| drop(std::fs::read_dir("/agents/self/memory").map(Iterator::count)),
        "read" => |_| drop(std::fs::read(Path::new("/agents/self/memory/status.json"))),
        // One name each: the kernel asks only once for a name that many look up at the same time.
        _ => |thread| drop(std::fs::metadata(format!("/agents/self/memory/not-there-{thread}"))),
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let asking = move || loop {
                ask(thread);
            };
            std::thread::Builder::new().stack_size(64 << 10).spawn(asking).expect("a thread")
        })
        .collect();
    println!("ready");
    std::io::stdout().flush().expect("somebody listens");
    threads.into_iter().for_each(|thread| drop(thread.join()));
}
