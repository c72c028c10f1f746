//! A wiki of Markdown pages, and the turns of a model that reads it page by page.
//!
//! Data in, data out. `code`, `tag`, `page` and `links` read texts; `index`, `resolve` and `graph` are a wiki in memory; `rename` writes
//! links anew;
//! `search` ranks pages that may answer a question; `block` and `turn` are the loop of a turn; `message` names the messages of a conversation, and `window` selects those
//! that a model is given; `sample_sessions` makes conversations to measure with; `sleep` turns transcripts into proposed changes of pages and checks them. Pages come from the caller, and so does the time.
//!
//! Any crate may use it. It uses the error, the words and the count of tokens of `acheron-base` and nothing else of ours: no tree, no host,
//! no clock, no network, no files of the machine.

#![forbid(unsafe_code)]

pub mod block;
pub mod code;
pub mod graph;
pub mod index;
pub mod links;
pub mod message;
pub mod page;
pub mod rename;
pub mod resolve;
pub mod sample_sessions;
pub mod search;
pub mod sleep;
pub mod tag;
pub mod turn;
pub mod window;

pub use index::{Index, Page};
pub use resolve::Access;
