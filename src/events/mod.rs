//! Events: one durable log per agent, and files that wait for events.
//!
//! [`EventLog`] is the log, [`Selector`] names something to wait for, [`wait`] decides (a pure function), [`Watching`]
//! is one waiter, [`files`] is the directory. Used by `service`, `agent`, `services` and `host`. Uses `policy`, `state`
//! and `jobs`.

mod event_log;
pub mod files;
mod next;
mod selector;
mod signal;
mod sources;
#[cfg(test)]
mod tests;
pub mod wait;
mod watching;

pub use event_log::{EventLog, EventLogs};
pub use selector::{Selector, Voice};
pub use signal::Signal;
pub use wait::Wait;
pub use watching::{Watching, selectors};

pub use crate::state::events::Event;
