//! What every layer of Acheron stands on: one error, a clock, ids, randomness, blocking work, and directories that nothing escapes.
//!
//! Any crate may use it; it uses none of ours. Nothing here knows a tree, a service or an agent.

#![forbid(unsafe_code)]

mod blocking;
mod clock;
pub mod confined_dir;
mod error;
pub mod host_dir;
mod ids;
pub mod mountinfo;
mod random;
#[cfg(feature = "sqlite")]
mod sqlite;
pub mod tokens;
pub mod watch;

pub use blocking::blocking;
pub use clock::Clock;
pub use confined_dir::ConfinedDir;
pub use error::{Code, Error, Result, quoted};
pub use ids::Ids;
pub use random::Random;
