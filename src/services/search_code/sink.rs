//! Gathers what ripgrep's searcher finds in one file: matches with the lines around them.

use std::collections::VecDeque;
use std::io;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use super::search::CodeMatch;

/// The length of the part of a long line that is shown around the match.
const LINE: usize = 1000;
const LEAD: usize = 200;
/// The size of the keys of a match.
const KEYS: usize = 64;

pub struct MatchSink<'a> {
    pub path: &'a str,
    pub matcher: &'a RegexMatcher,
    pub context: usize,
    /// How many more matches are wanted, and how many bytes of them.
    pub room: usize,
    pub bytes: usize,
    pub found: Vec<CodeMatch>,
    /// The matches for which there was no room, and how many of them are counted.
    pub more: u64,
    pub counted: u64,
    /// It is not text after all; what was found in it means nothing.
    pub binary: bool,
    /// The last lines, for what comes before a match.
    recent: VecDeque<(u64, String)>,
}

impl<'a> MatchSink<'a> {
    pub fn new(path: &'a str, matcher: &'a RegexMatcher, context: usize, room: usize, bytes: usize) -> Self {
        let (found, recent) = (Vec::new(), VecDeque::new());
        MatchSink { path, matcher, context, room, bytes, found, more: 0, counted: u64::MAX, binary: false, recent }
    }

    /// A line passes by: it comes after some matches and before others.
    fn line(&mut self, number: u64, text: String) {
        let context = self.context as u64;
        let waiting = self.found.iter_mut().rev().take_while(|found| number <= found.line + context);
        for found in waiting.filter(|found| found.line < number) {
            if text.len() <= self.bytes {
                found.after.push(text.clone());
            }
            self.bytes = self.bytes.saturating_sub(text.len());
        }
        self.recent.push_back((number, text));
        if self.recent.len() > self.context {
            self.recent.pop_front();
        }
    }
}

impl MatchSink<'_> {
    /// Counts a match for which there is no room. Says whether more are counted.
    fn pass_over(&mut self, number: u64, bytes: &[u8], start: usize) -> bool {
        self.more += 1;
        self.line(number, shown(bytes, start));
        self.more < self.counted
    }
}

impl Sink for MatchSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, line: &SinkMatch<'_>) -> io::Result<bool> {
        let number = line.line_number().unwrap_or(0);
        let bytes = trimmed(line.bytes());
        let start = self.matcher.find(bytes).ok().flatten().map_or(0, |found| found.start());
        if self.found.len() >= self.room || self.more > 0 {
            return Ok(self.pass_over(number, bytes, start));
        }
        let near = |at: &u64| *at + self.context as u64 >= number;
        let before: Vec<_> = self.recent.iter().filter(|(at, _)| near(at)).map(|(_, text)| text.clone()).collect();
        let column = String::from_utf8_lossy(&bytes[..start]).chars().count() as u64 + 1;
        let text = shown(bytes, start);
        let size = before.iter().map(String::len).sum::<usize>() + text.len() + self.path.len() + KEYS;
        if size > self.bytes {
            return Ok(self.pass_over(number, bytes, start));
        }
        self.bytes -= size;
        self.line(number, text.clone());
        self.found.push(CodeMatch { path: self.path.to_owned(), line: number, column, text, before, after: vec![] });
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        self.line(line.line_number().unwrap_or(0), shown(trimmed(line.bytes()), 0));
        Ok(true)
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line as text; of a very long one the part around the match.
fn shown(line: &[u8], start: usize) -> String {
    if line.len() <= LINE {
        return String::from_utf8_lossy(line).into_owned();
    }
    let text = String::from_utf8_lossy(line);
    let from = text.floor_char_boundary(start.saturating_sub(LEAD));
    let to = text.floor_char_boundary(from + LINE);
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    format!("{before}{}{after}", &text[from..to])
}
