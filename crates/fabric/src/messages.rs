//! Requests of one host to another and their answers. Who asks is the subject's token and `agent`; `token` is the fencing token
//! of the asking host's lease on its name.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use acheron_base::{Code, Error};

/// The longest wait that one request asks for, in milliseconds. A longer one is asked again.
pub const LONGEST_WAIT: u64 = 5_000;
/// The largest result that comes with its answer; a larger one is fetched in pieces of this size.
pub const PIECE: usize = 256 << 10;
/// The largest arguments of a call from another host, in bytes of JSON.
pub const ARGUMENTS: usize = 768 << 10;
/// The largest result of a call from another host.
pub const RESULT: usize = 64 << 20;

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostRequest {
    /// The agent of the asking host, or `operator`.
    pub agent: String,
    pub token: u64,
    /// The id of the call: the id of its job on the asking host. The same id is the same call.
    pub id: String,
    #[serde(flatten)]
    pub about: RequestedThing,
}

/// What a request is about; which of them follows from its subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedThing {
    Hello,
    Call {
        service: String,
        operation: String,
        arguments: Value,
    },
    /// For at most so long.
    Wait {
        wait_ms: u64,
    },
    Cancel,
    /// A piece of the result, as JSON, from this byte on.
    Piece {
        from: usize,
    },
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum HostAnswer {
    /// The host is there.
    Here,
    /// The call is a job, which has not ended.
    Running {
        job: String,
        state: String,
        #[serde(default)]
        progress: Option<Value>,
    },
    /// The job has ended.
    Ended { job: String, state: String, outcome: CallOutcome },
    /// A piece of the result.
    Piece { text: String },
    /// The host does not do it.
    Refused { error: SaidError },
    /// The host knows no such call: it never came, or was forgotten.
    UnknownCall,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    Result(Value),
    /// A result that is too large for one message: its size as JSON, and the SHA-256 of that.
    Large {
        bytes: usize,
        sha256: String,
    },
    Error(SaidError),
}

/// An error as one host tells another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SaidError {
    pub code: String,
    pub message: String,
}

impl From<&Error> for SaidError {
    fn from(error: &Error) -> SaidError {
        SaidError { code: error.code.name().to_owned(), message: error.message.clone() }
    }
}

impl SaidError {
    /// The error here. A code that this version does not know is a failure.
    pub fn heard(&self, node: &str) -> Error {
        let code = Code::named(&self.code).unwrap_or(Code::ExecutionFailed);
        let message: String = self.message.chars().take(4000).collect();
        Error::new(code, message).about(format!("host {node}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_is_flat_json() {
        let call =
            RequestedThing::Call { service: "dm".to_owned(), operation: "look".to_owned(), arguments: json!({"a": 1}) };
        let request = HostRequest { agent: "charon".to_owned(), token: 7, id: "job-1".to_owned(), about: call };
        let text = serde_json::to_value(&request).unwrap();
        let expected = json!({"agent": "charon", "token": 7, "id": "job-1",
            "call": {"service": "dm", "operation": "look", "arguments": {"a": 1}}});
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_value::<HostRequest>(text).unwrap(), request);
    }

    #[test]
    fn an_error_travels_with_its_code() {
        let said = SaidError::from(&Error::forbidden("no rule allows it"));
        let heard = said.heard("styx");
        assert_eq!((heard.code, heard.message.as_str()), (Code::Forbidden, "host styx: no rule allows it"));
        let strange = SaidError { code: "new_code".to_owned(), message: String::new() };
        assert_eq!(strange.heard("styx").code, Code::ExecutionFailed);
    }
}
