//! Acheron: an agent host that you can `ls`.

pub mod agent;
pub mod error;
pub mod file_tools;
pub mod http;
pub mod model;
pub mod place;
pub mod policy;
pub mod vfs;
