//! Collects the output of one command in a session, from what the terminal says. `session` uses it; it uses `sentinel` and
//! `text`. Pure, apart from the callback that hears the output as it comes.

use super::sentinel::Listener;
use super::text::{Capture, PlainLines};

/// The output of a command so far.
pub struct CommandOutput<'a> {
    listener: Listener,
    lines: PlainLines,
    kept: Capture,
    watch: &'a (dyn Fn(&[u8]) + Send + Sync),
}

impl<'a> CommandOutput<'a> {
    /// Keeps the first `keep` bytes; `watch` hears all.
    pub fn new(token: &str, keep: usize, watch: &'a (dyn Fn(&[u8]) + Send + Sync)) -> Self {
        CommandOutput { listener: Listener::new(token), lines: PlainLines::default(), kept: Capture::new(keep), watch }
    }

    /// The [`fallback`](super::sentinel::fallback) line is about to be typed.
    pub fn fallback_typed(&mut self) {
        self.listener.fallback_typed();
    }

    /// Takes more of what the terminal said. The exit code, once the command ended.
    pub fn hear(&mut self, bytes: &[u8]) -> Option<i32> {
        let heard = self.listener.hear(bytes);
        let mut text = self.lines.pass(&heard.output);
        if heard.ended.is_some() {
            text.extend_from_slice(self.lines.finish());
        }
        self.take(&text);
        if heard.ended.is_some_and(|ended| ended.gave_up) {
            self.kept.drop_open_line(); // the shell's prompt
        }
        heard.ended.map(|ended| ended.code)
    }

    /// The terminal has closed: what was held back is output.
    pub fn close(&mut self) {
        let mut text = self.lines.pass(&self.listener.finish());
        text.extend_from_slice(self.lines.finish());
        self.take(&text);
    }

    /// What was kept.
    pub fn into_kept(self) -> Capture {
        self.kept
    }

    fn take(&mut self, text: &[u8]) {
        (self.watch)(text);
        self.kept.take(text);
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// What is kept, what is watched and the exit code, when the bytes come in pieces.
    fn heard(said: &[u8], size: usize) -> (String, String, Option<i32>) {
        let watched = Mutex::new(Vec::new());
        let watch = |bytes: &[u8]| watched.lock().extend_from_slice(bytes);
        let mut output = CommandOutput::new("t1", 100, &watch);
        let code = said.chunks(size).find_map(|piece| output.hear(piece));
        if code.is_none() {
            output.close();
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let kept = text(&output.into_kept().kept);
        (kept, text(&watched.lock()), code)
    }

    #[test]
    fn output_is_kept_and_watched_in_any_pieces() {
        for (said, kept, watched, code) in [
            ("$ \x1et1<\x1ea\r\nb\r\x1et1>3\x1e$ ", "a\nb\r", "a\nb\r", Some(3)),
            ("$ \x1et1<\x1ea\r\n$ \x1et1=130\x1e$ ", "a\n", "a\n$ ", Some(130)),
            ("$ \x1et1<\x1ea\r\nb\r\x1et1", "a\nb\r\x1et1", "a\nb\r\x1et1", None),
        ] {
            for size in 1..=said.len() {
                assert_eq!(
                    heard(said.as_bytes(), size),
                    (kept.to_owned(), watched.to_owned(), code),
                    "pieces of {size}"
                );
            }
        }
    }
}
