//! The links of a page: `[[Title]]`, `[[dir/Title#heading|alias]]`, `[text](other.md)`. Those in code are none, nor is an
//! embedded picture.

use crate::code::{code, within};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// As it is resolved: what stands in the brackets, or a path below the wiki.
    pub target: String,
    pub line: usize,
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
        let Some((target, end)) = wiki(text, begin).or_else(|| markdown(path, text, begin)) else { continue };
        line += bytes[counted..begin].iter().filter(|byte| **byte == b'\n').count();
        (counted, at) = (begin, end);
        found.push(Link { target, line });
        if found.len() == MOST {
            break;
        }
    }
    found
}

fn wiki(text: &str, begin: usize) -> Option<(String, usize)> {
    let inner = text[begin..].strip_prefix("[[")?;
    let end = inner.find([']', '\n', '['])?;
    let target = inner[..end].trim();
    (inner[end..].starts_with("]]") && !target.is_empty()).then(|| (target.to_owned(), begin + 2 + end + 2))
}

/// `[text](path.md)`: the path begins where the page is.
fn markdown(path: &str, text: &str, begin: usize) -> Option<(String, usize)> {
    let rest = &text[begin + 1..];
    let close = rest.find([']', '\n', '['])?;
    let inner = rest[close..].strip_prefix("](")?;
    let end = inner.find([')', '\n'])?;
    let target = inner[..end].split_whitespace().next()?;
    let (file, heading) = target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
    let mine = inner[end..].starts_with(')') && file.ends_with(".md") && !file.contains("://");
    if !mine {
        return None;
    }
    let file = file.replace("%20", " ");
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    let heading = heading.map(|heading| format!("#{heading}")).unwrap_or_default();
    // A slash, so that it is taken for the path that it is.
    Some((format!("./{}{heading}", parts.join("/")), begin + 1 + close + 2 + end + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn links_are_found_with_their_lines() {
        let text = "[[A]] and [[ dir/B#h|b ]]\n`[[code]]` ![[pic]] \\[[no]]\n[[C]\n[[]] [[D\n]] [c](../x/C.md#h)\n\
                    [web](https://a/b.md) ![p](p.md) [e](<E.md>) [f](F%20f.md)";
        let found: Vec<_> = links("semantic/P.md", text).into_iter().map(|it| (it.line, it.target)).collect();
        let wanted = [(1, "A"), (1, "dir/B#h|b"), (5, "./x/C.md#h"), (6, "./semantic/F f.md")];
        assert_eq!(found, wanted.map(|(line, target)| (line, target.to_owned())));
        assert_eq!(links("P.md", "[x](../../y.md)")[0].target, "./../../y.md");
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\[|\\]|\\(|\\)|a|ä|\\.md|!|`|\n|#){0,60}") {
            links("a/b.md", &text);
        }
    }
}
