//! The house as its inhabitants see it: sessions on real mounts.

mod common;
mod fuse_files;
mod fuse_mounts;
mod fuse_polls;
mod fuse_waits;
mod workshop;
