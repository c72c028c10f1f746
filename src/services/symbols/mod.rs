//! Symbols: small named patterns with links between them, and the kits and agents that use them.
//!
//! Every change has a version, an author and a reason, and can be undone. Knows nothing of phases or of models.

pub mod backend;
pub mod bulk;
pub mod catalogue;
pub mod change;
pub mod durability;
mod files;
mod in_commit;
pub mod index;
pub mod kit;
pub mod open;
mod ownership;
#[cfg(feature = "redis")]
pub mod redis;
pub mod service;
pub mod sqlite;
pub mod store;
pub mod symbol;
pub mod vector;
pub mod walk;
pub mod wanted;

#[cfg(test)]
mod tests;
