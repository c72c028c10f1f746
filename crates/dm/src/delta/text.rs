//! The delta as text: `<!-- ARCHIVE_DELTA`, a list of files, `-->` alone on its line.
//!
//! The block ends at a line that is exactly `-->` at the opener's indent, so a comment inside a file's text does not end it.

use super::{Delta, DeltaItem, What};
use acheron_base::{Error, Result};

const MOST: usize = 64;

pub fn render(delta: &Delta) -> String {
    let mut out = String::from("<!-- ARCHIVE_DELTA\n");
    for flag in &delta.risk_flags {
        out.push_str(&format!("risk_flag: {flag}\n"));
    }
    out.push_str("files:\n");
    for item in &delta.items {
        out.push_str(&format!("  - path: {}\n", item.path));
        if let Some(base) = &item.base {
            out.push_str(&format!("    base: {base}\n"));
        }
        let (word, text) = match &item.what {
            What::Append(text) => ("append", text),
            What::Patch { text, create } => {
                if *create {
                    out.push_str("    create: true\n");
                }
                ("patch", text)
            }
        };
        out.push_str(&format!("    {word}: |\n"));
        for line in text.trim_end_matches('\n').split('\n') {
            out.push_str(if line.is_empty() { "" } else { "      " });
            out.push_str(line);
            out.push('\n');
        }
    }
    out.push_str("-->\n");
    out
}

/// The one delta block of a text.
pub fn parse(text: &str) -> Result<Delta> {
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line)).peekable();
    let opener = lines.by_ref().find(|(_, line)| line.trim() == "<!-- ARCHIVE_DELTA");
    let Some((_, opener)) = opener else { return Err(Error::invalid("there is no <!-- ARCHIVE_DELTA block")) };
    let indent = &opener[..opener.len() - opener.trim_start().len()];
    let mut delta = Delta::default();
    let (mut listed, mut open): (bool, Option<Draft>) = (false, None);
    while let Some((at, raw)) = lines.next() {
        let wrong = |message: String| Error::invalid(format!("delta line {at}: {message}"));
        let line = raw.strip_prefix(indent).unwrap_or(raw);
        if line == "-->" {
            if !listed {
                return Err(wrong("there is no files: list".into()));
            }
            delta.items.extend(open.take().map(Draft::close).transpose()?);
            return Ok(delta);
        }
        if line.trim().is_empty() {
            continue;
        }
        if let Some(flag) = line.strip_prefix("risk_flag: ") {
            delta.risk_flags.push(flag.trim().to_owned());
            continue;
        }
        if line.trim_end() == "files:" {
            listed = true;
            continue;
        }
        if let Some(path) = line.strip_prefix("  - path:").filter(|_| listed) {
            delta.items.extend(open.take().map(Draft::close).transpose()?);
            if delta.items.len() >= MOST {
                return Err(wrong(format!("more than {MOST} files")));
            }
            open = Some(Draft { line: at, path: path.trim().to_owned(), ..Draft::default() });
            continue;
        }
        let Some((draft, (key, value))) =
            open.as_mut().zip(line.strip_prefix("    ").and_then(|rest| rest.split_once(':')))
        else {
            return Err(wrong(format!("`{}` is no part of a delta", crate::md::clip(line.trim(), 40))));
        };
        match (key, value.trim()) {
            ("append", "|") => draft.append = Some(block(&mut lines, indent)),
            ("patch", "|") => draft.patch = Some(block(&mut lines, indent)),
            ("append" | "patch", _) => {
                return Err(wrong(format!("{key}: must be followed by | and an indented block")));
            }
            ("create", value) => draft.create = value == "true",
            ("base", value) => draft.base = Some(value.to_owned()),
            (other, _) => return Err(wrong(format!("`{other}` is refused: only append and patch change a file"))),
        }
        if draft.append.is_some() && draft.patch.is_some() {
            return Err(wrong(format!("{} has both append and patch", draft.path)));
        }
    }
    Err(Error::invalid("the delta is not closed by a line that is -->"))
}

/// The lines that are indented deeper than the key; their indent is taken off.
fn block<'a>(lines: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'a str)>>, indent: &str) -> String {
    let mut text = String::new();
    while let Some((_, raw)) = lines.peek() {
        let line = raw.strip_prefix(indent).unwrap_or(raw);
        let body = line.strip_prefix("      ");
        match body {
            Some(body) => text.push_str(body),
            None if line.trim().is_empty() => (),
            None => break,
        }
        text.push('\n');
        lines.next();
    }
    format!("{}\n", text.trim_end_matches('\n'))
}

#[derive(Default)]
struct Draft {
    line: usize,
    path: String,
    append: Option<String>,
    patch: Option<String>,
    create: bool,
    base: Option<String>,
}

impl Draft {
    fn close(self) -> Result<DeltaItem> {
        let Draft { line, path, append, patch, create, base } = self;
        let what = match (append, patch) {
            (Some(text), None) => What::Append(text),
            (None, Some(text)) => What::Patch { text, create },
            _ => return Err(Error::invalid(format!("delta line {line}: {path} has neither append nor patch"))),
        };
        Ok(DeltaItem { path, what, base })
    }
}

#[cfg(test)]
mod tests;
