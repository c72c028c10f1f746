//! Prompts: typed, composed of sections, overridable; a service, and what every other part renders its words with.
//!
//! A text on disk becomes pieces (`template`), a manifest and its texts become a checked tree (`check`, `tree`), a tree
//! with params becomes words (`prompt`, `view`, `render`), and what a model answers becomes a value (`output`).
//! Everything but `library` is pure.

pub mod check;
pub mod condition;
pub mod descriptor;
pub mod disclosure;
pub mod fault;
pub mod front;
pub mod library;
pub mod load;
pub mod locate;
pub mod manifest;
pub mod names;
pub mod output;
pub mod overrides;
pub mod prompt;
pub mod record;
pub mod render;
pub mod resources;
pub mod schema;
pub mod tasks;
pub mod template;
pub mod tool;
pub mod tree;
pub mod view;

pub use fault::{Fault, Kind};
pub use library::{Library, Origin};
pub use prompt::Prompt;
pub use render::Rendered;
pub use tree::PromptTemplate;

#[cfg(test)]
mod tests;
