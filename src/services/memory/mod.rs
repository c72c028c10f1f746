//! Memory: named things with versions, some of them active.
//!
//! `path`, `content`, `evict`, `words` and `snippet` are rules without a database; `book` keeps them in one.

mod content;
mod evict;
mod path;
mod snippet;
mod words;
