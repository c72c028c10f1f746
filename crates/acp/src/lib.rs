//! The Agent Client Protocol (version 1) as data: messages, prompts, updates, and the state of a connection, from the side of
//! an agent ([`AgentSide`]) and from the side of a client ([`ClientSide`]).
//!
//! Bytes in, bytes out: no process, no network, no clock. Everything that the other side sends is foreign: lengths and numbers
//! are bounded here, and each request is answered once. The messages are our own types instead of the official crate: it is
//! young, changes its interface often, and a dozen methods are all that is used. Used by the door `acp` and by agents whose mind
//! is a program that speaks this protocol. Uses `acheron-base` only.

#![forbid(unsafe_code)]

mod agent;
mod client;
mod message;
mod prompt;
mod received;
mod update;

pub use agent::{AgentEvent, AgentSide, AgentStep, OpenRequest, PermissionAnswer, StopReason};
pub use client::{ClientEvent, ClientSide, ClientStep, FileRequest};
pub use message::{AcpFault, AcpLine, AcpLines, AcpMessage, one_line};
pub use prompt::{PromptBlock, prompt_text};
pub use received::{PermissionOption, ReceivedCall, ReceivedUpdate, choose};
pub use update::{AcpPermission, AcpToolCall, AcpUpdate, CallState};

/// The version of the protocol.
pub const PROTOCOL: u64 = 1;
/// The longest message that is read.
pub const LONGEST_MESSAGE: usize = 8 << 20;
/// The most sessions of one connection.
pub const MOST_SESSIONS: usize = 64;
/// The most requests of the other side that are under way at once.
pub const MOST_REQUESTS: usize = 64;
