//! What happened: one durable log an agent, and files that wait for it.
//!
//! [`EventLog`] is the log, [`Selector`] says what somebody waits for, [`wait`] decides (a pure function), [`Watching`] is one
//! who waits, [`files`] shows it all.

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
