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
mod runner;
mod store;
mod weight;

pub use archive::told;
pub use job::{Call, Job, Now, Outcome, State, Status, TURNS, ending};
pub use list::{AgentJobs, JobEntry, Jobs};
pub use runner::{End, Room, Task, Work, abandon, run};
pub use store::{Forgetful, JobStore, Row, row};
