//! The house as its inhabitants see it: sessions on real mounts.

mod common;
mod contracts;
mod fuse_files;
mod house;
mod layers;
mod prompts;
mod sessions;
mod workshop;
