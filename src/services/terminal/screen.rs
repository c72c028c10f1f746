//! Shows of a command that was run by `exec` what a person would have seen who typed it. `session` uses it; it uses
//! `sentinel` and `echo`.
//!
//! The lines that we type around the command (see [`sentinel`](super::sentinel)) are echoed by the terminal, and their marks
//! are printed; neither is for readers of `output`. Pure: bytes in, bytes out.

use super::echo::EchoFilter;
use super::sentinel::{MARK, fallback};

/// No mark is longer.
const LONGEST: usize = 96;
/// How much of what follows a command can be the echo of our fallback line.
const TAIL: usize = 4096;
/// No prompt is longer.
const PROMPT: usize = 1024;

/// Turns what the terminal says into what a session's `output` shows.
#[derive(Debug, Default)]
pub struct Screen {
    state: State,
    /// The beginning of what may become a mark.
    held: Vec<u8>,
    /// The fallback line was typed, and its mark has not come yet.
    pending: Option<Pending>,
    /// What stands on the last line.
    line: Vec<u8>,
}

#[derive(Debug)]
struct Pending {
    token: String,
    echo: EchoFilter,
    /// The shell has run the line, or never will.
    settled: bool,
}

#[derive(Debug, Default)]
enum State {
    /// Everything is shown.
    #[default]
    Open,
    /// Our lines are being echoed; `command` is shown instead of them.
    Typed { token: String, command: String },
    /// The command runs.
    Running { token: String },
    /// The command ended although the fallback line was typed: its echo and its mark are still to come.
    Ended { hidden: usize },
    /// The fallback line was run at a prompt: the shell prints the same prompt again.
    Repeated { prompt: Vec<u8>, seen: usize },
}

/// One mark, as the shell printed it.
enum Mark<'a> {
    Begin(&'a str),
    End(&'a str),
    Fallback(&'a str),
}

impl Screen {
    /// The lines around `command` are about to be typed.
    pub fn typed(&mut self, token: &str, command: &str) {
        self.state = State::Typed { token: token.to_owned(), command: command.to_owned() };
    }

    /// The fallback line of the same command is about to be typed.
    pub fn fallback_typed(&mut self, token: &str) {
        self.pending =
            Some(Pending { token: token.to_owned(), echo: EchoFilter::new(&fallback(token)), settled: false });
    }

    /// No caller waits for the command any more: everything is shown again.
    pub fn open(&mut self) {
        self.state = State::Open;
    }

    /// What is shown of the next bytes.
    pub fn show(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::new();
        match &mut self.pending {
            None => self.read(bytes, &mut shown),
            Some(pending) => {
                let passed = pending.echo.pass(bytes);
                self.read(&passed, &mut shown);
            }
        }
        if let Some(settled) = self.pending.take_if(|pending| pending.settled) {
            self.read(&settled.echo.finish(), &mut shown);
        }
        shown
    }

    /// What is shown of the bytes that were held back, when the terminal has closed.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut shown = Vec::new();
        if let Some(pending) = self.pending.take() {
            self.read(&pending.echo.finish(), &mut shown);
        }
        let held = std::mem::take(&mut self.held);
        self.pass(&held, &mut shown);
        shown
    }

    fn read(&mut self, bytes: &[u8], shown: &mut Vec<u8>) {
        let mut heard = std::mem::take(&mut self.held);
        heard.extend_from_slice(bytes);
        let mut rest = &heard[..];
        while let Some(at) = rest.iter().position(|byte| *byte == MARK) {
            self.pass(&rest[..at], shown);
            rest = &rest[at..];
            let close = rest[1..].iter().take(LONGEST).position(|byte| *byte == MARK).map(|at| at + 1);
            match close.map(|close| (close, mark(&rest[1..close]))) {
                Some((close, Some(mark))) => {
                    self.turn(&mark, shown);
                    rest = &rest[close + 1..];
                }
                // Too long or not of our making: a program's own bytes.
                Some((_, None)) => {
                    self.pass(&rest[..1], shown);
                    rest = &rest[1..];
                }
                None if rest.len() > LONGEST || !could_be(&rest[1..]) => {
                    self.pass(&rest[..1], shown);
                    rest = &rest[1..];
                }
                None => {
                    self.held = rest.to_vec();
                    return;
                }
            }
        }
        self.pass(rest, shown);
    }

    fn pass(&mut self, bytes: &[u8], shown: &mut Vec<u8>) {
        match &mut self.state {
            State::Open | State::Running { .. } => self.put(bytes, shown),
            State::Typed { .. } => (),
            State::Ended { hidden } => {
                *hidden += bytes.len();
                if *hidden > TAIL {
                    self.state = State::Open;
                    self.settle();
                }
            }
            State::Repeated { prompt, seen } => {
                let same = prompt[*seen..].iter().zip(bytes).take_while(|(one, other)| one == other).count();
                *seen += same;
                if *seen == prompt.len() {
                    self.state = State::Open;
                } else if same < bytes.len() {
                    let other = prompt[..*seen].to_vec();
                    self.state = State::Open;
                    self.put(&other, shown);
                }
                if same < bytes.len() {
                    self.put(&bytes[same..], shown);
                }
            }
        }
    }

    fn put(&mut self, bytes: &[u8], shown: &mut Vec<u8>) {
        shown.extend_from_slice(bytes);
        if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
            self.line.clear();
            self.line.extend_from_slice(&bytes[at + 1..]);
        } else {
            self.line.extend_from_slice(bytes);
        }
        // More than a prompt: only its length counts.
        self.line.truncate(PROMPT + 1);
    }

    fn turn(&mut self, mark: &Mark<'_>, shown: &mut Vec<u8>) {
        let awaited = self.pending.as_ref().map(|pending| pending.token.clone());
        if let Mark::Fallback(token) = mark {
            if awaited.as_deref() == Some(token) {
                self.settle();
                self.ran_fallback(token);
            }
            return;
        }
        self.state = match (std::mem::take(&mut self.state), mark) {
            (State::Typed { token, command }, Mark::Begin(begun)) if token == *begun => {
                self.put(format!("{}\r\n", command.replace('\n', "\r\n")).as_bytes(), shown);
                // The shell has come past all that was typed for an earlier command.
                if awaited.is_some_and(|awaited| awaited != token) {
                    self.settle();
                }
                State::Running { token }
            }
            (State::Running { token }, Mark::End(ended)) if token == *ended => {
                if awaited.as_ref() == Some(&token) {
                    State::Ended { hidden: 0 }
                } else {
                    State::Open
                }
            }
            // Its beginning was torn, and the command was never shown.
            (State::Typed { token, .. }, Mark::End(ended)) if token == *ended => State::Open,
            (state, _) => state,
        };
    }

    /// The shell came to the fallback line of `token`, and prints its next prompt.
    fn ran_fallback(&mut self, token: &str) {
        self.state = match std::mem::take(&mut self.state) {
            // Its first prompt was hidden.
            State::Ended { .. } => State::Open,
            State::Typed { token: other, command } if other != token => State::Typed { token: other, command },
            _ if self.line.is_empty() || self.line.len() > PROMPT => State::Open,
            _ => State::Repeated { prompt: self.line.clone(), seen: 0 },
        };
    }

    fn settle(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.settled = true;
        }
    }
}

/// What stands between two control characters, if it is a mark.
fn mark(inner: &[u8]) -> Option<Mark<'_>> {
    let inner = std::str::from_utf8(inner).ok()?;
    let token = inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let (token, sign) = inner.split_at(inner.len() - token.len());
    let is_code = |code: &str| !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_digit());
    match sign.split_at_checked(1) {
        _ if token.is_empty() => None,
        Some(("<", "")) => Some(Mark::Begin(token)),
        Some((">", code)) if is_code(code) => Some(Mark::End(token)),
        Some(("=", code)) if is_code(code) => Some(Mark::Fallback(token)),
        _ => None,
    }
}

/// Whether more bytes could make it a mark.
fn could_be(inner: &[u8]) -> bool {
    inner.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'<' | b'>' | b'='))
}

#[cfg(test)]
mod tests;
