//! The primitives of the files in which threads meet. A file that takes them from `crate::sync`, and not from the
//! libraries, is compiled a second time by `tests/models`, where `crate::sync` is loom's: there every order in which its
//! threads can run is tried. Any crate may use it.

pub use std::sync::{atomic, mpsc};
pub use std::{thread, thread_local};

pub use parking_lot::{Condvar, Mutex, MutexGuard};
pub use tokio::runtime::Handle as Runtime;
pub use tokio::sync::{oneshot, watch};
