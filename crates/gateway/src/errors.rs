//! Refusals in the form that the clients of each server understand.

use serde_json::{Value, json};

use super::Dialect;

/// Why a request gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayFault {
    /// The budget of the agent does not pay for it.
    BudgetExceeded,
    Invalid,
    Forbidden,
    NotFound,
    TooLarge,
    /// The recording has no answer to this request.
    Unmatched,
    /// The server of the model failed, or could not be reached.
    Upstream,
    Timeout,
    /// There is no model that could answer.
    Unavailable,
    /// Too much is under way.
    Busy,
    Internal,
}

/// The names of one fault: the status, the name that the gateway has for it, OpenAI's type, Anthropic's type, Google's status.
type FaultNames = (u16, &'static str, &'static str, &'static str, &'static str);

impl GatewayFault {
    fn names(self) -> FaultNames {
        match self {
            GatewayFault::BudgetExceeded => {
                (429, "budget_exceeded", "insufficient_quota", "billing_error", "RESOURCE_EXHAUSTED")
            }
            GatewayFault::Invalid => {
                (400, "invalid_request", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT")
            }
            GatewayFault::Forbidden => (403, "refused", "permission_error", "permission_error", "PERMISSION_DENIED"),
            GatewayFault::NotFound => (404, "not_found", "invalid_request_error", "not_found_error", "NOT_FOUND"),
            GatewayFault::TooLarge => {
                (413, "request_too_large", "invalid_request_error", "request_too_large", "INVALID_ARGUMENT")
            }
            GatewayFault::Unmatched => {
                (400, "replay_mismatch", "invalid_request_error", "invalid_request_error", "FAILED_PRECONDITION")
            }
            GatewayFault::Upstream => (502, "upstream_error", "server_error", "api_error", "UNAVAILABLE"),
            GatewayFault::Timeout => (504, "upstream_timeout", "server_error", "timeout_error", "DEADLINE_EXCEEDED"),
            GatewayFault::Unavailable => (503, "no_model", "server_error", "api_error", "UNAVAILABLE"),
            GatewayFault::Busy => (429, "busy", "rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED"),
            GatewayFault::Internal => (500, "internal", "server_error", "api_error", "INTERNAL"),
        }
    }

    /// The name in `requests.ndjson`.
    pub fn name(self) -> &'static str {
        self.names().1
    }

    /// Anthropic answers 402 where money is at an end; its clients do not repeat that.
    pub fn status(self, dialect: Dialect) -> u16 {
        match (self, dialect) {
            (GatewayFault::BudgetExceeded, Dialect::Messages) => 402,
            _ => self.names().0,
        }
    }

    /// Whether the same request may succeed if it is sent again.
    pub fn may_pass(self) -> bool {
        matches!(self, GatewayFault::Upstream | GatewayFault::Timeout | GatewayFault::Busy)
    }
}

/// The body of a refusal.
pub fn error_body(dialect: Dialect, fault: GatewayFault, message: &str) -> Value {
    let (status, code, openai, anthropic, google) = fault.names();
    match dialect {
        Dialect::Chat | Dialect::Responses => {
            json!({"error": {"message": message, "type": openai, "param": null, "code": code}})
        }
        Dialect::Messages => {
            let message = format!("{code}: {message}");
            json!({"type": "error", "error": {"type": anthropic, "message": message}})
        }
        Dialect::Gemini => {
            let details =
                json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code, "domain": "acheron"}]);
            json!({"error": {"code": status, "message": message, "status": google, "details": details}})
        }
    }
}

/// An error within a stream that has begun.
pub fn error_event(dialect: Dialect, fault: GatewayFault, message: &str) -> Vec<u8> {
    let body = error_body(dialect, fault, message);
    match dialect {
        Dialect::Chat | Dialect::Gemini => format!("data: {body}\n\n"),
        Dialect::Messages => format!("event: error\ndata: {body}\n\n"),
        Dialect::Responses => {
            let error = json!({"code": fault.name(), "message": message});
            let response =
                json!({"id": "resp_failed", "object": "response", "status": "failed", "output": [], "error": error});
            let event = json!({"type": "response.failed", "sequence_number": 0, "response": response});
            format!("event: response.failed\ndata: {event}\n\n")
        }
    }
    .into_bytes()
}
