//! Memory: named things with versions, some of them active.
//!
//! `path`, `content`, `evict`, `words` and `snippet` are rules without a database; `rows` are its tables, and `book`,
//! `active` and `search` keep the rules in it.

mod active;
mod book;
mod content;
mod evict;
mod path;
mod rows;
mod search;
mod snippet;
#[cfg(test)]
mod tests;
mod words;
