//! The only client of NATS: connects hosts by the rules of `crates/fabric`.
//!
//! [`Link`] is a connection: requests and answers ([`link`], [`asked`]), messages that the server keeps ([`stored`], [`batch`]),
//! records and what changed of them ([`records`]), mail to fetch ([`fetch`]), the lease on a name ([`NodeLease`]), what must be
//! there ([`setup`]). Everything has a time-out: a server whose disk is full does not answer at all, so an answer that does not
//! come means "unknown" ([`LinkFault::Unknown`]), and the same is sent again with the same id. The interface of JetStream is
//! spoken as the JSON that it is: what a request may do is then exactly what its subject says, which is what permissions see.
//!
//! Used by `src/services`, `src/host` and `src/cli`. Uses `acheron-base` and `acheron-fabric`.

#![forbid(unsafe_code)]

mod asked;
mod batch;
mod fault;
mod fetch;
mod keys;
mod lease;
mod link;
mod records;
mod setup;
mod stored;
#[cfg(any(test, feature = "test-server"))]
pub mod test_server;
#[cfg(test)]
mod tests;

pub use asked::{AskedRequest, AskedRequests};
pub use batch::Outgoing;
pub use fault::LinkFault;
pub use fetch::FetchedLetter;
pub use keys::{new_seed, public_key};
pub use lease::{LeaseHolder, NodeLease};
pub use link::{Link, LinkOptions};
pub use records::StoredRecord;
pub use stored::{Condition, StoredAt};
