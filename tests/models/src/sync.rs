//! `acheron_base::sync` with loom's primitives, in the shape that the files expect. What loom lacks is made of its locks:
//! a channel whose receiver learns that all senders are gone, and tokio's channels and tasks. Those are one step each,
//! as tokio's own models with loom promise.

mod channels;
mod locks;
mod runtime;

pub use loom::sync::atomic;

pub use channels::{mpsc, oneshot};
pub use locks::{Condvar, Mutex, MutexGuard};
pub use runtime::Runtime;

/// Threads with a stack on which SQLite can run.
pub mod thread {
    pub use loom::thread::{JoinHandle, Thread, current, park};

    const STACK: usize = 1 << 17; // in words

    pub struct Builder(loom::thread::Builder);

    impl Builder {
        #[expect(clippy::new_without_default, reason = "as in the standard library")]
        pub fn new() -> Self {
            Builder(loom::thread::Builder::new().stack_size(STACK))
        }

        pub fn name(self, name: String) -> Self {
            Builder(self.0.name(name))
        }

        pub fn spawn<T: Send + 'static>(
            self,
            run: impl FnOnce() -> T + Send + 'static,
        ) -> std::io::Result<JoinHandle<T>> {
            self.0.spawn(run)
        }
    }

    /// Does nothing: loom's would let all other threads run first, and so leave out the orders in which they do not.
    pub fn yield_now() {}
}

/// `std::thread_local`, whose first value loom makes when a thread asks for it.
#[macro_export]
macro_rules! model_thread_local {
    ($(#[$meta:meta])* static $name:ident: $type:ty = const { $value:expr };) => {
        loom::thread_local! { $(#[$meta])* static $name: $type = $value; }
    };
}
pub use model_thread_local as thread_local;
