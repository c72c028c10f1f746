//! The Model Context Protocol as data, from the side of a client: messages, the list of tools and resources, foreign schemas,
//! results.
//!
//! Everything that a server sends is foreign: sizes and numbers are bounded here, text loses its control characters, and what
//! cannot be used is replaced with a note that says so. Used by the service `mcp`, which moves the bytes. Uses `acheron-base`
//! only: no process, no network, no clock.

#![forbid(unsafe_code)]

pub mod catalogue;
pub mod content;
pub mod message;
pub mod names;
pub mod resources;
pub mod schema;
pub mod text;
pub mod tools;

pub use catalogue::{Catalogue, ServerIdentity};
pub use content::{ToolResult, ToolResultFile};
pub use message::{Incoming, MessageLines, RpcError};
pub use resources::{Resource, ResourceBytes, ResourceTemplate};
pub use tools::Tool;

/// The revision of the protocol that a client of ours asks for; every released server speaks it.
pub const PROTOCOL: &str = "2025-11-25";
/// The longest message that is read.
pub const LONGEST_MESSAGE: usize = 16 << 20;
/// The most tools that are served of one server.
pub const MOST_TOOLS: usize = 1000;
/// The most resources that are shown of one server, and the most templates.
pub const MOST_RESOURCES: usize = 1000;
/// The most bytes of files that one call may leave beside its job.
pub const MOST_FILE_BYTES: usize = 16 << 20;
/// The most files of one call.
pub const MOST_FILES: usize = 64;
