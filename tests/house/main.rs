//! The house as its inhabitants see it: sessions on real mounts.

mod common;
mod fuse_files;
mod hands;
mod house;
mod sessions;
mod workshop;
