//! One program from start to end.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{block, program, shell};
use acheron::services::terminal::{ProgramOutcome, ProgramRun, StreamListener, stopped};
use acheron_base::{Clock, Code, Result};
use acheron_sandbox::Plan;

#[derive(Default)]
struct Heard(Mutex<Vec<u8>>, Notify);

impl StreamListener for Heard {
    fn out(&self, bytes: &[u8]) {
        self.0.lock().extend_from_slice(bytes);
        self.1.notify_one();
    }
}

async fn go(plan: &Plan, stdin: &[u8], keep: usize, deadline: Duration) -> Result<ProgramOutcome> {
    let clock = Clock::real();
    let run =
        ProgramRun { program: program(), plan, stdin: stdin.to_vec(), deadline, keep, clock: &clock, running: None };
    run.go(&Heard::default(), std::future::pending()).await
}

const LONG: Duration = Duration::from_secs(120);

#[test]
fn both_streams_and_the_exit_code_come_back() {
    let ran = block(go(&shell("cat; echo oops >&2; exit 4"), b"a\xffb", 100, LONG)).unwrap();
    assert_eq!((ran.out.kept.as_slice(), ran.err.kept.as_slice()), (&b"a\xffb"[..], &b"oops\n"[..]));
    assert_eq!(ran.ended.code, Some(4));
}

#[test]
fn what_is_too_much_is_cut_and_said_so() {
    let ran = block(go(&shell("head -c 300000 /dev/zero"), b"", 1000, LONG)).unwrap();
    assert_eq!((ran.out.kept.len(), ran.out.truncated, ran.err.truncated), (1000, true, false));
}

#[test]
fn a_program_that_reads_nothing_does_not_hang_its_feeder() {
    let ran = block(go(&shell("exit 0"), &vec![b'x'; 1 << 20], 10, LONG)).unwrap();
    assert_eq!(ran.ended.code, Some(0));
}

#[test]
fn the_deadline_ends_everything() {
    let shared = tempfile::tempdir().unwrap();
    let lock = std::fs::File::create(shared.path().join("lock")).unwrap();
    let script = "(setsid flock /shared/lock sleep 600 &) & sleep 600";
    let plan = shell(script).bind(shared.path(), "/shared", false);
    let late = block(go(&plan, b"", 10, Duration::from_millis(500))).unwrap_err();
    assert_eq!(late.code, Code::Timeout);
    assert_eq!(late.message, "the command did not end within 500 ms; everything it had started was ended");
    lock.try_lock().expect("someone outlived the deadline");
}

#[test]
fn cancelling_ends_what_left_its_family_too() {
    let shared = tempfile::tempdir().unwrap();
    let lock = std::fs::File::create(shared.path().join("lock")).unwrap();
    let script = "(setsid flock /shared/lock sh -c 'echo up; sleep 600' &) & sleep 600";
    let plan = shell(script).bind(shared.path(), "/shared", false);
    let heard = Arc::new(Heard::default());
    let clock = Clock::real();
    let run = ProgramRun {
        program: program(),
        plan: &plan,
        stdin: Vec::new(),
        deadline: LONG,
        keep: 10,
        clock: &clock,
        running: None,
    };
    let cancelled = block(run.go(&*heard, stopped(None, heard.1.notified()))).unwrap_err();
    assert_eq!(cancelled.code, Code::Cancelled);
    assert_eq!(*heard.0.lock(), b"up\n");
    lock.try_lock().expect("someone outlived the cancelled command");
}
