//! Counts the requests of each kind. The server uses it; it uses nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! requests {
    ($($name:ident = $word:literal),* $(,)?) => {
        /// The kind of a request.
        #[derive(Clone, Copy, Debug)]
        pub enum Operation { $($name),* }

        impl Operation {
            pub const WORDS: &[&str] = &[$($word),*];
            pub const COUNT: usize = Operation::WORDS.len();

            pub fn word(self) -> &'static str {
                Operation::WORDS[self as usize]
            }
        }
    };
}

requests! {
    Lookup = "lookup",
    Forget = "forget",
    Getattr = "getattr",
    Setattr = "setattr",
    Readlink = "readlink",
    Open = "open",
    Read = "read",
    Write = "write",
    Flush = "flush",
    Fsync = "fsync",
    Release = "release",
    Opendir = "opendir",
    Readdir = "readdir",
    Readdirplus = "readdirplus",
    Releasedir = "releasedir",
    Statfs = "statfs",
    Poll = "poll",
    Ioctl = "ioctl",
    Create = "create",
    Mkdir = "mkdir",
    Remove = "remove",
    Rename = "rename",
    Link = "link",
    Attribute = "attribute",
    Access = "access",
    Seek = "seek",
    Allocate = "allocate",
}

#[derive(Default)]
pub struct RequestCounts([AtomicU64; Operation::COUNT]);

impl RequestCounts {
    pub fn count(&self, operation: Operation) {
        self.0[operation as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Every kind with at least one request.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let counts = Operation::WORDS.iter().zip(&self.0).map(|(word, count)| (*word, count.load(Ordering::Relaxed)));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}
