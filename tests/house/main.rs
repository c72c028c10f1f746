//! The house as its inhabitants see it: sessions on real mounts.

mod common;
mod contracts;
mod fuse_files;
mod house;
mod layers;
mod phases;
mod sessions;
mod workshop;
