//! The services, one file or folder each: a pure core first, the service last.
//!
//! A service takes what it uses as arguments of its constructor and knows nothing of the host, which builds it
//! (`src/host/wiring/mod.rs` has the list). It may use every module that `src/lib.rs` declares before this one.

pub mod agents;
pub mod dm;
pub mod external;
pub mod mail;
pub mod mcp;
pub mod memory;
pub mod mounts;
pub mod phases;
pub mod prompts;
pub mod queues;
pub mod recall;
#[cfg(feature = "fabric")]
pub mod remote;
pub mod search_code;
pub mod sub_brains;
pub mod symbols;
pub mod terminal;
pub mod views;
pub mod web_search;
