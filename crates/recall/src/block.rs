//! The texts that the loop puts into a conversation: `<memory>` blocks and `<cathedral>` notices. Neither a page nor a title can end its
//! block or begin another.

use sha2::{Digest as _, Sha256};

use crate::page::headings;
use crate::resolve::Miss;
use crate::turn::FoundPage;
use acheron_base::delimited::{attribute, harmless};

/// How much of a title is repeated.
const TITLE: usize = 200;

/// A page as a block, and whether it had to be cut.
pub fn memory(title: &str, text: &str, budget: usize) -> (String, bool) {
    let (name, text) = (attribute(title), text.trim());
    if text.len() <= budget {
        return (format!("<memory name=\"{name}\">\n{}\n</memory>", harmless(text)), false);
    }
    let sum: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let end = (0..=budget).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let parts: Vec<&str> = headings(text).iter().map(|it| it.text).take(40).collect();
    let more = match parts[..] {
        [] => "The rest can be read in the file.".to_owned(),
        _ => format!("One part is recalled as `{}#` and its heading: {}", title, parts.join("; ")),
    };
    let head = format!("<memory name=\"{name}\" truncated=\"true\" bytes=\"{}\" sha256=\"{sum}\">", text.len());
    (format!("{head}\n{}\n[cut here]\n{}\n</memory>", harmless(&text[..end]), harmless(&more)), true)
}

/// Why a recall was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    Duplicate(&'a str),
    Limit,
    SearchLimit,
    EmptySearch,
    NothingFound(&'a str),
    /// The page, and the heading that it does not have.
    NoHeading(&'a str, &'a str),
    Missed(&'a str, &'a Miss),
}

pub fn notice(notice: &Notice) -> String {
    let said = match notice {
        Notice::Duplicate(title) => {
            format!("You have `{}` in front of you already. Answer with what you have.", short(title))
        }
        Notice::SearchLimit => {
            "No more can be searched in this turn. Recall a page, or answer with what you have.".to_owned()
        }
        Notice::EmptySearch => "The search names no words. Write what you look for between the tags.".to_owned(),
        Notice::NothingFound(query) => {
            format!(
                "No page has anything of `{}`. Search with other words, or answer with what you have.",
                short(query)
            )
        }
        Notice::NoHeading(title, heading) => {
            format!("The page `{}` has no heading `{}`; here is the whole page.", short(title), short(heading))
        }
        Notice::Limit => "No more pages can be recalled in this turn. Answer with what you have.".to_owned(),
        Notice::Missed(_, Miss::Empty) => {
            "The recall names no page. Write the title of a page between the tags.".to_owned()
        }
        Notice::Missed(title, Miss::NotFound) => format!(
            "There is no page `{}`. Recall only pages that are named in the index or in a page you have read.",
            short(title)
        ),
        Notice::Missed(title, Miss::Ambiguous(paths)) => {
            let paths: Vec<&str> = paths.iter().take(20).map(String::as_str).collect();
            format!("`{}` may be any of these: {}. Recall one of them by its path.", short(title), paths.join(", "))
        }
        Notice::Missed(title, Miss::Denied(why)) => {
            format!("`{}` is not to be recalled: {why}. Recall pages of the wiki by title.", short(title))
        }
        Notice::Missed(title, Miss::TooLong) => {
            format!("The page `{}` is longer than 1 MiB, and so is not read. It has to be split.", short(title))
        }
        Notice::Missed(title, Miss::Unreadable) => {
            format!("The page `{}` is there, but it is not text that can be read.", short(title))
        }
    };
    format!("<cathedral>\n{}\n</cathedral>", harmless(&said))
}

/// The pages that a search has found, as a block.
pub fn found(query: &str, pages: &[FoundPage]) -> String {
    let line = |page: &FoundPage| harmless(&format!("- [[{}]] ({}): {}", page.title, page.path, page.snippet));
    let lines: Vec<String> = pages.iter().map(line).collect();
    format!("<memory search=\"{}\">\n{}\n</memory>", attribute(&short(query)), lines.join("\n"))
}

/// The beginning of a notice that the index is another.
const NEW_INDEX: &str = "<cathedral>\nThe index of your memory has changed. It is now:\n\n";

/// Tells of an index that changed since it was shown.
pub fn new_index(root: &str) -> String {
    format!("{NEW_INDEX}{}\n</cathedral>", harmless(root))
}

pub fn is_new_index(text: &str) -> bool {
    text.starts_with(NEW_INDEX)
}

fn short(title: &str) -> String {
    title.chars().take(TITLE).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Whether a message was put there by the loop.
pub fn injected(text: &str) -> bool {
    text.starts_with("<memory ") || text.starts_with("<cathedral>")
}

#[cfg(test)]
mod tests;
