//! The error type: a stable code, an errno, a message. Programs look at the code (`error.code` in JSON), the kernel
//! passes the errno to a caller, and the message is for people: lower case, no full stop, names the thing (in
//! backticks: [`quoted`]), says what to do where there is something to do. Every crate uses it.

use std::fmt;

use serde::{Deserialize, Serialize};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure: its code and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub code: Code,
    pub message: String,
}

/// The stable codes of failure. A code never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The caller wrote something that the file does not accept.
    InvalidPayload,
    UnknownOperation,
    Forbidden,
    NotFound,
    AlreadyExists,
    /// The thing has changed since the caller read it.
    Conflict,
    TooLarge,
    /// No capacity now, or another writer is active; the same call may succeed later.
    Busy,
    Timeout,
    Cancelled,
    Interrupted,
    /// Something outside that the call needs is missing: a server, a process, a configuration.
    Unavailable,
    ReadOnly,
    NoSpace,
    /// A limit of tokens, money or time.
    BudgetExceeded,
    /// A limit of bytes (`limits` in the mountspec).
    QuotaExceeded,
    /// An inbox or a queue has as many messages or items as it takes; there is room when some are dealt with.
    QueueFull,
    /// What the caller held, such as a lease, is not its own any more.
    Fenced,
    /// Nobody decided in time about something that must be approved first. It was not done, and it was not denied.
    ApprovalExpired,
    ProviderError,
    ExecutionFailed,
    Internal,
    /// An error of file systems only, such as `ENOTDIR`; JSON shows the name of the errno.
    Os(i32),
}

impl Code {
    /// Every code with a name of its own, for tests and generated pages.
    pub const ALL: [Code; 22] = [
        Code::InvalidPayload,
        Code::UnknownOperation,
        Code::Forbidden,
        Code::NotFound,
        Code::AlreadyExists,
        Code::Conflict,
        Code::TooLarge,
        Code::Busy,
        Code::Timeout,
        Code::Cancelled,
        Code::Interrupted,
        Code::Unavailable,
        Code::ReadOnly,
        Code::NoSpace,
        Code::BudgetExceeded,
        Code::QuotaExceeded,
        Code::QueueFull,
        Code::Fenced,
        Code::ApprovalExpired,
        Code::ProviderError,
        Code::ExecutionFailed,
        Code::Internal,
    ];

    /// The errors of file systems that have a name of their own.
    pub const OS: [Code; 8] = [
        Code::Os(libc::ENOTDIR),
        Code::Os(libc::EISDIR),
        Code::Os(libc::EPERM),
        Code::Os(libc::EBADF),
        Code::Os(libc::EXDEV),
        Code::Os(libc::ENOTEMPTY),
        Code::Os(libc::ENAMETOOLONG),
        Code::Os(libc::ELOOP),
    ];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Code::InvalidPayload => "invalid_payload",
            Code::UnknownOperation => "unknown_operation",
            Code::Forbidden => "forbidden",
            Code::NotFound => "not_found",
            Code::AlreadyExists => "already_exists",
            Code::Conflict => "conflict",
            Code::TooLarge => "too_large",
            Code::Busy => "busy",
            Code::Timeout => "timeout",
            Code::Cancelled => "cancelled",
            Code::Interrupted => "interrupted",
            Code::Unavailable => "unavailable",
            Code::ReadOnly => "read_only",
            Code::NoSpace => "no_space",
            Code::BudgetExceeded => "budget_exceeded",
            Code::QuotaExceeded => "quota_exceeded",
            Code::QueueFull => "queue_full",
            Code::Fenced => "fenced",
            Code::ApprovalExpired => "approval_expired",
            Code::ProviderError => "provider_error",
            Code::ExecutionFailed => "execution_failed",
            Code::Internal => "internal",
            Code::Os(libc::ENOTDIR) => "not_a_directory",
            Code::Os(libc::EISDIR) => "is_a_directory",
            Code::Os(libc::EPERM) => "not_permitted",
            Code::Os(libc::EBADF) => "bad_descriptor",
            Code::Os(libc::EXDEV) => "crosses_devices",
            Code::Os(libc::ENOTEMPTY) => "not_empty",
            Code::Os(libc::ENAMETOOLONG) => "name_too_long",
            Code::Os(libc::ELOOP) => "too_many_links",
            Code::Os(_) => "system_error",
        }
    }

    /// The number that the kernel hands to the caller.
    pub fn errno(self) -> i32 {
        match self {
            Code::InvalidPayload => libc::EINVAL,
            Code::UnknownOperation => libc::EOPNOTSUPP,
            Code::Forbidden => libc::EACCES,
            Code::NotFound => libc::ENOENT,
            Code::AlreadyExists => libc::EEXIST,
            Code::Conflict | Code::Fenced => libc::ESTALE,
            Code::TooLarge => libc::EFBIG,
            Code::Busy | Code::QueueFull => libc::EAGAIN,
            Code::ApprovalExpired => libc::EPERM,
            Code::Timeout => libc::ETIMEDOUT,
            Code::Cancelled => libc::ECANCELED,
            Code::Interrupted => libc::EINTR,
            Code::Unavailable => libc::ENXIO,
            Code::ReadOnly => libc::EROFS,
            Code::NoSpace => libc::ENOSPC,
            Code::BudgetExceeded | Code::QuotaExceeded => libc::EDQUOT,
            Code::ProviderError | Code::ExecutionFailed | Code::Internal => libc::EIO,
            Code::Os(errno) => errno,
        }
    }

    /// The code of that name, if there is one.
    pub fn named(name: &str) -> Option<Code> {
        let rest = [Code::Os(libc::EIO)];
        Code::ALL.into_iter().chain(Code::OS).chain(rest).find(|code| code.name() == name)
    }
}

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error { code, message: message.into() }
    }

    pub fn errno(&self) -> i32 {
        self.code.errno()
    }

    /// The same error with its subject in front: `what: message`.
    pub fn about(self, what: impl fmt::Display) -> Self {
        Error { message: format!("{what}: {}", self.message), ..self }
    }
}

/// The value, or `None` if the error says that there is no such thing. For files and directories that may be missing.
pub fn if_exists<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A foreign word inside a message: in backticks, on one line, at most 60 characters.
pub fn quoted(word: &str) -> String {
    let short: String = word.chars().take(60).collect();
    let more = if short.len() < word.len() { "…" } else { "" };
    format!("`{}{more}`", short.replace(char::is_control, "\u{fffd}"))
}

/// One constructor per code.
macro_rules! constructors {
    ($($name:ident => $code:ident),* $(,)?) => {
        impl Error {
            $(pub fn $name(message: impl Into<String>) -> Self {
                Error::new(Code::$code, message)
            })*
        }
    };
}

constructors! {
    invalid => InvalidPayload,
    unknown_operation => UnknownOperation,
    forbidden => Forbidden,
    not_found => NotFound,
    already_exists => AlreadyExists,
    conflict => Conflict,
    too_large => TooLarge,
    busy => Busy,
    timeout => Timeout,
    cancelled => Cancelled,
    interrupted => Interrupted,
    unavailable => Unavailable,
    read_only => ReadOnly,
    no_space => NoSpace,
    budget_exceeded => BudgetExceeded,
    quota_exceeded => QuotaExceeded,
    queue_full => QueueFull,
    fenced => Fenced,
    approval_expired => ApprovalExpired,
    provider => ProviderError,
    failed => ExecutionFailed,
    internal => Internal,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Finds the code for an error of the operating system. Its message is kept.
impl From<std::io::Error> for Error {
    fn from(err: std::io::Error) -> Self {
        let code = match err.raw_os_error() {
            Some(libc::ENOENT) => Code::NotFound,
            Some(libc::EACCES) => Code::Forbidden,
            Some(libc::EEXIST) => Code::AlreadyExists,
            Some(libc::EFBIG) => Code::TooLarge,
            Some(libc::EAGAIN) => Code::Busy,
            Some(libc::ETIMEDOUT) => Code::Timeout,
            Some(libc::EINTR) => Code::Interrupted,
            Some(libc::EROFS) => Code::ReadOnly,
            Some(libc::ENOSPC | libc::EDQUOT) => Code::NoSpace,
            // The server of a mount has ended.
            Some(libc::ENOTCONN | libc::ECONNABORTED | libc::ESHUTDOWN) => Code::Unavailable,
            Some(errno) => Code::Os(errno),
            None => Code::ExecutionFailed,
        };
        Error::new(code, err.to_string())
    }
}

/// An error in JSON: `{"code": "...", "message": "..."}`.
#[derive(Serialize, Deserialize)]
struct Shown {
    code: String,
    message: String,
}

impl Serialize for Error {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Shown { code: self.code.name().to_owned(), message: self.message.clone() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let shown = Shown::deserialize(deserializer)?;
        Ok(Error::new(Code::named(&shown.code).unwrap_or(Code::Internal), shown.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_back_to_its_code() {
        for code in Code::ALL.into_iter().chain(Code::OS) {
            assert_eq!(Code::named(code.name()), Some(code));
        }
    }

    #[test]
    fn an_error_survives_json() {
        let error = Error::conflict("version 3 is newer");
        let json = serde_json::to_string(&error).unwrap();
        assert_eq!(json, r#"{"code":"conflict","message":"version 3 is newer"}"#);
        assert_eq!(serde_json::from_str::<Error>(&json).unwrap(), error);
    }

    #[test]
    fn a_foreign_word_is_one_line_and_short() {
        assert_eq!(quoted("a\nb"), "`a\u{fffd}b`");
        assert!(quoted(&"x".repeat(1_000_000)).len() < 80);
    }

    #[test]
    fn only_a_missing_thing_is_none() {
        assert_eq!(if_exists(Ok(1)), Ok(Some(1)));
        assert_eq!(if_exists::<u8>(Err(Error::not_found("no file"))), Ok(None));
        assert!(if_exists::<u8>(Err(Error::forbidden("no"))).is_err());
    }

    #[test]
    fn the_system_is_believed() {
        let full = std::io::Error::from_raw_os_error(libc::ENOSPC);
        assert_eq!(Error::from(full).code, Code::NoSpace);
    }
}
