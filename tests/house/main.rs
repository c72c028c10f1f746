//! The house as its inhabitants see it: sessions on real mounts.

mod chat;
mod common;
mod contracts;
mod dm;
mod fuse_files;
mod fuse_mounts;
mod fuse_polls;
mod fuse_waits;
mod hands;
mod house;
mod layers;
mod library;
mod memory;
mod mind;
mod phases;
mod posix;
mod prompts;
mod recall;
mod search_code;
mod sessions;
mod web;
mod workshop;
