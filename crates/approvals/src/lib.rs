//! Core of approvals: what the operator is asked before an agent does it, and what an answer allows. A subject in, its hash,
//! its summary and its offers out; a text in, a decision out. No tree, no clock, no disk.
//!
//! What is approved is bound by the [hash](Subject::hash) of what will be done: it is computed again at the deed. An answer
//! that holds for longer than one deed is an [`Exception`] *of the rule that asked*: it is consulted only when that rule asks,
//! so that a later rule that denies still wins.
//!
//! Used by `src/policy`, `src/approvals`, `src/service` and `src/host`; uses `acheron-base`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod canonical;
mod decision;
mod exception;
mod link;
mod request;
mod state;
mod subject;

pub use canonical::{canonical, sha256};
pub use decision::{Answer, GivenAnswer, Span};
pub use exception::{Exception, Scope};
pub use link::LinkKey;
pub use request::{AskingRule, Offer, Request};
pub use state::State;
pub use subject::{Subject, SubjectFacts};
