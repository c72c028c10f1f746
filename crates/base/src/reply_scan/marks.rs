//! The marks that divide a reply: thoughts in tags, lines of backticks, backticks within a line, brackets.

use std::ops::Range;

/// The tags in which models reason aloud.
const THOUGHTS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")];

/// Something that begins at a place of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Ends there; never closed if it is `cut`.
    Thought {
        end: usize,
        cut: bool,
    },
    Fence {
        label: String,
        inner: Range<usize>,
        end: usize,
    },
    CodeSpan {
        inner: Range<usize>,
        end: usize,
    },
    /// `{` or `[`.
    Bracket,
}

/// The first mark from `at`, and where it begins.
pub(super) fn next_mark(text: &str, mut at: usize) -> Option<(usize, Mark)> {
    loop {
        let start = at + text[at..].find(['{', '[', '<', '`'])?;
        match text.as_bytes()[start] {
            b'<' => match thought(text, start) {
                Some(mark) => return Some((start, mark)),
                None => at = start + 1,
            },
            b'`' => {
                let ticks = run(text, start);
                if let Some(mark) = fence(text, start, ticks).or_else(|| code_span(text, start, ticks)) {
                    return Some((start, mark));
                }
                at = start + ticks;
            }
            _ => return Some((start, Mark::Bracket)),
        }
    }
}

fn thought(text: &str, start: usize) -> Option<Mark> {
    let (open, close) = THOUGHTS.iter().find(|(open, _)| text[start..].starts_with(open))?;
    let inner = start + open.len();
    Some(match text[inner..].find(close) {
        Some(found) => Mark::Thought { end: inner + found + close.len(), cut: false },
        None => Mark::Thought { end: text.len(), cut: true },
    })
}

/// The end of a thought whose opening tag stood in the prompt: a line begins with the closing one, and none was opened.
pub(super) fn thought_without_beginning(text: &str) -> Option<usize> {
    for (open, close) in THOUGHTS {
        for (start, _) in text.match_indices(close).take(1) {
            if line_begins(text, start) && !text[..start].contains(open) {
                return Some(start + close.len());
            }
        }
    }
    None
}

/// How many backticks stand at `start`.
fn run(text: &str, start: usize) -> usize {
    text[start..].bytes().take_while(|byte| *byte == b'`').count()
}

/// Whether only blanks stand before `at` on its line.
fn line_begins(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with('\n')
}

/// Opened and closed by a line of its own, as CommonMark has it; one that is never closed reaches to the end.
fn fence(text: &str, start: usize, ticks: usize) -> Option<Mark> {
    if ticks < 3 || !line_begins(text, start) {
        return None;
    }
    let first = opening_line(text, start + ticks)?;
    let mut at = first;
    for line in text[first..].split_inclusive('\n') {
        let bare = line.trim();
        if bare.len() >= ticks && bare.bytes().all(|byte| byte == b'`') {
            return Some(Mark::Fence {
                label: label(&text[start + ticks..first]),
                inner: first..at,
                end: at + line.len(),
            });
        }
        at += line.len();
    }
    Some(Mark::Fence { label: label(&text[start + ticks..first]), inner: first..text.len(), end: text.len() })
}

/// Where the line after an opening one begins; none if more backticks stand on it, which make it a code span.
fn opening_line(text: &str, at: usize) -> Option<usize> {
    match text[at..].find(['\n', '`']) {
        None => Some(text.len()),
        Some(found) => (text.as_bytes()[at + found] == b'\n').then_some(at + found + 1),
    }
}

fn label(line: &str) -> String {
    line.trim().to_ascii_lowercase()
}

/// The longest code span: backticks that do not match must not be looked for in the whole text again and again.
const LONGEST_SPAN: usize = 4096;

/// Closed by as many backticks in the same paragraph.
fn code_span(text: &str, start: usize, ticks: usize) -> Option<Mark> {
    let inner = start + ticks;
    let near = text.floor_char_boundary(inner + LONGEST_SPAN);
    let mut at = inner;
    while let Some(found) = text.get(at..near).and_then(|rest| rest.find('`')) {
        let close = at + found;
        let length = run(text, close);
        if length == ticks {
            let one_paragraph = !text[inner..close].contains("\n\n");
            return one_paragraph.then(|| Mark::CodeSpan { inner: inner..close, end: close + ticks });
        }
        at = close + length;
    }
    None
}

/// Where the next line of backticks begins that opens a block.
pub(super) fn next_fence(text: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(found) = text[at..].find("```") {
        let start = at + found;
        let ticks = run(text, start);
        if line_begins(text, start) && opening_line(text, start + ticks).is_some() {
            return start;
        }
        at = start + ticks;
    }
    text.len()
}
