//! The languages of model servers, for the gateway: requests, answers, event streams, errors and usage.
//!
//! A core: bytes and values in, bytes and values out. No host, no clock, no network. Used by `src/gateway` and by tests; it uses
//! only `acheron-base`.
//!
//! An answer is translated in two steps: a reader turns what the server sends into [`AnswerPart`]s, and the writer of a
//! [`Dialect`] turns those into what the program expects. The same writers serve scripted models.

#![forbid(unsafe_code)]

mod answer;
mod conversation;
mod dialect;
mod differences;
mod errors;
mod meter;
mod normalise;
mod read_chat;
mod read_chat_request;
mod read_gemini_request;
mod read_messages_request;
mod read_responses_request;
mod request;
mod route;
mod size;
mod usage;
mod write_chat;
mod write_chat_request;
mod write_gemini;
mod write_messages;
mod write_responses;
mod writer;

pub use answer::{AnswerCall, AnswerEnd, AnswerPart, StopReason, WholeAnswer};
pub use conversation::{CallResult, ContentPart, Conversation, ConversationTurn, FunctionTool, ToolChoice};
pub use dialect::Dialect;
pub use differences::difference;
pub use errors::{GatewayFault, error_body, error_event};
pub use meter::StreamMeter;
pub use normalise::normalised;
pub use read_chat::{ChatStreamReader, read_chat_answer};
pub use request::{GatewayRequest, GeminiTarget};
pub use route::{Route, SERVED, route};
pub use usage::TokenUsage;
pub use writer::{AnswerIdentity, AnswerWriter, whole_answer};
