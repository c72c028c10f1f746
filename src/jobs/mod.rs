//! Accepted calls: each is a job with a directory of its own.
//!
//! [`Jobs`] holds every job, [`JobStore`] finds those that have ended long ago, [`files`] shows them;
//! `service::runner` runs them. Used by `service`, `events`, `agent` and `host`. Uses `contract`, `policy` and `state`.

mod archive;
mod cancel;
pub mod files;
mod job;
mod list;
pub mod recent;
mod result_sizes;
mod steps;
mod store;

pub use archive::status_json;
pub use job::{Call, Job, JobOutcome, JobSnapshot, JobState, JobStatus, TURN_SERVICE, final_state};
pub use list::{AgentJobs, JobEntry, Jobs, accepted_row};
pub use steps::JobSteps;
pub use store::{JobRow, JobStore, row, stored_result};
