//! Prompts: typed, composed of sections, overridable.
//!
//! Data in, data out. Text becomes pieces (`template`), a manifest and its texts become a checked tree (`load`, `check`, `tree`), a
//! tree with parameters becomes text (`prompt`, `view`, `render`), and the reply of a model becomes a value (`output`). `overrides`
//! replaces words of a prompt without a change of its files.
//!
//! Any crate may use it. It uses the error of `acheron-base` and nothing else of ours: no tree, no host, no clock, no network,
//! no files of the machine.

#![forbid(unsafe_code)]

pub mod check;
pub mod condition;
pub mod descriptor;
pub mod disclosure;
pub mod fault;
pub mod front;
pub mod load;
pub mod locate;
pub mod manifest;
pub mod names;
pub mod output;
pub mod overrides;
pub mod prompt;
pub mod record;
pub mod render;
mod reuse;
pub mod schema;
pub mod tasks;
pub mod template;
pub mod tool;
pub mod tree;
pub mod view;

pub use fault::{Fault, Kind};
pub use prompt::Prompt;
pub use render::Rendered;
pub use tree::PromptTemplate;

#[cfg(test)]
mod tests;
