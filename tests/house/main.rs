//! The house as its inhabitants see it: sessions on real mounts.

mod common;
mod contracts;
mod dm;
mod fuse_files;
mod house;
mod layers;
mod library;
mod memory;
mod search_code;
mod sessions;
mod workshop;
