//! MCP servers as services: each tool of a server is an operation, each resource a file.
//!
//! One server of one agent is a task ([`server`]) that starts the server, asks what it offers, and puts a version of the service
//! ([`service`]) into the tree whenever that changes. A server is a program in the agent's sandbox ([`stdio`]) or at a URL
//! ([`http`]); both move messages of a [`peer`]. What a server sends is foreign: `acheron-mcp` makes it harmless. Used by the
//! host, which hands it the programs and the HTTP client.

mod http;
mod pages;
mod peer;
mod server;
mod servers;
mod service;
mod stdio;

pub use http::HttpServer;
pub use server::{McpServer, McpServerParts, ServerSource};
pub use servers::McpServers;
pub use service::McpService;
