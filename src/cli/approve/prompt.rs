//! A question at the terminal. It falls silent when the request is answered elsewhere, and what was typed before it stood there
//! answers nothing.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::termios::{QueueSelector, tcflush};
use serde_json::Value;

use super::super::say;
use super::decide;
use super::render::{self, TypedAnswer};

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptAnswer {
    /// Here or elsewhere.
    Decided,
    /// It still waits.
    Skipped,
    /// The person wants no more questions.
    End,
}

/// A question that stands on the terminal.
pub struct ApprovalQuestion {
    dir: PathBuf,
    request: Value,
}

impl ApprovalQuestion {
    pub fn begin(dir: &Path, request: Value) -> ApprovalQuestion {
        // A key that was pressed before the question was there is no answer to it.
        _ = tcflush(rustix::stdio::stdin(), QueueSelector::IFlush);
        say(&format!("\n{}{}\n? ", render::page(&request), render::KEYS));
        ApprovalQuestion { dir: dir.to_owned(), request }
    }

    pub fn id(&self) -> &str {
        self.request["id"].as_str().unwrap_or_default()
    }

    /// Looks whether it was answered, here or elsewhere; waits at most so long for a line.
    pub fn look(&mut self, wait: Duration) -> Option<PromptAnswer> {
        if let Some(status) = self.settled() {
            say(&format!("\n{}", render::outcome(&status)));
            return Some(PromptAnswer::Decided);
        }
        let line = match typed_line(wait) {
            TypedLine::None => return None,
            TypedLine::End => return Some(PromptAnswer::End),
            TypedLine::Line(line) => line,
        };
        match render::typed(&line) {
            Some(TypedAnswer::Answer(answer)) => match decide(&self.dir, &self.request, &answer) {
                Ok(()) => return None, // the next look tells of it
                Err(failure) => say(&format!("{}\n? ", failure.sentence())),
            },
            Some(TypedAnswer::View) => say(&format!("{:#}\n? ", self.request)),
            Some(TypedAnswer::Skip) => return Some(PromptAnswer::Skipped),
            Some(TypedAnswer::End) => return Some(PromptAnswer::End),
            None => say(&format!("{}\n? ", render::KEYS)),
        }
        None
    }

    /// How the request stands, if it does not wait any more.
    fn settled(&self) -> Option<Value> {
        let file = self.dir.join(self.id()).join("status.json");
        let mut options = OpenOptions::new();
        let mut text = String::new();
        let flags = OFlags::NONBLOCK.bits() as i32;
        let read =
            options.read(true).custom_flags(flags).open(file).and_then(|mut file| file.read_to_string(&mut text));
        match read {
            Ok(_) => Some(serde_json::from_str(&text).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
            Err(_) => Some(Value::Null), // it is gone
        }
    }
}

enum TypedLine {
    None,
    Line(String),
    /// The input has ended.
    End,
}

/// A line from the terminal, if one comes in time. Nothing is left waiting for the next one.
fn typed_line(wait: Duration) -> TypedLine {
    let stdin = rustix::stdio::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
    match poll(&mut fds, Some(&wait)) {
        Ok(1..) => (),
        _ => return TypedLine::None,
    }
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(0) | Err(_) => TypedLine::End,
        Ok(_) => TypedLine::Line(line),
    }
}
