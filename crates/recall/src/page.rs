//! A page by its path and its text: class, title, front matter, headings, sections.

use unicode_normalization::UnicodeNormalization as _;

use crate::code::{code, within};
use acheron_base::utf8::may_be_part;
use acheron_base::{Error, Result, quoted};

/// The longest page, in bytes.
pub const LONGEST_PAGE: usize = 1 << 20;
/// The entry page.
pub const ROOT: &str = "index.md";
/// The folders of a new wiki.
pub const FOLDERS: [&str; 5] = ["semantic", "episodic", "episodic-raw", "sleep", "meta"];

/// The purpose of a page. Only the first folder decides: a topic called `sleep` below `semantic/` is a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Index,
    Node,
    /// `meta/`: reached by its path, never counted as memory.
    Meta,
    /// `episodic-raw/`: transcripts as they were.
    Raw,
    /// `sleep/`: the jobs of consolidation.
    Sleep,
}

impl Class {
    pub fn of(path: &str) -> Class {
        match path.split_once('/').map(|(first, _)| first) {
            Some("sleep") => Class::Sleep,
            Some("episodic-raw") => Class::Raw,
            Some("meta") => Class::Meta,
            None if path == ROOT => Class::Index,
            _ => Class::Node,
        }
    }

    /// Whether it is hidden unless it is asked for.
    pub fn excluded(self) -> bool {
        matches!(self, Class::Raw | Class::Sleep)
    }
}

/// Whether a page may have this path.
pub fn check_path(path: &str) -> Result<()> {
    let name =
        path.strip_suffix(".md").ok_or_else(|| Error::invalid(format!("{path}: a page is called <title>.md")))?;
    for part in name.split('/') {
        if part.is_empty() || part.starts_with('.') || part.trim() != part || part.len() > 240 {
            return Err(Error::invalid(format!("{path}: {} is not a name for a page", quoted(part))));
        }
        if part.contains(['[', ']', '|', '#']) {
            return Err(Error::invalid(format!("{path}: a title with brackets, bars or `#` cannot be linked")));
        }
        if let Some(sign) = part.chars().find(|c| is_hidden(*c)) {
            let sentence = format!("the title {} has the sign U+{:04X}, which nobody sees", quoted(part), sign as u32);
            return Err(Error::invalid(sentence));
        }
    }
    match Class::of(path).excluded() {
        true => Err(Error::forbidden(format!("{path}: transcripts and jobs are not written as pages"))),
        false => Ok(()),
    }
}

/// Controls, and signs that turn the direction of what follows or have no width.
pub fn is_hidden(c: char) -> bool {
    let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    (c.is_control() && c != '\t') || turns || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// The text of a page, if these bytes may be one.
pub fn check_text(bytes: &[u8]) -> Result<&str> {
    if bytes.len() > LONGEST_PAGE {
        return Err(Error::too_large(format!("a page has at most {LONGEST_PAGE} bytes: split it")));
    }
    check_part(bytes, true)?;
    std::str::from_utf8(bytes).map_err(|_| Error::invalid("a page is UTF-8 text"))
}

/// Whether these bytes may be a part of a page: its beginning, or one from the middle.
pub fn check_part(bytes: &[u8], is_first: bool) -> Result<()> {
    if bytes.contains(&0) {
        return Err(Error::invalid("a page holds no NUL"));
    }
    match may_be_part(bytes, is_first) {
        true => Ok(()),
        false => Err(Error::invalid("a page is UTF-8 text")),
    }
}

/// The name of a page: that of its file. Dots in it are ordinary.
pub fn title(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}

/// One spelling for all: composed, lower case.
pub fn fold(text: &str) -> String {
    text.nfc().flat_map(char::to_lowercase).nfc().collect()
}

/// The text after the front matter. That begins with `---` in the first line and ends with a line that is only that.
pub fn body(text: &str) -> &str {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return text };
    let mut at = first.len();
    for line in lines {
        at += line.len();
        if line.trim_end() == "---" {
            return &text[at..];
        }
    }
    text
}

/// The front matter, without the lines around it; empty if there is none.
fn front(text: &str) -> &str {
    let whole = text.strip_prefix('\u{feff}').unwrap_or(text);
    let end = whole.len() - body(text).len();
    let inner = whole[..end].trim_end().strip_suffix("---").unwrap_or_default();
    inner.split_once('\n').map_or("", |(_, inner)| inner)
}

/// How many other names of one page count.
const NAMES: usize = 32;

/// The names of a page beside that of its file: its first heading of the first level, and the `aliases` of its front matter.
pub fn other_names(path: &str, text: &str) -> Vec<String> {
    let body = body(text);
    let heading = headings(body).into_iter().find(|heading| heading.level == 1).map(|heading| heading.text.to_owned());
    let mut names: Vec<String> = heading.into_iter().chain(aliases(front(text))).collect();
    names.retain(|name| !name.is_empty() && name.len() <= 240 && name != title(path) && !name.contains('\n'));
    names.truncate(NAMES);
    names
}

/// `aliases: [a, "b"]`, `aliases: a`, or a line `- a` for each.
fn aliases(front: &str) -> Vec<String> {
    let mut lines = front.lines();
    let Some(first) = lines.find_map(|line| line.strip_prefix("aliases:").or_else(|| line.strip_prefix("alias:")))
    else {
        return Vec::new();
    };
    let plain = |name: &str| name.trim().trim_matches(['"', '\'']).trim().to_owned();
    match first.trim() {
        "" => lines.map_while(|line| line.trim_start().strip_prefix("- ")).map(plain).collect(),
        list => match list.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
            Some(inner) => inner.split(',').map(plain).collect(),
            None => vec![plain(list)],
        },
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading<'a> {
    pub level: usize,
    pub text: &'a str,
    pub at: usize,
}

/// The headings that are written with `#`, outside of code.
pub fn headings(body: &str) -> Vec<Heading<'_>> {
    let stretches = code(body);
    let (mut found, mut at) = (Vec::new(), 0);
    for line in body.split_inclusive('\n') {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        let text = line[level..].trim();
        if (1..=6).contains(&level) && line[level..].starts_with(' ') && !within(&stretches, at) {
            found.push(Heading { level, text: text.trim_end_matches('#').trim_end(), at });
        }
        at += line.len();
    }
    found
}

/// The part of a page under a heading, up to the next one that is not below it.
pub fn section<'a>(body: &'a str, heading: &str) -> Option<&'a str> {
    let all = headings(body);
    let wanted = fold(heading.trim());
    let number = all.iter().position(|it| fold(it.text) == wanted)?;
    let begin = &all[number];
    let end = all[number + 1..].iter().find(|it| it.level <= begin.level).map_or(body.len(), |it| it.at);
    Some(&body[begin.at..end])
}

#[cfg(test)]
mod tests;
