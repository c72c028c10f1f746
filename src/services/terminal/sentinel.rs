//! Runs one command in a shell that is already there, and finds its output and its end. `session` uses it; it uses `echo`.
//!
//! The shell is told to print a mark, run the command, and print another mark with the exit code. A mark contains a control
//! character that is written as an escape in what we type, so that the terminal's echo of it is no mark. Any shell that
//! knows `printf`, `eval`, `command` and `$?` will do.
//!
//! A shell may give up the line that it runs, and with it the end mark: at an interrupt, for example. The session then types
//! a second line, which prints a mark of its own. It types it only when it has to: the terminal echoes a line at once,
//! while the shell still runs the one before, and the echo then stands in the middle of the command's output.

use super::echo::{EchoFilter, find};

/// No shell and no sane program prints this by itself.
pub const MARK: u8 = 0x1E;

/// Terminals take lines of at most 4096 bytes unless the shell reads them raw.
const LINE: usize = 1000;

/// More than any exit code has digits, and the mark after it.
const CODE: usize = 8;

/// What to type into the shell. `token` must be new each time and made of letters and digits.
pub fn script(token: &str, command: &str) -> String {
    // `command` keeps a shell from giving up the line when `eval`, a special built-in, fails. In zsh `builtin` runs it.
    let mut typed = String::from(" __acheron='' __acheron_by=${ZSH_VERSION:+builtin}\n");
    let encoded = encoded(command);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        // Everything is ASCII, and an escape is five characters long.
        let mut cut = rest.len().min(LINE);
        if cut < rest.len() {
            cut = rest[..cut].rfind('\\').filter(|at| *at + 5 > cut).unwrap_or(cut);
        }
        typed += &format!(" __acheron=$__acheron'{}'\n", &rest[..cut]);
        rest = &rest[cut..];
    }
    typed += &format!(
        " printf '\\036%s<\\036' {token}; ${{__acheron_by:-command}} eval \"$(printf %b \"$__acheron\")\" </dev/null; \
         printf '\\036%s>%d\\036' {token} \"$?\"\n"
    );
    typed
}

/// What to type if the shell may have given up the last line of [`script`]. A shell that has not runs it afterwards.
pub fn fallback(token: &str) -> String {
    format!(" printf '\\036%s=%d\\036' {token} \"$?\"\n")
}

/// Letters and digits as they are, every other byte as `\0ooo`: no shell expands it, no line editor acts on it.
fn encoded(command: &str) -> String {
    let mut text = String::new();
    for byte in command.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => text.push(char::from(byte)),
            _ => text += &format!("\\0{byte:03o}"),
        }
    }
    text
}

/// Reads what the shell prints, and finds the command's own output in it.
#[derive(Debug)]
pub struct Listener {
    token: String,
    begin: Vec<u8>,
    /// How either end mark begins; its sign and the exit code follow.
    end: Vec<u8>,
    heard: Vec<u8>,
    begun: bool,
    /// Once the fallback line was typed.
    echo: Option<EchoFilter>,
}

/// What a [`Listener`] makes of the next bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Heard {
    /// Output of the command.
    pub output: Vec<u8>,
    /// How it ended, once it did.
    pub ended: Option<Ended>,
}

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub code: i32,
    /// The shell gave up the command and came to the fallback line: its prompt stands at the end of the output.
    pub gave_up: bool,
}

impl Listener {
    pub fn new(token: &str) -> Self {
        let end = [&[MARK], token.as_bytes()].concat();
        let begin = [&end[..], b"<", &[MARK]].concat();
        Listener { token: token.to_owned(), begin, end, heard: Vec::new(), begun: false, echo: None }
    }

    /// The [`fallback`] line is about to be typed.
    pub fn fallback_typed(&mut self) {
        self.echo = Some(EchoFilter::new(&fallback(&self.token)));
    }

    /// Takes more of what the terminal said. Keeps no more than could be the beginning of a mark or of our own echo.
    pub fn hear(&mut self, bytes: &[u8]) -> Heard {
        match &mut self.echo {
            Some(echo) => self.heard.extend(echo.pass(bytes)),
            None => self.heard.extend_from_slice(bytes),
        }
        if !self.begun {
            match find(&self.heard, &self.begin) {
                Some(at) => {
                    self.heard.drain(..at + self.begin.len());
                    self.begun = true;
                }
                None => {
                    // The command's end without its beginning: the shell could not even read it.
                    if let Some((_, ended)) = self.closing() {
                        return Heard { output: Vec::new(), ended: Some(ended) };
                    }
                    let keep = self.begin.len() + 16;
                    self.heard.drain(..self.heard.len().saturating_sub(keep));
                    return Heard { output: Vec::new(), ended: None };
                }
            }
        }
        if let Some((at, ended)) = self.closing() {
            let output = self.heard.drain(..at).collect();
            return Heard { output, ended: Some(ended) };
        }
        // A mark may have begun: whatever follows the last control character that could be one waits.
        let held = self.heard.iter().rposition(|byte| *byte == MARK).filter(|at| {
            let tail = &self.heard[*at..];
            let length = tail.len().min(self.end.len());
            let signed = tail.get(self.end.len()).is_none_or(|sign| matches!(sign, b'>' | b'='));
            tail[..length] == self.end[..length] && signed && tail.len() <= self.end.len() + CODE
        });
        let output = self.heard.drain(..held.unwrap_or(self.heard.len())).collect();
        Heard { output, ended: None }
    }

    /// The rest of the output, when the terminal has closed.
    pub fn finish(&mut self) -> Vec<u8> {
        self.heard.extend(self.echo.take().map(EchoFilter::finish).unwrap_or_default());
        let rest = std::mem::take(&mut self.heard);
        if self.begun { rest } else { Vec::new() }
    }

    /// Where the end mark stands, and what it tells.
    fn closing(&self) -> Option<(usize, Ended)> {
        let mut from = 0;
        while let Some(at) = find(&self.heard[from..], &self.end).map(|at| from + at) {
            if let Some((sign @ (b'>' | b'='), digits)) = self.heard[at + self.end.len()..].split_first() {
                let stop = digits.iter().take(CODE).position(|byte| *byte == MARK);
                if let Some(code) = stop.and_then(|stop| std::str::from_utf8(&digits[..stop]).ok()?.parse().ok()) {
                    return Some((at, Ended { code, gave_up: *sign == b'=' }));
                }
            }
            // Half a mark, printed by a program: the real one may follow.
            from = at + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests;
