//! Recall: a wiki of Markdown that an agent walks, page by page.
//!
//! `code`, `tag`, `page`, `links`, `words` read texts; `index`, `resolve`, `graph`, `search` know a wiki without a disk;
//! `block` and `turn` are the loop, `message` the names of a conversation, `window` what of it a model is told. All that
//! is pure. `wiki` is the folder, `watch` keeps it current, `talks` are the conversations, `archive` puts them away,
//! `speak` is the model, `recall` brings them together, and `service` and `files` show it.

mod archive;
pub mod block;
pub mod code;
mod files;
mod graph;
mod index;
pub mod links;
mod message;
pub mod page;
mod resolve;
mod search;
mod service;
#[cfg(test)]
mod session_tests;
mod speak;
mod state;
pub mod tag;
mod talk_files;
mod talks;
mod turn;
mod watch;
mod wiki;
mod window;
mod words;

use std::sync::Arc;

use crate::service::{Serve, typed};
use acheron_base::Result;

pub use index::{Index, Page};
pub use resolve::Access;
pub use service::Recall;
pub use speak::Speak;
pub use state::{RecallParts, RecallState, by_model};
pub use watch::Wikis;
pub use wiki::Wiki;

/// The recall of one agent, ready to be served.
pub fn served(parts: RecallParts) -> Result<Arc<dyn Serve>> {
    typed(Recall::new(Arc::new(RecallState::new(parts))))
}
