//! The files of Acheron in which threads meet, compiled once more: `crate::sync`, from which they take their locks,
//! channels and threads, is loom's here ([`sync`]), so that `tests/` can run them in every order. They are the files
//! themselves and not copies; the program is built without this crate, and knows nothing of it.
//!
//! loom and not shuttle: the law is about *every* order, and loom leaves out orders that differ only in steps which do
//! not meet. shuttle's `check_dfs` tries those too: three threads of ten steps have 5·10¹² orders. Its other schedulers
//! pick orders by chance.

#![cfg(not(test))] // the files bring unit tests of their own, for real threads
#![allow(dead_code)] // what only the program or its unit tests use

pub mod sync;

/// By a macro, because rustfmt would look for the unit tests of each file, which are not compiled here.
macro_rules! compile_files {
    ($($name:ident = $file:literal;)*) => {
        $(#[path = $file] pub mod $name;)*
    };
}

compile_files! {
    call_queue = "../../../src/service/runner/queue.rs";
    fault = "../../../crates/store/src/fault.rs";
    notices = "../../../crates/fuse/src/notices.rs";
    parking = "../../../crates/fuse/src/parking.rs";
    poll_watch = "../../../crates/fuse/src/poll_watch.rs";
    time_limit = "../../../crates/store/src/time_limit.rs";
    turn_order = "../../../src/agent/turn_order.rs";
    turns = "../../../crates/fuse/src/turns.rs";
    tx = "../../../crates/store/src/tx.rs";
    writer = "../../../crates/store/src/writer.rs";
}

/// The half of `crates/fuse/src/interrupt.rs` that waiters know; the other half replaces `read(2)` of the whole program.
pub mod interrupt {
    pub trait Interrupts: Send + Sync {
        fn interrupted(&self, unique: u64);
    }
}
