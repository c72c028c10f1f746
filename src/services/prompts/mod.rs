//! The service `prompts`, and the library of prompts that the other services render their texts with.
//!
//! `library` reads the folder of prompts, `openings` holds the open prompts, `override_store` the files of overrides,
//! `resources` what an open prompt holds; `service` takes the calls. The meaning of a prompt is in `acheron-prompts`, which this
//! module uses. Other services use `Library`.

pub mod command;
pub mod evaluate;
pub mod files;
pub mod library;
mod memory;
pub mod opened;
pub mod openings;
pub mod override_store;
pub mod resources;
pub mod service;
#[cfg(test)]
mod test_prompts;
mod tool_call;
pub mod watch;

pub use library::{Library, Origin};
pub use service::{Prompts, PromptsParts};
