//! The messages from the init of a sandbox to its host, one JSON object per line. Init sends them; the host reads them.

use serde::{Deserialize, Serialize};

use super::confinement::Confinement;
use acheron_base::Error;

/// `Ready` or `Failed`, then `Ended`; `Init` comes from another process, at any time before the end. The end of the stream before `Ended` means that the
/// program was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub(super) enum Message {
    /// The init process, by its pid outside.
    Init {
        pid: i32,
    },
    /// Comes with the descriptor of a listener at this port of the sandbox's own loopback device.
    Listening {
        port: u16,
    },
    /// The confinement is complete; the program is being executed.
    Ready {
        confinement: Confinement,
        /// Whether control groups limit all sandboxes of the agent together.
        grouped: bool,
    },
    Failed {
        error: Error,
    },
    Ended {
        #[serde(flatten)]
        status: ExitStatus,
        used: UsedDisk,
    },
}

/// What a sandbox has used of the disks of projects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UsedDisk {
    /// Bytes that were written.
    pub bytes: u64,
    /// Files and directories that were made.
    pub files: u64,
}

/// How a program ended: either field is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitStatus {
    /// The exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl ExitStatus {
    /// Ended by `SIGKILL`.
    pub const KILLED: ExitStatus = ExitStatus { code: None, signal: Some(libc::SIGKILL) };

    /// The number that a shell would show.
    pub fn status(self) -> i32 {
        self.code.unwrap_or_else(|| 128 + self.signal.unwrap_or(0))
    }
}

impl Message {
    pub fn line(&self) -> String {
        // Cannot fail: plain data with text keys.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_one_line_and_is_read_back() {
        let messages = [
            Message::Init { pid: 7 },
            Message::Listening { port: 4000 },
            Message::Ready { confinement: Confinement::default(), grouped: true },
            Message::Failed { error: Error::not_found("no\nsuch program") },
            Message::Ended {
                status: ExitStatus { code: Some(3), signal: None },
                used: UsedDisk { bytes: 7, files: 1 },
            },
        ];
        for message in messages {
            let line = message.line();
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert_eq!(serde_json::from_str::<Message>(&line).unwrap(), message);
        }
    }

    #[test]
    fn a_killed_program_has_the_status_a_shell_would_show() {
        assert_eq!(ExitStatus::KILLED.status(), 137);
        assert_eq!(ExitStatus { code: Some(2), signal: None }.status(), 2);
    }
}
