//! The service `mail`: durable messages between the agents of this host, its operator, and those of other hosts. The host's wiring uses it; each
//! agent has one, and the operator has one at the root of the tree.
//!
//! `address` and `message` are data. `backend` is the trait of a mailbox, `sqlite` the one in the database of the host,
//! `far` the letters from and to other hosts in it, `receive` what becomes of those that come, `carrier` the loops that carry
//! them by the fabric, `post` the events about messages and the waiters for them, `files` the part of the tree, `incoming` what a turn sees,
//! `service` the operations.

pub mod address;
pub mod backend;
#[cfg(feature = "fabric")]
pub mod carrier;
#[cfg(test)]
mod conformance;
pub mod far;
mod files;
mod incoming;
pub mod message;
mod post;
pub mod receive;
mod service;
pub mod sqlite;
#[cfg(test)]
mod tests;

pub use address::{Address, OPERATOR};
pub use backend::Mailbox;
pub use incoming::AgentInbox;
pub use post::Post;
pub use service::{MailParts, MailService};
pub use sqlite::{SqliteMailbox, purge};
