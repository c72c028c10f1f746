//! The template language: `$name`, `${name}`, `$$`, and nothing else.
//!
//! A text is parsed once into pieces, and whatever is malformed is found then. The `recall` dialect knows two literal
//! markers instead and leaves `$` alone. Knows nothing of files, sections or types.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    #[default]
    Plain,
    Recall,
}

/// The field that decides about the block between the markers of the `recall` dialect.
pub const INCLUDE_RECALL: &str = "include_recall";
/// The field that stands for `__MEMORY_ROOT__`.
pub const MEMORY_ROOT: &str = "memory_root";

const OPEN: &str = "{{IF_INCLUDE_RECALL}}";
const CLOSE: &str = "{{/IF_INCLUDE_RECALL}}";
const ROOT: &str = "__MEMORY_ROOT__";

/// A template that is known to be well-formed.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    source: String,
    pieces: Vec<Piece>,
    fields: Vec<Field>,
}

/// Where a template asks for a value, in the text as its author wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    /// `indent` is the white space that begins the line of the placeholder.
    Field {
        name: String,
        indent: String,
    },
    When {
        name: String,
        inner: Vec<Piece>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

/// Gives the text of a field, and decides about a block; the `indent` is for values that hang.
pub trait Values {
    type Lack;
    fn text(&self, name: &str, indent: &str) -> Result<String, Self::Lack>;
    fn holds(&self, name: &str) -> Result<bool, Self::Lack>;
}

impl Template {
    pub fn parse(text: &str, dialect: Dialect) -> Result<Template, Malformed> {
        let raw = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut fields = Vec::new();
        // The raw text gives the places, the dedented one the pieces: both have the same placeholders in the same order.
        scan(raw, dialect, &mut fields)?;
        // A mark that an editor left behind white space goes too, or the text would change by being read again.
        let dedented = dedent(raw);
        let source = dedented.trim_end().trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').to_owned();
        let pieces = scan(&source, dialect, &mut Vec::new())?;
        Ok(Template { source, pieces, fields })
    }

    /// The text without the indentation and the white space around it: what is hashed, seeded and compared.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    pub fn fill<V: Values>(&self, values: &V) -> Result<String, V::Lack> {
        let mut out = String::with_capacity(self.source.len() * 2);
        fill(&self.pieces, values, &mut out)?;
        Ok(match out.trim() {
            trimmed if trimmed.len() == out.len() => out,
            trimmed => trimmed.to_owned(),
        })
    }
}

fn fill<V: Values>(pieces: &[Piece], values: &V, out: &mut String) -> Result<(), V::Lack> {
    let mut gap = 0;
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                let newlines = text.bytes().take_while(|&b| b == b'\n').count().min(gap);
                out.push_str(&text[newlines..]);
            }
            Piece::Field { name, indent } => out.push_str(&values.text(name, indent)?),
            Piece::When { name, inner } if values.holds(name)? => {
                let mut kept = String::new();
                fill(inner, values, &mut kept)?;
                out.push_str(kept.trim());
            }
            // A block that falls out takes one of the two gaps around it along.
            Piece::When { .. } => {
                gap = out.bytes().rev().take_while(|&b| b == b'\n').count();
                continue;
            }
        }
        gap = 0;
    }
    Ok(())
}

fn scan(text: &str, dialect: Dialect, fields: &mut Vec<Field>) -> Result<Vec<Piece>, Malformed> {
    match dialect {
        Dialect::Plain => scan_plain(text, fields),
        Dialect::Recall => scan_recall(text, fields),
    }
}

fn scan_plain(text: &str, fields: &mut Vec<Field>) -> Result<Vec<Piece>, Malformed> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut spots = Spots::new(text);
    let mut rest = 0;
    while let Some(found) = text[rest..].find('$') {
        let dollar = rest + found;
        literal.push_str(&text[rest..dollar]);
        let after = &text[dollar + 1..];
        if after.starts_with('$') {
            literal.push('$');
            rest = dollar + 2;
            continue;
        }
        let (name, length) = match after.strip_prefix('{') {
            Some(inside) => {
                let name = identifier(inside);
                let closed = !name.is_empty() && inside[name.len()..].starts_with('}');
                (name, if closed { name.len() + 2 } else { 0 })
            }
            None => (identifier(after), identifier(after).len()),
        };
        let (line, column) = spots.of(dollar);
        if length == 0 {
            let shown: String = text[dollar..].chars().take_while(|c| !c.is_whitespace()).take(16).collect();
            let message =
                format!("malformed placeholder `{shown}`: write $name or ${{name}}, and $$ for a dollar sign");
            return Err(Malformed { line, column, message });
        }
        push_text(&mut pieces, &mut literal);
        pieces.push(Piece::Field { name: name.to_owned(), indent: indent_of(text, spots.begin, dollar) });
        fields.push(Field { name: name.to_owned(), line, column });
        rest = dollar + 1 + length;
    }
    literal.push_str(&text[rest..]);
    push_text(&mut pieces, &mut literal);
    Ok(pieces)
}

fn scan_recall(text: &str, fields: &mut Vec<Field>) -> Result<Vec<Piece>, Malformed> {
    let mut outer = Vec::new();
    // The open block: where its marker stands and what came before it.
    let mut block: Option<((usize, usize), Vec<Piece>)> = None;
    let mut spots = Spots::new(text);
    let mut rest = 0;
    // Where each marker stands next; looked for anew only when it was passed, so that the text is read once.
    let mut markers = [OPEN, CLOSE, ROOT].map(|marker| (text.find(marker), marker));
    loop {
        for (next, marker) in &mut markers {
            if next.is_some_and(|at| at < rest) {
                *next = text[rest..].find(*marker).map(|at| rest + at);
            }
        }
        let next = markers.iter().filter_map(|(at, marker)| Some(((*at)?, *marker))).min();
        let (at, marker) = next.unwrap_or((text.len(), ""));
        push_text(&mut outer, &mut text[rest..at].to_owned());
        let (line, column) = spots.of(at);
        let refuse = |message: &str| Err(Malformed { line, column, message: message.to_owned() });
        match (marker, block.take()) {
            ("", None) => return Ok(outer),
            ("", Some(((line, column), _))) => {
                return Err(Malformed { line, column, message: format!("{OPEN} is never closed by {CLOSE}") });
            }
            (ROOT, open) => {
                outer.push(Piece::Field { name: MEMORY_ROOT.to_owned(), indent: String::new() });
                fields.push(Field { name: MEMORY_ROOT.to_owned(), line, column });
                block = open;
            }
            (OPEN, None) => {
                fields.push(Field { name: INCLUDE_RECALL.to_owned(), line, column });
                block = Some(((line, column), std::mem::take(&mut outer)));
            }
            (OPEN, Some(_)) => return refuse(&format!("{OPEN} stands inside another one")),
            (_, None) => return refuse(&format!("{CLOSE} closes nothing")),
            (_, Some((_, before))) => {
                let inner = std::mem::replace(&mut outer, before);
                outer.push(Piece::When { name: INCLUDE_RECALL.to_owned(), inner });
            }
        }
        rest = at + marker.len();
    }
}

fn push_text(pieces: &mut Vec<Piece>, literal: &mut String) {
    if !literal.is_empty() {
        pieces.push(Piece::Text(std::mem::take(literal)));
    }
}

fn identifier(text: &str) -> &str {
    let part =
        |(at, byte): (usize, u8)| byte == b'_' || byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit());
    let length = text.bytes().enumerate().take_while(|&pair| part(pair)).count();
    &text[..length]
}

/// Deeper than this nothing hangs: each placeholder of a line keeps the white space that begins it.
const DEEPEST: usize = 256;

fn indent_of(text: &str, line: usize, at: usize) -> String {
    text[line..at].chars().take_while(|c| matches!(c, ' ' | '\t')).take(DEEPEST).collect()
}

/// Lines and columns of rising offsets, in one pass.
struct Spots<'a> {
    text: &'a str,
    at: usize,
    /// Where the line begins.
    begin: usize,
    line: usize,
    column: usize,
}

impl<'a> Spots<'a> {
    fn new(text: &'a str) -> Self {
        Spots { text, at: 0, begin: 0, line: 1, column: 1 }
    }

    fn of(&mut self, offset: usize) -> (usize, usize) {
        for (at, c) in self.text[self.at..offset].char_indices() {
            (self.line, self.column) = if c == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
            if c == '\n' {
                self.begin = self.at + at + 1;
            }
        }
        self.at = offset;
        (self.line, self.column)
    }
}

/// Takes away the white space that all lines share. Tabs and spaces differ; a line of white space alone becomes empty.
pub fn dedent(text: &str) -> String {
    let blank = |line: &str| line.trim_matches([' ', '\t', '\r', '\n']).is_empty();
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut margin: Option<&str> = None;
    for line in text.split_inclusive('\n').filter(|line| !blank(line)) {
        let own = &line[..indent(line)];
        margin = Some(match margin {
            None => own,
            Some(margin) => {
                let shared = margin.bytes().zip(own.bytes()).take_while(|(a, b)| a == b).count();
                &margin[..shared]
            }
        });
    }
    let margin = margin.map_or(0, str::len);
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        out.push_str(if blank(line) { line.trim_start_matches([' ', '\t']) } else { &line[margin..] });
    }
    out
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

#[cfg(test)]
mod tests;
