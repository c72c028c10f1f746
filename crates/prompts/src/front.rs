//! The front matter of a prompt of one file: a few names between two lines of `---`, and nothing else.

use serde::Serialize;

use crate::names;
use crate::template::Dialect;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Front {
    pub phase_id: Option<String>,
    pub aliases: Vec<String>,
    pub max_visits: Option<u32>,
    /// The commands that a phase allows; all if it does not say.
    pub commands: Option<Vec<String>>,
    /// The phases that may follow a phase; any if it does not say.
    pub routes: Option<Vec<String>>,
    pub dialect: Dialect,
}

/// A fault with its line and column.
#[derive(Debug, PartialEq)]
pub struct Wrong {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

/// The front matter, the text below it, and how many lines lie above that text.
pub fn split(file: &str) -> Result<(Front, &str, usize), Wrong> {
    let text = file.strip_prefix('\u{feff}').unwrap_or(file);
    let mut lines = text.split_inclusive('\n');
    let fence = |line: &str| line.trim_end() == "---";
    match lines.next() {
        Some(first) if fence(first) => {}
        _ => return Ok((Front::default(), text, 0)),
    }
    let mut front = Front::default();
    let mut seen: Vec<&str> = Vec::new();
    let mut offset = text.split_inclusive('\n').next().map_or(0, str::len);
    let mut list = "";
    for (number, line) in lines.enumerate().map(|(index, line)| (index + 2, line)) {
        offset += line.len();
        if fence(line) {
            return Ok((front, &text[offset..], number));
        }
        let wrong = |message: String| Wrong { line: number, column: 1, message };
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        if let (Some(items), Some(item)) = (front.list(list), bare.strip_prefix("- ")) {
            items.push(unquoted(item).to_owned());
            continue;
        }
        let (name, value) =
            line.split_once(':').ok_or_else(|| wrong("front matter is written as 'name: value'".to_owned()))?;
        let (name, value) = (name.trim(), value.trim());
        if seen.contains(&name) {
            return Err(wrong(format!("`{name}` is given twice")));
        }
        seen.push(name);
        list = if value.is_empty() { name } else { "" };
        front.take(name, value).map_err(wrong)?;
    }
    Err(Wrong { line: 1, column: 1, message: "front matter is never closed by a line of ---".to_owned() })
}

impl Front {
    /// The list of that name, which is there from now on.
    fn list(&mut self, name: &str) -> Option<&mut Vec<String>> {
        match name {
            "aliases" => Some(&mut self.aliases),
            "commands" => Some(self.commands.get_or_insert_default()),
            "routes" => Some(self.routes.get_or_insert_default()),
            _ => None,
        }
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "phase_id" if unquoted(value).is_empty() => return Err("phase_id is empty".to_owned()),
            "phase_id" => self.phase_id = Some(unquoted(value).to_owned()),
            "aliases" | "commands" | "routes" => {
                let inner = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                let inner = if value.is_empty() { Some("") } else { inner };
                let inner = inner.ok_or_else(|| format!("{name} are written [a, b], or one per line after '- '"))?;
                let items = inner.split(',').map(|item| unquoted(item).to_owned()).filter(|item| !item.is_empty());
                if let Some(list) = self.list(name) {
                    list.extend(items);
                }
            }
            "max_visits" => {
                let visits = value.parse().ok().filter(|&visits| visits > 0);
                self.max_visits =
                    Some(visits.ok_or_else(|| {
                        format!("max_visits is a whole number above 0, not `{}`", names::clipped(value))
                    })?);
            }
            "dialect" => {
                self.dialect = match unquoted(value) {
                    "plain" => Dialect::Plain,
                    "recall" => Dialect::Recall,
                    other => return Err(format!("dialect is plain or recall, not `{}`", names::clipped(other))),
                };
            }
            other => {
                let known = "phase_id, aliases, max_visits, commands, routes, dialect";
                return Err(format!("front matter has no `{}`; it knows {known}", names::clipped(other)));
            }
        }
        Ok(())
    }
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests;
