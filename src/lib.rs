//! Acheron: an agent host that you can `ls`.

pub mod error;
pub mod fuse;
pub mod policy;
pub mod vfs;
