//! Consolidation ("sleep"): transcripts become proposed changes of pages.
//!
//! A model proposes whole pages with citations (`proposal`), or, where there is no model, [`extract`] does so by rules. Whoever
//! proposes, `validate` decides: what a page gains must be cited word for word, what it loses must have a reason, links must lead
//! somewhere. `source` cuts transcripts into requests, `request` writes one, `blocks` and `addresses` read a page, `patch` shows a
//! change, `staged` is the wiki with what was proposed so far. All of it takes data and returns data.

mod addresses;
mod blocks;
mod extract;
mod patch;
mod proposal;
mod request;
mod source;
mod staged;
#[cfg(test)]
mod tests;
mod validate;

pub use extract::extract;
pub use patch::patch;
pub use proposal::{Citation, ProposedPage, RemovedLine, SleepProposal, expand, read_proposal};
pub use request::{refusal, request, unseen};
pub use source::{SourceMessage, SourceRequest, is_source, requests, transcript_of};
pub use staged::StagedWiki;
pub use validate::{AddedBlock, SleepChange, SleepLimits, WikiView, validate};
