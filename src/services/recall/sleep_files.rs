//! The runs of consolidation as files: `sleep/<run>/{report.json,diff.patch,proposal.json}`. `files` shows them.

use std::sync::Arc;

use super::files::fetched;
use super::sleep_runs::{PATCH, PROPOSAL, REPORT};
use super::state::RecallState;
use acheron_vfs::{Listing, Node, VirtualDir};

pub(super) fn runs(recall: &Arc<RecallState>) -> VirtualDir {
    let named = |recall: &RecallState| recall.wiki().and_then(|wiki| wiki.sleep_runs()).unwrap_or_default();
    let (listed, found) = (recall.clone(), recall.clone());
    VirtualDir::new(
        move || named(&listed),
        move |name| named(&found).iter().any(|run| run == name).then(|| Node::dir(one(&found, name))),
    )
    .slow()
}

fn one(recall: &Arc<RecallState>, run: &str) -> Listing {
    let file = |file: &'static str| {
        let run = run.to_owned();
        fetched(recall, move |recall| Ok(recall.wiki()?.sleep_bytes(&run, file)?.into()))
    };
    Listing::default().file(REPORT, file(REPORT)).file(PATCH, file(PATCH)).file(PROPOSAL, file(PROPOSAL))
}
