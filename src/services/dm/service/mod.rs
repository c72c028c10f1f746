//! The service `dm`: campaigns as directories, moves as writes. Connects; every rule is elsewhere.

mod command;
mod files;
mod table;

pub use command::{Command, Dm, Output};
pub use table::Table;

#[cfg(test)]
mod tests;
