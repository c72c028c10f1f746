//! Calls that were accepted: each is a job with a directory of its own.
//!
//! [`Book`] knows every job, [`run`](runner) runs one, [`Keep`] makes it last, [`files`] shows it. Knows no service: what a
//! job does comes in as a future.

mod archive;
mod book;
mod cancel;
pub mod files;
mod job;
mod keep;
mod runner;
mod weight;

pub use archive::told;
pub use book::{Book, Booked, Shelf};
pub use job::{Call, Job, Now, Outcome, State, Status, TURNS, ending};
pub use keep::{Forgetful, Keep, Row, row};
pub use runner::{End, Room, Task, Work, abandon, run};
