//! Prompts: typed, composed of sections, overridable; a service, and what every other part renders its words with.
//!
//! A text on disk becomes pieces (`template`), a manifest and its texts become a checked tree (`check`, `tree`), a tree
//! with params becomes words (`prompt`, `view`, `render`), and what a model answers becomes a value (`output`).
//! All that is pure but `library`, which reads the folder. `openings` keeps what is open, `service` takes the calls.

pub mod check;
pub mod command;
pub mod condition;
pub mod descriptor;
pub mod disclosure;
pub mod evaluate;
pub mod fault;
pub mod files;
pub mod front;
pub mod library;
pub mod load;
pub mod locate;
pub mod manifest;
mod memory;
pub mod names;
pub mod opened;
pub mod openings;
pub mod output;
pub mod overrides;
pub mod prompt;
pub mod record;
pub mod render;
pub mod resources;
pub mod schema;
pub mod service;
pub mod tasks;
pub mod template;
pub mod tool;
mod tool_call;
pub mod tree;
pub mod view;
pub mod watch;

pub use fault::{Fault, Kind};
pub use library::{Library, Origin};
pub use prompt::Prompt;
pub use render::Rendered;
pub use service::{Prompts, PromptsParts};
pub use tree::PromptTemplate;

#[cfg(test)]
mod service_tests;
#[cfg(test)]
mod tests;
