//! What a session's terminal shows of a command that was run by `exec`: what a person would have seen who typed it.
//!
//! The lines that we type around the command (see [`sentinel`](super::sentinel)) are echoed by the terminal, and their marks
//! are printed; neither is for readers of `output`. Pure: bytes in, bytes out.

use super::sentinel::MARK;

/// No mark is longer.
const LONGEST: usize = 96;
/// How much of what follows a command can be the echo of our own last line.
const TAIL: usize = 4096;

#[derive(Debug, Default)]
pub struct Screen {
    state: State,
    /// The beginning of what may become a mark.
    held: Vec<u8>,
}

#[derive(Debug, Default)]
enum State {
    /// Somebody types by hand, or nobody does.
    #[default]
    Open,
    /// Our lines are being echoed; `command` is shown instead of them.
    Typed { token: String, command: String },
    /// The command runs.
    Running { token: String },
    /// The echo of our last line, and its mark, are still to come.
    Ended { token: String, hidden: usize },
}

/// One mark, as the shell printed it.
enum Mark<'a> {
    Begin(&'a str),
    End(&'a str),
}

impl Screen {
    /// The lines around `command` are about to be typed.
    pub fn typed(&mut self, token: &str, command: &str) {
        self.state = State::Typed { token: token.to_owned(), command: command.to_owned() };
    }

    /// Nobody waits for the command any more, or somebody types by hand: everything is shown again.
    pub fn open(&mut self) {
        self.state = State::Open;
    }

    /// What is shown of the next bytes.
    pub fn show(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut heard = std::mem::take(&mut self.held);
        heard.extend_from_slice(bytes);
        let (mut rest, mut shown) = (&heard[..], Vec::new());
        while let Some(at) = rest.iter().position(|byte| *byte == MARK) {
            self.pass(&rest[..at], &mut shown);
            rest = &rest[at..];
            let close = rest[1..].iter().take(LONGEST).position(|byte| *byte == MARK).map(|at| at + 1);
            match close.map(|close| (close, mark(&rest[1..close]))) {
                Some((close, Some(mark))) => {
                    self.turn(&mark, &mut shown);
                    rest = &rest[close + 1..];
                }
                // Too long or not of our making: a program's own bytes.
                Some((_, None)) => {
                    self.pass(&rest[..1], &mut shown);
                    rest = &rest[1..];
                }
                None if rest.len() > LONGEST || !could_be(&rest[1..]) => {
                    self.pass(&rest[..1], &mut shown);
                    rest = &rest[1..];
                }
                None => {
                    self.held = rest.to_vec();
                    return shown;
                }
            }
        }
        self.pass(rest, &mut shown);
        shown
    }

    fn pass(&mut self, bytes: &[u8], shown: &mut Vec<u8>) {
        match &mut self.state {
            State::Open | State::Running { .. } => shown.extend_from_slice(bytes),
            State::Typed { .. } => (),
            State::Ended { hidden, .. } => {
                *hidden += bytes.len();
                if *hidden > TAIL {
                    self.state = State::Open;
                }
            }
        }
    }

    fn turn(&mut self, mark: &Mark<'_>, shown: &mut Vec<u8>) {
        self.state = match (std::mem::take(&mut self.state), mark) {
            (State::Typed { token, command }, Mark::Begin(begun)) if token == *begun => {
                shown.extend(command.replace('\n', "\r\n").bytes());
                shown.extend(b"\r\n");
                State::Running { token }
            }
            (State::Running { token }, Mark::End(ended)) if token == *ended => State::Ended { token, hidden: 0 },
            // The shell could not read the command, and came straight to our last line.
            (State::Typed { token, .. }, Mark::End(ended)) if token == *ended => State::Open,
            (State::Ended { token, .. }, Mark::End(ended)) if token == *ended => State::Open,
            (state, _) => state,
        };
    }
}

/// What stands between two control characters, if it is a mark.
fn mark(inner: &[u8]) -> Option<Mark<'_>> {
    let inner = std::str::from_utf8(inner).ok()?;
    let token = inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let (token, sign) = inner.split_at(inner.len() - token.len());
    match sign.strip_prefix('>') {
        _ if token.is_empty() => None,
        Some(code) if !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_digit()) => Some(Mark::End(token)),
        _ if sign == "<" => Some(Mark::Begin(token)),
        _ => None,
    }
}

/// Whether more bytes could make it a mark.
fn could_be(inner: &[u8]) -> bool {
    inner.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'<' | b'>'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown when the bytes come in pieces of every size.
    fn check(prepare: impl Fn(&mut Screen), said: &[u8], expected: &[u8]) {
        for size in 1..=said.len() {
            let mut screen = Screen::default();
            prepare(&mut screen);
            let shown: Vec<u8> = said.chunks(size).flat_map(|piece| screen.show(piece)).collect();
            assert_eq!(String::from_utf8_lossy(&shown), String::from_utf8_lossy(expected), "pieces of {size}");
        }
    }

    #[test]
    fn a_command_is_shown_as_if_it_had_been_typed() {
        let said =
            b" __acheron='x'\r\n$ printf\r\n\x1et1<\x1e/tmp\r\n\xff\x1et1>0\x1e$  printf '\\036'\r\n\x1et1>0\x1e$ ";
        check(|screen| screen.typed("t1", "pwd\nx"), said, b"pwd\r\nx\r\n/tmp\r\n\xff$ ");
    }

    #[test]
    fn what_is_no_mark_of_ours_is_shown_as_it_is() {
        for said in [&b"a\x1eb"[..], b"\x1e\x1e\x1e", b"\x1erecord one\x1erecord two\x1e", b"\x1et9<x\x1e"] {
            let mut screen = Screen::default();
            let mut shown = screen.show(said);
            shown.extend(screen.show(b" end"));
            assert_eq!(shown, [said, b" end"].concat(), "{said:?}");
        }
        check(|_| (), b"one\x1et1>0\x1e two", b"one two");
    }

    #[test]
    fn a_command_that_cannot_be_read_ends_at_our_last_line() {
        check(|screen| screen.typed("t1", "if"), b"echo\x1et1>2\x1e$ ls", b"$ ls");
    }

    #[test]
    fn what_never_ends_is_not_hidden_for_ever() {
        let mut screen = Screen::default();
        screen.typed("t1", "x");
        screen.show(b"\x1et1<\x1e");
        screen.show(b"\x1et1>0\x1e");
        let shown: usize = (0..100).map(|_| screen.show(&[b'y'; 100]).len()).sum();
        assert!(shown > 5000, "{shown}");
        screen.typed("t2", "x");
        screen.open();
        assert_eq!(screen.show(b"by hand"), b"by hand");
    }
}
