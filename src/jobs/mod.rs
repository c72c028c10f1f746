//! Accepted calls: each is a job with a directory of its own.
//!
//! [`Jobs`] holds every job, [`run`](runner) runs one, [`JobStore`] makes it durable, [`files`] shows it. Used by
//! `service`, `events`, `agent` and `host`. Uses `contract`, `policy` and `state`; it knows no service: the work of a
//! job comes in as a future.

mod archive;
mod cancel;
pub mod files;
mod job;
mod list;
mod result_sizes;
mod runner;
mod store;

pub use archive::status_json;
pub use job::{Job, JobCall, JobOutcome, JobSnapshot, JobState, JobStatus, TURN_SERVICE, final_state};
pub use list::{AgentJobs, JobEntry, Jobs};
pub use runner::{CallQueue, JobEnd, JobWork, Task, abandon, run};
pub use store::{JobRow, JobStore, NoJobStore, row};
