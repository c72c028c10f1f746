//! The foundation of every layer: one error type, a clock, ids, randomness, blocking work, directories that no path
//! escapes, texts between delimiters, JSON in a model's reply, watching a file, the mount table, the count of tokens, the words of a text, the nearest known name, the primitives that a model can replace. Any crate may use it; it uses none of ours. It knows neither the tree, a service nor an agent.

#![forbid(unsafe_code)]

mod blocking;
mod clock;
pub mod confined_dir;
pub mod delimited;
mod error;
pub mod failpoint;
pub mod host_dir;
mod ids;
pub mod mountinfo;
pub mod nearest;
mod random;
pub mod reply_scan;
mod room;
#[cfg(feature = "sqlite")]
mod sqlite;
pub mod sse;
pub mod sync;
pub mod tokens;
pub mod utf8;
pub mod watch;
pub mod words;

pub use blocking::blocking;
pub use clock::Clock;
pub use confined_dir::ConfinedDir;
pub use error::{Code, Error, Result, if_exists, quoted};
pub use ids::Ids;
pub use random::Random;
pub use room::Room;
