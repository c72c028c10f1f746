//! The little Markdown that cartridges and campaigns are written in: headings, tables, bullets, `key: value` lines.
//!
//! Everything carries its line number, so that a fault in a hand-written file can be named precisely. Knows nothing of
//! what the words mean.

use std::ops::Range;

use acheron_base::{Error, Result};

/// A table row and the line it stands on (counted from 1).
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub line: usize,
    pub cells: Vec<String>,
}

/// A pipe table, with the heading that it stands under (empty above the first).
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub heading: String,
    pub line: usize,
    pub columns: Vec<String>,
    pub rows: Vec<Row>,
}

impl Table {
    /// The cell of that column; empty where the row is short, the column is absent, or it holds only `-`.
    pub fn get<'a>(&self, row: &'a Row, column: &str) -> &'a str {
        let at = self.columns.iter().position(|name| name.eq_ignore_ascii_case(column));
        match at.and_then(|at| row.cells.get(at)).map(String::as_str) {
            None | Some("-") => "",
            Some(cell) => cell,
        }
    }

    pub fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|name| name.eq_ignore_ascii_case(column))
    }
}

/// One heading and where its section begins and ends, in bytes.
struct Heading<'a> {
    level: usize,
    title: &'a str,
    start: usize,
    body: usize,
}

fn headings(text: &str) -> Vec<Heading<'_>> {
    let (mut found, mut at, mut fenced) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if let (false, Some((level, title))) = (fenced, heading(line)) {
            found.push(Heading { level, title, start: at, body: end });
        }
        at = end;
    }
    found
}

/// `## Title` → (2, "Title").
pub fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = line[level..].strip_prefix(' ')?;
    (1..=6).contains(&level).then(|| (level, rest.trim()))
}

/// The bytes of the section with that title: its heading line, and all until the next heading of its level or above.
pub fn section_range(text: &str, title: &str) -> Option<(Range<usize>, usize)> {
    let all = headings(text);
    let at = all.iter().position(|found| found.title.eq_ignore_ascii_case(title))?;
    let level = all[at].level;
    let end = all[at + 1..].iter().find(|next| next.level <= level).map_or(text.len(), |next| next.start);
    Some((all[at].start..end, all[at].body))
}

/// The text under a heading, without the heading itself.
pub fn section<'a>(text: &'a str, title: &str) -> Option<&'a str> {
    section_range(text, title).map(|(range, body)| &text[body..range.end])
}

/// Replaces one section by `patch`, whose first line is the heading. Every other byte stays as it was.
pub fn patch_section(text: &str, patch: &str, create: bool) -> Result<String> {
    let first = patch.lines().next().unwrap_or_default();
    let Some((level, title)) = heading(first) else {
        return Err(Error::invalid(
            "a patch of a Markdown file begins with the heading of the section that it replaces",
        ));
    };
    let mut patch = patch.trim_end().to_owned();
    patch.push('\n');
    match section_range(text, title) {
        Some((range, body)) => {
            let (found, _) = heading(text[range.start..body].trim_end()).unwrap_or((level, title));
            if found != level {
                return Err(Error::invalid(format!("`{title}` is a heading of level {found}, not {level}")));
            }
            if headings(&patch).iter().skip(1).any(|inner| inner.level <= level) {
                return Err(Error::invalid(format!("the patch of `{title}` holds a second section")));
            }
            let gap = if range.end < text.len() { "\n" } else { "" };
            Ok(format!("{}{patch}{gap}{}", &text[..range.start], &text[range.end..]))
        }
        None if create => {
            let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
            let whole = format!("{}{gap}{patch}", ended(text));
            match section_range(&whole, title) {
                Some(_) => Ok(whole),
                None => {
                    Err(Error::invalid("the text ends in a code block that is not closed: close it with ``` first"))
                }
            }
        }
        None => Err(Error::not_found(format!("there is no heading `{title}` to patch"))),
    }
}

/// The text with a final newline, unless it is empty.
pub fn ended(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// Every pipe table of the text.
pub fn tables(text: &str) -> Vec<Table> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut tables, mut under, mut at) = (Vec::new(), String::new(), 0);
    while at < lines.len() {
        if let Some((_, title)) = heading(lines[at]) {
            under = title.to_owned();
        }
        let rule = lines.get(at + 1).is_some_and(|next| is_rule(next));
        if !(lines[at].trim_start().starts_with('|') && rule) {
            at += 1;
            continue;
        }
        let mut table = Table { heading: under.clone(), line: at + 1, columns: cells(lines[at]), rows: Vec::new() };
        at += 2;
        while at < lines.len() && lines[at].trim_start().starts_with('|') {
            table.rows.push(Row { line: at + 1, cells: cells(lines[at]) });
            at += 1;
        }
        tables.push(table);
    }
    tables
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('|') && line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = line.strip_suffix('|').unwrap_or(line);
    line.split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// One `key: value` line, with or without a bullet before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<'a> {
    pub line: usize,
    pub key: &'a str,
    pub value: &'a str,
}

/// The `key: value` lines of a text. A key is one to four words without punctuation.
pub fn fields(text: &str) -> impl Iterator<Item = Field<'_>> {
    text.lines().enumerate().filter_map(|(at, line)| {
        let line = line.trim();
        let line = line.strip_prefix("- ").unwrap_or(line);
        let (key, value) = line.split_once(':')?;
        let key = key.trim().trim_matches('*').trim();
        let plain = key.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '@'));
        (plain && !key.is_empty() && key.split(' ').count() <= 4).then(|| Field {
            line: at + 1,
            key,
            value: value.trim(),
        })
    })
}

/// The value of the first field of that name; `-` and nothing count as absent.
pub fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let found = fields(text).find(|field| field.key.eq_ignore_ascii_case(key))?.value;
    (!matches!(found, "" | "-")).then_some(found)
}

/// The `- ` lines of a text, without their bullets.
pub fn bullets(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.trim().strip_prefix("- ")).map(str::trim)
}

/// Refuses a text with a character that a terminal obeys. Whatever is written down is shown to somebody.
pub fn plain(what: &str, text: &str) -> Result<()> {
    match text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        Some(c) => {
            Err(Error::invalid(format!("{what} holds the control character U+{:04X}: leave it out", u32::from(c))))
        }
        None => Ok(()),
    }
}

/// At most so many characters, never cut within one.
pub fn clip(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests;
