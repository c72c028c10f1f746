//! Services of other hosts, as services here: `/nodes/<node>/services/<service>/`. The host puts them there as it learns of
//! them.
//!
//! [`told`] is a contract as one host tells it to another, [`link`] the connection to other hosts as it is now, [`service`] a
//! service whose calls run elsewhere.

mod link;
mod service;
pub mod told;

pub use link::{HostLink, JoinedLink};
pub use service::FarService;
