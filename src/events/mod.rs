//! What happened: one durable log an agent, and files that wait for it.
//!
//! [`Diary`] is the log, [`Selector`] says what somebody waits for, [`wait`] decides (a pure function), [`Watching`] is one
//! who waits, [`files`] shows it all.

mod diary;
pub mod files;
mod next;
mod selector;
mod signal;
mod sources;
#[cfg(test)]
mod tests;
pub mod wait;
mod watching;

pub use diary::{Diaries, Diary};
pub use selector::{Selector, Voice};
pub use signal::Signal;
pub use wait::Wait;
pub use watching::{Watching, selectors};

pub use crate::state::events::Event;
