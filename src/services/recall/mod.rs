//! Recall: a wiki of Markdown that an agent walks page by page. The list of services uses it.
//!
//! `wiki` is the folder, `page_index` its index on the disk, `reading` fills that, `renaming` gives pages other paths, `progress` tells how far it is, `searching`
//! asks it, `arguments` checks calls, `watch` keeps it current, `talks` are the conversations on disk, `archive` puts them away, `consolidating` proposes pages from those (`sleep_runs` are the proposals on the disk, `sleep_changes`
//! applies them and takes them back, `sleep_files` shows them), `talk_order`
//! has their calls wait for each other, `speak` asks the model, `state` connects these, and `service`, `files`, `talk_dir` and
//! `talk_files` show them. The index, the search and the loop of a
//! turn are in `acheron-recall`.

mod archive;
mod arguments;
mod consolidating;
mod files;
mod page_index;
mod progress;
mod reading;
mod renaming;
mod searching;
mod service;
mod sleep_changes;
mod sleep_files;
mod sleep_runs;
mod speak;
mod state;
mod talk_dir;
mod talk_files;
mod talk_order;
mod talks;
#[cfg(test)]
mod tests;
mod watch;
mod wiki;

use std::sync::Arc;

use crate::service::{Serve, typed};
use acheron_base::Result;

pub use service::Recall;
pub use speak::Speak;
pub use state::{RecallParts, RecallState, by_model};
pub use watch::Wikis;
pub use wiki::Wiki;

/// The recall of one agent, ready to be served.
pub fn served(parts: RecallParts) -> Result<Arc<dyn Serve>> {
    typed(Recall::new(Arc::new(RecallState::new(parts))))
}
