//! Waking one parked reader, and ending one by a signal, against a reader of a pipe.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::Run;
use super::house::ready;
use super::method::compare_timed;
use super::table::{Aim, Figure};
use super::workshop::Workshop;

/// How long nothing happens before a reader is woken.
const IDLE: Duration = Duration::from_micros(300);

pub fn rows(run: &Run) -> Vec<Figure> {
    let workshop = Workshop::start();
    let notifier = workshop.path("bell");
    let ring = File::options().write(true).open(workshop.path("ring.json")).expect("the ring");
    let ring = || ring.write_all_at(b"{\"ring\":true}", 0).expect("a ring");

    let pace = run.pace(120, 20);
    let (mut ours, mut pipe) = (Reader::start("file", Some(&notifier)), Reader::start("pipe", None));
    let wake = compare_timed(pace, || ours.woken(|_| ring()), || pipe.woken(push));
    drop((ours, pipe));
    let (mut ours, mut pipe) = (Reader::start("file-poll", Some(&notifier)), Reader::start("pipe-poll", None));
    let polled = compare_timed(pace, || ours.woken(|_| ring()), || pipe.woken(push));
    drop((ours, pipe));
    let ended = compare_timed(run.pace(24, 5), || interrupted("file", Some(&notifier)), || interrupted("pipe", None));
    vec![
        Figure::ratio("wake-up of a parked reader ÷ of a pipe's", wake, Aim::AtMost(3.5))
            .because("counted: the write into the ring is a request of its own, which the session must be woken for before it wakes the reader; a pipe has neither"),
        Figure::ratio("wake-up by poll, and the read ÷ of a pipe's", polled, Aim::AtMost(8.0))
            .because("as above, and the read after the poll is one request more"),
        Figure::ratio("Ctrl-C on a parked reader ÷ on a pipe's", ended, Aim::AtMost(1.5)),
    ]
}

fn push(pipe: &mut ChildStdin) {
    pipe.write_all(b"x").expect("a reader");
}

/// A process that waits, and tells when it was woken.
struct Reader {
    process: Child,
    wake: ChildStdin,
    told: ChildStdout,
}

impl Reader {
    fn start(how: &str, file: Option<&Path>) -> Reader {
        let mut command = Command::new(std::env::current_exe().expect("a program"));
        command.args(["__reader", how]).args(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("a reader");
        let (wake, mut told) = (process.stdin.take().expect("a pipe"), process.stdout.take().expect("a pipe"));
        told.read_exact(&mut [0; READY]).expect("it is ready");
        Reader { process, wake, told }
    }

    /// Does `what` wakes it; returns how long it took until its read had returned.
    fn woken(&mut self, what: impl FnOnce(&mut ChildStdin)) -> Duration {
        std::thread::sleep(IDLE);
        let began = now();
        what(&mut self.wake);
        let mut told = [0; 8];
        self.told.read_exact(&mut told).expect("it was woken");
        Duration::from_nanos(u64::from_ne_bytes(told).saturating_sub(began))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `ready` and its newline.
const READY: usize = 6;

/// A clock that all processes share.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64)
}

/// The reader's side.
pub fn read(how: &str, file: Option<&str>) {
    let stdin = std::io::stdin();
    let file = file.map(|path| File::open(path).expect("a file"));
    let wait = |fd: &dyn AsFd| {
        if how.ends_with("poll") {
            poll(&mut [PollFd::new(&fd.as_fd(), PollFlags::IN)], None).expect("a poll");
        }
    };
    ready();
    loop {
        let mut byte = [0; 8];
        match &file {
            Some(file) => {
                wait(file);
                file.read_at(&mut byte, 0).expect("a read");
            }
            None => {
                wait(&stdin);
                match rustix::io::read(&stdin, &mut byte[..1]) {
                    Ok(1) => (),
                    _ => return,
                }
            }
        }
        let woken = now();
        std::io::stdout().lock().write_all(&woken.to_ne_bytes()).expect("somebody listens");
        std::io::stdout().flush().expect("somebody listens");
    }
}

/// How long a parked reader lives after Ctrl-C.
fn interrupted(how: &str, file: Option<&Path>) -> Duration {
    let mut reader = Reader::start(how, file);
    let pid = reader.process.id();
    // It has said that it is ready; then it must fall asleep.
    super::house::until("a parked reader", || state(pid) == Some('S'));
    std::thread::sleep(IDLE);
    let began = Instant::now();
    kill_process(Pid::from_raw(pid as i32).expect("a pid"), Signal::INT).expect("a process");
    let _ = reader.process.wait();
    began.elapsed()
}

fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim().chars().next()
}
