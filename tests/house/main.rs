//! The house as its inhabitants see it: sessions on real mounts.

mod common;
mod contracts;
mod fuse_files;
mod house;
mod layers;
mod library;
mod memory;
mod prompts;
mod search_code;
mod sessions;
mod workshop;
