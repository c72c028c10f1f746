//! The house as its inhabitants see it: sessions on real mounts.

mod chat;
mod common;
mod fuse_files;
mod house;
mod sessions;
mod workshop;
