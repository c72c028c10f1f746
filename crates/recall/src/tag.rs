//! `<recall>Title</recall>`: what a model says when it wants to read a page; `<search>words</search>`, when it wants to find one.
//!
//! Upper case and line breaks make no difference; a tag in code is quoted, not meant; one that is not closed is text.

use std::ops::Range;

use crate::code::{code, within};

const TAGS: [(TagKind, &str, &str); 2] =
    [(TagKind::Recall, "<recall>", "</recall>"), (TagKind::Search, "<search>", "</search>")];
/// How often what is left after taking tags out is looked at again.
const PASSES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    Recall,
    Search,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    pub kind: TagKind,
    pub at: Range<usize>,
    /// The text between the tags, trimmed; may be empty.
    pub title: String,
}

/// Every tag in order. Of nested ones the innermost counts.
pub fn tags(text: &str) -> Vec<Tag> {
    // ASCII alone is made lower, so that places stay the same.
    let lower = text.to_ascii_lowercase();
    let stretches = code(text);
    let (mut found, mut open) = (Vec::new(), None);
    for (at, _) in lower.match_indices('<').filter(|(at, _)| !within(&stretches, *at)) {
        for (kind, opening, closing) in TAGS {
            if lower[at..].starts_with(opening) {
                open = Some((kind, at + opening.len(), at));
            } else if lower[at..].starts_with(closing)
                && let Some((_, inner, begin)) = open.take_if(|(opened, ..)| *opened == kind)
            {
                let title = text[inner..at].split_whitespace().collect::<Vec<_>>().join(" ");
                found.push(Tag { kind, at: begin..at + closing.len(), title });
            }
        }
    }
    found
}

/// The text as a person is shown it: without tags, also without those that come about by taking others out.
pub fn shown(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..PASSES {
        let found = tags(&text);
        if found.is_empty() {
            // What was code by its indentation may be none once blank space is gone.
            let shown = tidy(&text);
            if tags(&shown).is_empty() {
                return shown;
            }
            break;
        }
        let (mut kept, mut at) = (String::with_capacity(text.len()), 0);
        for tag in found {
            kept.push_str(&text[at..tag.at.start]);
            at = tag.at.end;
        }
        kept.push_str(&text[at..]);
        text = kept;
    }
    for (_, _, closing) in TAGS {
        let closes: Vec<usize> = text.to_ascii_lowercase().match_indices(closing).map(|(at, _)| at).collect();
        for at in closes.into_iter().rev() {
            text.replace_range(at..=at, "&lt;");
        }
    }
    tidy(&text)
}

fn tidy(text: &str) -> String {
    let mut out = text.trim().to_owned();
    while out.contains("\n\n\n") {
        out = out.replace("\n\n\n", "\n\n");
    }
    out
}

#[cfg(test)]
mod tests;
