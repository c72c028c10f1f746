//! What a model proposes: read from its answer, and its short marks of citations replaced by links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::source::SourceMessage;
use crate::code::{code, within};
use acheron_base::quoted;
use acheron_base::reply_scan::{ReplyScan, ScanLimits};

/// The largest answer that is read, and how many objects it may have.
const LIMITS: ScanLimits = ScanLimits { bytes: 4 << 20, depth: 16, values: 64 };

/// Changed and new pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SleepProposal {
    pub pages: Vec<ProposedPage>,
}

/// A page as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposedPage {
    /// Below the wiki.
    pub path: String,
    /// The whole page.
    pub text: String,
    #[serde(default)]
    pub citations: Vec<Citation>,
    #[serde(default)]
    pub removed: Vec<RemovedLine>,
}

/// Words of a message from which something is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Citation {
    /// The path of the message below the wiki; in an answer of a model its short name, such as `m1`.
    pub message: String,
    /// As they stand there.
    pub quote: String,
}

/// A line that a page loses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemovedLine {
    pub line: String,
    pub reason: String,
}

/// The one proposal in an answer.
pub fn read_proposal(reply: &str) -> Result<SleepProposal, String> {
    let scan = ReplyScan::of(reply, LIMITS);
    let mut found = Vec::new();
    for value in &scan.values {
        if let Some(broken) = value.broken {
            return Err(format!("the answer is no JSON: {}", broken.sentence()));
        }
        match serde_json::from_str::<Value>(&reply[value.span.clone()]) {
            Ok(value) if value.get("pages").is_some() => found.push(value),
            Ok(_) => {}
            Err(error) => return Err(format!("the answer is no JSON: {error}")),
        }
    }
    match (found.pop(), found.pop()) {
        (Some(one), None) => serde_json::from_value(one).map_err(|error| format!("the proposal is malformed: {error}")),
        (None, _) => Err("the answer has no object with `pages`".to_owned()),
        (Some(_), Some(_)) => Err("the answer has more than one object with `pages`".to_owned()),
    }
}

/// Replaces the short names of messages: in citations by their paths, in texts (`[^m1]`) by links.
pub fn expand(mut proposal: SleepProposal, messages: &[SourceMessage]) -> Result<SleepProposal, Vec<String>> {
    let mut faults = Vec::new();
    for page in &mut proposal.pages {
        for citation in &mut page.citations {
            match messages.iter().find(|message| message.id == citation.message) {
                Some(message) => citation.message.clone_from(&message.path),
                None => faults.push(format!(
                    "{} cites {}, which is no message of this transcript",
                    quoted(&page.path),
                    quoted(&citation.message)
                )),
            }
        }
        match linked(&page.text, messages) {
            Ok(text) => page.text = text,
            Err(mark) => {
                faults.push(format!("{} cites [^{mark}], which is no message of this transcript", quoted(&page.path)));
            }
        }
    }
    if faults.is_empty() { Ok(proposal) } else { Err(faults) }
}

/// The text with links in place of marks; the mark that names no message, if there is one.
fn linked(text: &str, messages: &[SourceMessage]) -> Result<String, String> {
    let stretches = code(text);
    let (mut out, mut end) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices("[^m").filter(|(at, _)| !within(&stretches, *at)) {
        let Some(name) = text[at + 2..].split(']').next().filter(|name| is_name(name)) else { continue };
        if !text[at + 2 + name.len()..].starts_with(']') {
            continue;
        }
        let Some(message) = messages.iter().find(|message| message.id == name) else { return Err(name.to_owned()) };
        out.push_str(&text[end..at]);
        out.push_str(&link(&message.path));
        end = at + name.len() + 3;
    }
    out.push_str(&text[end..]);
    Ok(out)
}

fn is_name(name: &str) -> bool {
    name.len() < 12 && name[1..].bytes().all(|byte| byte.is_ascii_digit()) && name.len() > 1
}

/// A citation as it stands in a page.
pub(super) fn link(message: &str) -> String {
    let path = message.strip_suffix(".md").unwrap_or(message);
    let conversation = path.rsplit('/').nth(1).unwrap_or("transcript");
    format!("([[{path}|{conversation}]])")
}
