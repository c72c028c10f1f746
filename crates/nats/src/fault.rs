//! What can go wrong between a host and the server.

use std::fmt;

use acheron_base::Error;

/// Why a request has no good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkFault {
    /// Nobody is there who would answer.
    Nobody,
    /// No answer came: what was asked has happened or not.
    Unknown(String),
    /// The server refused it; nothing has happened.
    Refused { code: u64, sentence: String },
}

impl LinkFault {
    /// The record was changed by somebody else (the second code: in an atomic batch, by version 2.12.0).
    pub fn is_conflict(&self) -> bool {
        matches!(self, LinkFault::Refused { code: 10071 | 10164, .. })
    }

    /// There is no such stream, reader or record.
    pub fn is_missing(&self) -> bool {
        matches!(self, LinkFault::Refused { code: 10059 | 10014 | 404, .. })
    }

    /// Whether the same may be sent again with the same id.
    pub fn may_be_retried(&self) -> bool {
        matches!(self, LinkFault::Nobody | LinkFault::Unknown(_))
    }

    pub(crate) fn unknown(what: impl fmt::Display) -> LinkFault {
        LinkFault::Unknown(what.to_string())
    }
}

impl fmt::Display for LinkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkFault::Nobody => f.write_str("nobody answers there"),
            LinkFault::Unknown(what) => write!(f, "no answer ({what})"),
            LinkFault::Refused { code, sentence } => write!(f, "the server refused it: {sentence} ({code})"),
        }
    }
}

impl From<LinkFault> for Error {
    fn from(fault: LinkFault) -> Error {
        match &fault {
            LinkFault::Nobody => Error::unavailable(fault.to_string()),
            LinkFault::Unknown(_) => Error::unavailable(format!("the fabric: {fault}")),
            fault if fault.is_conflict() => Error::conflict(fault.to_string()),
            _ => Error::unavailable(format!("the fabric: {fault}")),
        }
    }
}
