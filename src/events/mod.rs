//! Events: one durable log per agent, and files that wait for events.
//!
//! [`EventLog`] is the log, [`Selector`] names something to wait for, [`wait`] decides (a pure function), [`Waiter`]
//! is one waiter, [`watched`] decides which paths can be waited for, [`files`] is the directory. Used by `service`, `agent`, `services` and `host`. Uses `policy`, `state`
//! and `jobs`.

mod commit;
mod event_log;
pub mod files;
mod next;
mod selector;
mod signal;
mod sources;
#[cfg(test)]
mod tests;
pub mod wait;
mod waiter;
mod watched;

pub use commit::{Commit, commit};
pub use event_log::{EventLog, EventLogs};
pub use selector::{Selector, SignalType};
pub use signal::Signal;
pub use wait::Wait;
pub use waiter::{Waiter, selectors};
pub use watched::WatchedPath;

pub use crate::state::events::Event;
