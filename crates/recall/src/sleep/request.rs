//! The data of one request to a model: a part of a transcript, and the pages that it may change. Each stands between delimiters
//! that nothing in it can end.

use super::proposal::{ProposedPage, SleepProposal};
use super::source::SourceRequest;
use acheron_base::delimited::{attribute, delimited, harmless};
use acheron_base::quoted;

/// How many faults a model is told of.
const TOLD: usize = 20;

/// The message to a model: the pages, then what was said.
pub fn request(source: &SourceRequest, pages: &[(String, String)]) -> String {
    let pages: Vec<String> = pages.iter().map(|(path, text)| delimited("page", Some(("path", path)), text)).collect();
    let said = source.messages.iter().map(|message| {
        let (id, by) = (attribute(&message.id), message.role.name());
        format!("<said id=\"{id}\" by=\"{by}\">\n{}\n</said>", harmless(message.text.trim()))
    });
    let said: Vec<String> = said.collect();
    let of = attribute(&source.transcript);
    format!("{}\n\n<transcript of=\"{of}\">\n{}\n</transcript>", pages.join("\n\n"), said.join("\n"))
}

/// Tells a model why its proposal is refused.
pub fn refusal(faults: &[String]) -> String {
    let faults: Vec<String> = faults.iter().take(TOLD).map(|fault| format!("- {}", harmless(fault))).collect();
    format!(
        "Your proposal is refused, and nothing of it is kept:\n\n{}\n\nAnswer with the whole proposal again.",
        faults.join("\n")
    )
}

/// Faults of a proposal that changes pages which its maker was not shown: it cannot know what they say.
pub fn unseen(proposal: &SleepProposal, shown: &[(String, String)], is_there: &dyn Fn(&str) -> bool) -> Vec<String> {
    let unseen = |page: &&ProposedPage| !shown.iter().any(|(path, _)| *path == page.path) && is_there(&page.path);
    let said = |page: &ProposedPage| {
        format!("{} is there already and was not shown to you: leave it, or take another path", quoted(&page.path))
    };
    proposal.pages.iter().filter(unseen).map(said).collect()
}
