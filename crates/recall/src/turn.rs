//! One turn of a conversation, as a state machine: a model's answer goes in, actions come out.
//!
//! Every turn ends: reads, generations, bytes and time are limited. It knows neither model nor disk;
//! pages come from a function that the caller passes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::block::{Notice, found, memory, notice};
use crate::page::fold;
use crate::resolve::Miss;
use crate::tag::{TagKind, shown, tags};

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Pages per turn, missing ones included.
    pub reads: u32,
    pub searches: u32,
    pub generations: u32,
    /// Of one page.
    pub page_bytes: usize,
    /// Of all that is said and shown in the turn.
    pub bytes: usize,
    pub seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { reads: 3, searches: 3, generations: 8, page_bytes: 16 << 10, bytes: 1 << 20, seconds: 600 }
    }
}

/// What a model wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    Page(&'a str),
    Search(&'a str),
}

/// One page that a search has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPage {
    pub path: String,
    pub title: String,
    pub snippet: String,
}

/// The most recalls and searches of one answer that are looked up.
const TAGS: usize = 8;

/// The result of looking up a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked {
    Page {
        path: String,
        title: String,
        /// The heading, if only what is below it was asked for and is there.
        part: Option<String>,
        /// The heading that was asked for and is not there: the page is whole.
        missing: Option<String>,
        text: String,
        /// Another one whenever the page is another.
        version: u64,
    },
    Missed(Miss),
    Found(Vec<FoundPage>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Adds a message for the model, as one of the user.
    Add(String),
    Generate,
    /// The turn is over.
    Finish(Outcome),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Outcome {
    /// The answer, without tags.
    pub text: String,
    /// `done`, or `limit` if the model would not stop.
    pub end: &'static str,
    pub reads: u32,
    pub searches: u32,
    pub generations: u32,
    pub recalls: Vec<Recalled>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Recalled {
    /// As the model wrote it.
    pub name: String,
    /// `served`, `truncated`, `no_heading`, `duplicate`, `limit`, `empty`, `not_found`, `ambiguous`, `denied`, `unreadable` or
    /// `too_long`; for a search `found`, `nothing_found`, `limit` or `empty`.
    pub code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// The state of one turn.
#[derive(Debug)]
pub struct Turn {
    limits: Limits,
    deadline_ms: u64,
    reads: u32,
    searches: u32,
    generations: u32,
    bytes: usize,
    /// Pages that were shown, whole (`None`) or in part, and in which version.
    seen: BTreeMap<(String, Option<String>), u64>,
    missed: BTreeMap<String, Miss>,
    recalls: Vec<Recalled>,
}

impl Turn {
    pub fn new(limits: Limits, now_ms: u64) -> Turn {
        Turn {
            limits,
            deadline_ms: now_ms.saturating_add(limits.seconds * 1000),
            reads: 0,
            searches: 0,
            generations: 0,
            bytes: 0,
            seen: BTreeMap::new(),
            missed: BTreeMap::new(),
            recalls: Vec::new(),
        }
    }

    pub fn left_ms(&self, now_ms: u64) -> u64 {
        self.deadline_ms.saturating_sub(now_ms)
    }

    /// Takes one answer of the model.
    pub fn step(&mut self, said: &str, now_ms: u64, look: &mut dyn FnMut(Wanted<'_>) -> Looked) -> Vec<Action> {
        self.generations += 1;
        self.bytes = self.bytes.saturating_add(said.len());
        let mut found = tags(said);
        if found.is_empty() {
            return vec![self.finish(said, "done")];
        }
        if self.generations >= self.limits.generations || self.bytes >= self.limits.bytes || now_ms >= self.deadline_ms
        {
            return vec![self.finish(said, "limit")];
        }
        found.truncate(TAGS);
        let mut blocks: Vec<String> = Vec::new();
        for tag in found {
            let block = match tag.kind {
                TagKind::Recall => self.recall(tag.title, look),
                TagKind::Search => self.search(tag.title, look),
            };
            // To be told once is enough.
            if !blocks.contains(&block) {
                self.bytes = self.bytes.saturating_add(block.len());
                blocks.push(block);
            }
        }
        vec![Action::Add(blocks.join("\n\n")), Action::Generate]
    }

    /// Ends the turn from outside: the time is over.
    pub fn give_up(&mut self) -> Outcome {
        self.outcome(String::new(), "limit")
    }

    fn finish(&mut self, said: &str, end: &'static str) -> Action {
        Action::Finish(self.outcome(shown(said), end))
    }

    fn outcome(&mut self, text: String, end: &'static str) -> Outcome {
        let recalls = std::mem::take(&mut self.recalls);
        Outcome { text, end, reads: self.reads, searches: self.searches, generations: self.generations, recalls }
    }

    /// The block that answers one search.
    fn search(&mut self, query: String, look: &mut dyn FnMut(Wanted<'_>) -> Looked) -> String {
        let (code, block) = if query.is_empty() {
            ("empty", notice(&Notice::EmptySearch))
        } else if self.searches >= self.limits.searches {
            ("limit", notice(&Notice::SearchLimit))
        } else {
            self.searches += 1;
            match look(Wanted::Search(&query)) {
                Looked::Found(pages) if !pages.is_empty() => ("found", found(&query, &pages)),
                _ => ("nothing_found", notice(&Notice::NothingFound(&query))),
            }
        };
        self.recalls.push(Recalled { name: query.chars().take(200).collect(), code, path: None });
        block
    }

    /// The block that answers one recall.
    fn recall(&mut self, name: String, look: &mut dyn FnMut(Wanted<'_>) -> Looked) -> String {
        let key = fold(&name);
        let (code, path, block) = if let Some(miss) = self.missed.get(&key) {
            (miss.code(), None, notice(&Notice::Missed(&name, miss)))
        } else {
            match look(Wanted::Page(&name)) {
                Looked::Page { path, part, version, .. } if self.has(&path, part.as_deref(), version) => {
                    ("duplicate", Some(path), notice(&Notice::Duplicate(&name)))
                }
                _ if self.reads >= self.limits.reads => ("limit", None, notice(&Notice::Limit)),
                Looked::Missed(miss) => {
                    self.reads += 1;
                    let told = (miss.code(), None, notice(&Notice::Missed(&name, &miss)));
                    self.missed.insert(key, miss);
                    told
                }
                Looked::Found(_) => ("not_found", None, notice(&Notice::Missed(&name, &Miss::NotFound))),
                Looked::Page { path, title, part, missing, text, version } => {
                    self.reads += 1;
                    let budget = self.limits.page_bytes.min(self.limits.bytes.saturating_sub(self.bytes));
                    let (mut block, cut) = memory(&title, &text, budget);
                    if let Some(heading) = &missing {
                        block = format!("{}\n\n{block}", notice(&Notice::NoHeading(&title, heading)));
                    }
                    // A page that was cut may still be read part by part.
                    let part = part.map(|part| fold(&part)).or_else(|| cut.then(String::new));
                    self.seen.insert((path.clone(), part), version);
                    let code = match (cut, missing) {
                        (true, _) => "truncated",
                        (false, Some(_)) => "no_heading",
                        (false, None) => "served",
                    };
                    (code, Some(path), block)
                }
            }
        };
        self.recalls.push(Recalled { name: name.chars().take(200).collect(), code, path });
        block
    }

    /// Whether it was shown as it is now.
    fn has(&self, path: &str, part: Option<&str>, version: u64) -> bool {
        let part = part.map_or_else(String::new, fold);
        let is_seen = |part| self.seen.get(&(path.to_owned(), part)) == Some(&version);
        is_seen(None) || is_seen(Some(part))
    }
}

#[cfg(test)]
mod tests;
