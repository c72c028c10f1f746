//! Acheron: an agent host that you can `ls`.
//!
//! To read it, begin with [`error`], then [`contract`] (what a service promises) and [`policy`] (who may do what), both pure.
//! [`vfs`] is the tree of names and [`fuse`] serves it. [`store`] keeps [`jobs`] and [`events`]; [`service`] turns a
//! command into a job, and `services/search_code.rs` is the smallest whole example. [`file_tools`], [`model`] and
//! [`agent`] are a turn. [`spec`] is what [`host`] builds all of it from, and [`cli`] starts that. The README has the
//! whole map and the invariants.

pub mod agent;
pub mod blocking;
pub mod cli;
pub mod clock;
pub mod contract;
pub mod doctor;
pub mod error;
pub mod events;
pub mod file_tools;
pub mod follow;
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
