//! The links of a page: `[[Title]]`, `[[dir/Title#heading|alias]]`, `[text](other.md)`, `[text](<other page.md>)`, and the
//! definition of a reference, `[label]: other.md`. A path is percent-decoded; one that begins with `/` begins at the wiki, any
//! other where the page is. Links in code are none, nor is an embedded picture.

use std::ops::Range;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::code::{code, within};

/// What cannot stand in a path between parentheses.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'(').add(b')').add(b'<').add(b'>').add(b'#').add(b'\\');

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// As it is resolved: what stands in the brackets, or a path below the wiki.
    pub target: String,
    pub line: usize,
    /// What names the page, in the text.
    pub at: Range<usize>,
    pub form: LinkForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkForm {
    /// `[[…]]`
    Wiki,
    /// A path, encoded.
    Path,
    /// A path in angle brackets, as it is.
    Angle,
}

/// The links of one page in little memory: a wiki has many more links than pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkList(Box<str>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRef<'a> {
    pub target: &'a str,
    pub line: usize,
}

impl LinkList {
    pub fn of(links: &[Link]) -> LinkList {
        let lines: String = links.iter().map(|link| format!("{} {}\n", link.line, link.target)).collect();
        LinkList(lines.into())
    }

    /// From what [`stored`](LinkList::stored) gave.
    pub fn from_stored(stored: String) -> LinkList {
        LinkList(stored.into())
    }

    /// As it can be put on a disk.
    pub fn stored(&self) -> &str {
        &self.0
    }

    pub fn iter(&self) -> impl Iterator<Item = LinkRef<'_>> {
        let lines = self.0.split_terminator('\n').filter_map(|line| line.split_once(' '));
        lines.map(|(line, target)| LinkRef { target, line: line.parse().unwrap_or(0) })
    }
}

/// No page needs more.
const MOST: usize = 10_000;

/// The links of the page at `path`, in order.
pub fn links(path: &str, text: &str) -> Vec<Link> {
    let stretches = code(text);
    let bytes = text.as_bytes();
    let (mut found, mut line, mut counted, mut at) = (Vec::new(), 1, 0, 0);
    while let Some(offset) = text[at..].find('[') {
        let begin = at + offset;
        at = begin + 1;
        if within(&stretches, begin) || (begin > 0 && matches!(bytes[begin - 1], b'!' | b'\\')) {
            // The second bracket of an embedded page is not the first one of a link.
            at += usize::from(bytes.get(at) == Some(&b'['));
            continue;
        }
        let read = wiki(text, begin).or_else(|| inline(path, text, begin)).or_else(|| definition(path, text, begin));
        let Some((target, form, inner)) = read else { continue };
        line += bytes[counted..begin].iter().filter(|byte| **byte == b'\n').count();
        (counted, at) = (begin, inner.end);
        found.push(Link { target, line, at: inner, form });
        if found.len() == MOST {
            break;
        }
    }
    found
}

type ReadLink = (String, LinkForm, Range<usize>);

fn wiki(text: &str, begin: usize) -> Option<ReadLink> {
    let inner = text[begin..].strip_prefix("[[")?;
    let end = inner.find([']', '\n', '['])?;
    let target = inner[..end].trim();
    let at = begin + 2 + (inner[..end].len() - inner[..end].trim_start().len());
    let whole = inner[end..].starts_with("]]") && !target.is_empty();
    whole.then(|| (target.to_owned(), LinkForm::Wiki, at..at + target.len()))
}

/// `[text](path.md)`
fn inline(path: &str, text: &str, begin: usize) -> Option<ReadLink> {
    let close = begin + 1 + text[begin + 1..].find([']', '\n', '['])?;
    text[close..].strip_prefix("](")?;
    let read = destination(path, text, close + 2)?;
    let rest = &text[read.2.end..];
    // A title in quotes may follow.
    rest.find([')', '\n']).is_some_and(|end| rest[end..].starts_with(')')).then_some(read)
}

/// `[label]: path.md`, on a line of its own.
fn definition(path: &str, text: &str, begin: usize) -> Option<ReadLink> {
    let before = &text[text[..begin].rfind('\n').map_or(0, |end| end + 1)..begin];
    if before.len() > 3 || !before.bytes().all(|byte| byte == b' ') {
        return None;
    }
    let close = begin + 1 + text[begin + 1..].find([']', '\n', '['])?;
    let rest = text[close..].strip_prefix("]:")?;
    destination(path, text, close + 2 + (rest.len() - rest.trim_start_matches([' ', '\t']).len()))
}

/// The page that the path at `begin` names.
fn destination(path: &str, text: &str, begin: usize) -> Option<ReadLink> {
    let rest = &text[begin..];
    let (form, at) = match rest.strip_prefix('<') {
        Some(inner) => (
            LinkForm::Angle,
            begin + 1..begin + 1 + inner.find(['>', '\n']).filter(|end| inner[*end..].starts_with('>'))?,
        ),
        None => (LinkForm::Path, begin..begin + rest.find([')', '\n', ' ', '\t']).unwrap_or(rest.len())),
    };
    let written = &text[at.clone()];
    let (file, heading) = written.split_once('#').map_or((written, None), |(file, heading)| (file, Some(heading)));
    let file = percent_decode_str(file).decode_utf8().ok()?;
    if !file.ends_with(".md") || file.contains("://") || file.contains(['\n', '\0']) {
        return None;
    }
    let mut parts: Vec<&str> = if file.starts_with('/') { Vec::new() } else { folder(path) };
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    let heading = heading.map(|heading| format!("#{heading}")).unwrap_or_default();
    // A slash, so that it is taken for the path that it is.
    Some((format!("./{}{heading}", parts.join("/")), form, at))
}

fn folder(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    parts
}

/// The path of a page as it is written in a link of the page at `from`: from the wiki if it was before, else from there.
pub(crate) fn written_path(from: &str, to: &str, before: &str, form: LinkForm) -> String {
    let path = if before.starts_with('/') {
        format!("/{to}")
    } else {
        let (from, mut to): (Vec<&str>, Vec<&str>) = (folder(from), to.split('/').collect());
        let shared = from.iter().zip(&to[..to.len() - 1]).take_while(|(a, b)| a == b).count();
        let mut parts = vec![".."; from.len() - shared];
        parts.extend(to.drain(shared..));
        parts.join("/")
    };
    let heading = before.split_once('#').map(|(_, heading)| format!("#{heading}")).unwrap_or_default();
    match form {
        LinkForm::Angle => format!("{path}{heading}"),
        _ => format!("{}{heading}", utf8_percent_encode(&path, ENCODED)),
    }
}

#[cfg(test)]
mod tests;
