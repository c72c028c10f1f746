//! A page in blocks: what needs a citation of its own. A paragraph is a block, an item of a list is one, a heading is one. Code
//! belongs to what stands before it.

/// Consecutive lines that say one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextBlock<'a> {
    /// The number of its first line, from 1, and the lines with their numbers.
    pub lines: Vec<(usize, &'a str)>,
    pub kind: BlockKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Says something: its new lines need a citation.
    Claim,
    Heading,
    /// A line between parts.
    Rule,
    /// Only leads to a page: `- [[River]]`.
    BareLink,
}

/// The blocks of a text; its first line has the number `first`.
pub fn blocks(text: &str, first: usize) -> Vec<TextBlock<'_>> {
    let mut all: Vec<TextBlock<'_>> = Vec::new();
    let (mut is_open, mut fence) = (false, None);
    for (number, line) in text.lines().enumerate() {
        let place = (first + number, line);
        if let Some(mark) = fence {
            push(&mut all, place);
            if fence_mark(line) == Some(mark) && line.trim().chars().all(|c| c == mark) {
                (fence, is_open) = (None, true);
            }
        } else if let Some(mark) = fence_mark(line) {
            if !all.last().is_some_and(|last| last.kind == BlockKind::Claim) {
                all.push(TextBlock { lines: Vec::new(), kind: BlockKind::Claim });
            }
            push(&mut all, place);
            fence = Some(mark);
        } else if line.trim().is_empty() {
            is_open = false;
        } else if let Some(kind) = alone(line) {
            all.push(TextBlock { lines: vec![place], kind });
            is_open = false;
        } else {
            if !is_open || item(line).is_some() {
                all.push(TextBlock { lines: Vec::new(), kind: BlockKind::Claim });
            }
            push(&mut all, place);
            is_open = true;
        }
    }
    all
}

fn push<'a>(all: &mut [TextBlock<'a>], place: (usize, &'a str)) {
    if let Some(last) = all.last_mut() {
        last.lines.push(place);
    }
}

/// The kind of a line that is a block by itself.
fn alone(line: &str) -> Option<BlockKind> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&level) && line[level..].starts_with(' ') {
        return Some(BlockKind::Heading);
    }
    let bare = line.trim();
    if bare.len() >= 3 && ["-", "*", "_"].iter().any(|mark| bare.replace(mark, "").trim().is_empty()) {
        return Some(BlockKind::Rule);
    }
    let inner = item(line).unwrap_or(bare).trim();
    let target = inner.strip_prefix("[[")?.strip_suffix("]]")?;
    (!target.contains(['[', ']', '|']) && target.len() <= 240).then_some(BlockKind::BareLink)
}

/// The text of an item of a list.
fn item(line: &str) -> Option<&str> {
    let inner = line.trim_start();
    let rest = inner.trim_start_matches(|c: char| c.is_ascii_digit());
    let marked = match inner.len() == rest.len() {
        true => inner.strip_prefix(['-', '*', '+']),
        false => rest.strip_prefix(['.', ')']),
    };
    marked.filter(|rest| rest.starts_with([' ', '\t']))
}

/// The sign of a line that begins or ends a fence.
pub fn fence_mark(line: &str) -> Option<char> {
    let inner = line.trim_start();
    ['`', '~'].into_iter().find(|mark| inner.chars().take_while(|c| c == mark).count() >= 3)
}
