//! Acheron: an agent host that you can `ls`.

pub mod agent;
pub mod cli;
pub mod clock;
pub mod contract;
pub mod doctor;
pub mod error;
pub mod events;
pub mod file_tools;
pub mod fuse;
pub mod ground;
pub mod host;
pub mod http;
pub mod jobs;
pub mod library;
pub mod manual;
pub mod model;
pub mod mountinfo;
pub mod place;
pub mod policy;
pub mod sandbox;
pub mod service;
pub mod services;
pub mod spec;
pub mod store;
pub mod tokens;
pub mod vfs;
