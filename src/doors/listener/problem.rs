//! Refusals over HTTP: the status of each code, and `application/problem+json` (RFC 9457) with the code and the sentence.

use axum::response::Response;
use serde_json::json;

use super::respond;
use acheron_base::{Code, Error};

/// Makes the answer that the clients of a door read: status, error, and the seconds after which they may try again.
pub type RefusalShape = fn(u16, &Error, Option<u64>) -> Response;

/// The status of a failure.
pub fn status(code: Code) -> u16 {
    match code {
        Code::InvalidPayload | Code::UnknownOperation => 400,
        Code::BudgetExceeded => 402,
        Code::Forbidden | Code::ReadOnly | Code::ApprovalExpired => 403,
        Code::NotFound => 404,
        Code::AlreadyExists | Code::Conflict | Code::Cancelled | Code::Fenced => 409,
        Code::TooLarge => 413,
        Code::ProviderError => 502,
        Code::Busy | Code::QueueFull | Code::Interrupted | Code::Unavailable => 503,
        Code::Timeout => 504,
        Code::NoSpace | Code::QuotaExceeded => 507,
        Code::ExecutionFailed | Code::Internal => 500,
        Code::Os(libc::EPERM | libc::EBADF | libc::EXDEV) => 403,
        Code::Os(libc::ENOTEMPTY) => 409,
        Code::Os(libc::ENAMETOOLONG) => 414,
        Code::Os(libc::ENOTDIR | libc::EISDIR | libc::ELOOP) => 400,
        Code::Os(_) => 500,
    }
}

/// A refusal as `application/problem+json`.
pub fn problem(error: &Error) -> Response {
    shape(status(error.code), error, (error.code == Code::Busy).then_some(1))
}

/// The same with another status than that of its code.
pub fn shape(status: u16, error: &Error, retry_after: Option<u64>) -> Response {
    let title = axum::http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let body = json!({
        "type": "about:blank",
        "title": title.unwrap_or("Error"),
        "status": status,
        "code": error.code.name(),
        "detail": error.message,
    });
    let mut response = respond(status, &[("content-type", "application/problem+json")], body.to_string());
    if let Some(seconds) = retry_after {
        response.headers_mut().insert("retry-after", seconds.into());
    }
    if status == 401 {
        response.headers_mut().insert("www-authenticate", axum::http::HeaderValue::from_static("Bearer"));
    }
    response
}
