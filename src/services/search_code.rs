//! `search_code`: finds lines in the files of an agent's projects.

mod ignored;
pub mod scope;
pub mod search;
mod sink;
mod slots;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::contract::Operation;
use crate::service::{Cx, Service};
use crate::spec::ProjectDir;
use acheron_base::{Error, Result};
use acheron_vfs::Caller;
use scope::Rights;
use search::{CodeMatches, CodeQuery, SearchControl};
pub use slots::SearchSlots;

/// The directories that an agent may search, asked anew at every call: projects come and go.
pub type FindRoots = Arc<dyn Fn(&str) -> Vec<ProjectDir> + Send + Sync>;

/// How long one search may work; it may wait longer for its turn.
const WORK: Duration = Duration::from_secs(30);

pub struct SearchCode {
    roots: FindRoots,
    slots: Arc<SearchSlots>,
}

impl SearchCode {
    /// `slots` are those of all agents.
    pub fn new(roots: FindRoots, slots: Arc<SearchSlots>) -> Self {
        SearchCode { roots, slots }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Finds lines that match, file by file in the order of their names.
    ///
    /// Hidden files, binary files and what `.gitignore` and `.ignore` name are left out.
    Search {
        /// The text to find, in one line.
        query: String,
        /// Where to look: a path of the tree, or one below the project; everywhere if absent.
        #[serde(default)]
        path: Option<String>,
        /// Whether the query is a regular expression.
        #[serde(default)]
        regex: bool,
        #[serde(default)]
        case_sensitive: bool,
        /// Which files, such as `*.rs`, `src/**/*.py` or `!*.min.js`.
        #[serde(default)]
        glob: Option<String>,
        /// How many lines to show before and after each match.
        #[serde(default)]
        #[schemars(range(max = 50))]
        context: u32,
        #[serde(default = "two_hundred")]
        #[schemars(range(min = 1, max = 5000))]
        max_results: u32,
        /// The size of the answer; `more` counts the matches for which there is no room.
        #[serde(default = "eight_kilobytes")]
        #[schemars(range(min = 256, max = 4_194_304))]
        max_bytes: u32,
    },
}

fn two_hundred() -> u32 {
    200
}

fn eight_kilobytes() -> u32 {
    8192
}

#[async_trait]
impl Service for SearchCode {
    const NAME: &'static str = "search_code";
    const ABOUT: &'static str = "Finds lines in the files of your projects.";
    type Command = Command;
    type Output = CodeMatches;

    fn operations() -> Vec<Operation> {
        vec![
            Operation::read("search")
                .example(json!({"query": "fn main"}))
                .deadline(Duration::from_secs(120))
                .idempotent(),
        ]
    }

    fn check(&self, _caller: &Caller, command: Command) -> Result<()> {
        search::check(&query_of(command))
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<CodeMatches> {
        let query = query_of(command);
        let roots = (self.roots)(&cx.agent);
        let cx = cx.clone();
        let gone = StopOnDrop::default();
        let stop = gone.0.clone();
        let slot = self.slots.take(&cx.agent).await?;
        let found = slots::on_quiet_thread(slot, move || {
            let end = Instant::now() + WORK;
            let watch = SearchControl {
                stopped: &|| stop.load(Ordering::Relaxed) || cx.is_cancelled() || Instant::now() > end,
                rights: Rights {
                    may_read: &|path| cx.context.access.check(&cx.caller, acheron_vfs::Access::Read, path).is_ok(),
                    sees: &|path, dir| match dir {
                        true => cx.context.access.sees(&cx.caller, path),
                        false => cx.context.access.sees_file(&cx.caller, path),
                    },
                },
                progress: &|files, matches| cx.progress(json!({"files_searched": files, "matches": matches})),
            };
            let found = search::search(&roots, &query, &watch);
            if found.is_err() && Instant::now() > end {
                let seconds = WORK.as_secs();
                return Err(Error::timeout(format!(
                    "the search took longer than {seconds} s; narrow it by `path` or `glob`, or search for a simpler pattern"
                )));
            }
            found
        })
        .await;
        drop(gone);
        found
    }
}

fn query_of(command: Command) -> CodeQuery {
    let Command::Search { query, path, regex, case_sensitive, glob, context, max_results, max_bytes } = command;
    let (context, max_results, max_bytes) = (context as usize, max_results as usize, max_bytes as usize);
    CodeQuery { text: query, path, regex, case_sensitive, glob, context, max_results, max_bytes }
}

/// Stops the searching thread when its call is dropped, as happens after the deadline.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
