//! The commands of a terminal and their results.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::session::Facts;
use crate::contract::Operation;

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Runs a program to its end; with `session_id`, a command in that shell, whose state it may change.
    ///
    /// Its output goes into the job's `log.txt` at once. When the call is cancelled or takes too long, everything that
    /// it started ends, whatever became of it.
    Exec {
        /// A line for `sh -c`, or for the shell of the session.
        #[serde(default)]
        command: Option<String>,
        /// A program and its arguments, without a shell; instead of `command`.
        #[serde(default)]
        argv: Option<Vec<String>>,
        #[serde(default)]
        session_id: Option<String>,
        /// A directory inside the sandbox; the first project if absent.
        #[serde(default)]
        cwd: Option<String>,
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// The standard input of the program.
        #[serde(default)]
        stdin: Option<String>,
        #[serde(default = "two_minutes")]
        #[schemars(range(min = 1, max = 3_600_000))]
        timeout_ms: u64,
        /// How much of each stream to keep.
        #[serde(default = "one_mebibyte")]
        #[schemars(range(min = 0, max = 16_777_216))]
        max_output_bytes: usize,
    },
    /// Opens a shell on a terminal of its own.
    Create {
        /// Letters, digits, `-` and `_`; made up when absent.
        #[serde(default)]
        session_id: Option<String>,
        /// The program to run on the terminal; `bash` if there is one, else `sh`.
        #[serde(default)]
        shell: Option<String>,
        #[serde(default)]
        cwd: Option<String>,
        #[serde(default)]
        env: BTreeMap<String, String>,
        #[serde(default = "eighty")]
        #[schemars(range(min = 1, max = 10_000))]
        cols: u16,
        #[serde(default = "twenty_four")]
        #[schemars(range(min = 1, max = 10_000))]
        rows: u16,
    },
    /// Types into a session: one of `input` as it is, `command` with a line end, or `data_b64`.
    Write {
        /// The newest open session if absent, here and below.
        #[serde(default)]
        session_id: Option<String>,
        #[serde(default)]
        input: Option<String>,
        #[serde(default)]
        command: Option<String>,
        #[serde(default)]
        data_b64: Option<String>,
    },
    /// Reads what a session printed. Offsets count from its beginning and stay true.
    Read {
        #[serde(default)]
        session_id: Option<String>,
        /// Where to begin; where the last read without an offset stopped if absent.
        #[serde(default)]
        offset: Option<u64>,
        #[serde(default = "sixty_four_kibibytes")]
        #[schemars(range(min = 4, max = 1_048_576))]
        max_bytes: usize,
        /// How long to wait while there is nothing to read.
        #[serde(default)]
        #[schemars(range(max = 600_000))]
        wait_ms: u64,
    },
    /// Changes the size of a session's window.
    Resize {
        #[serde(default)]
        session_id: Option<String>,
        #[schemars(range(min = 1, max = 10_000))]
        cols: u16,
        #[schemars(range(min = 1, max = 10_000))]
        rows: u16,
    },
    /// Sends a signal to whatever runs in the foreground of a session.
    Signal {
        #[serde(default)]
        session_id: Option<String>,
        /// `INT`, `TERM`, `KILL`, `HUP`, …
        name: String,
    },
    /// Ends a session and everything that runs in it. What it printed can still be read.
    Close {
        #[serde(default)]
        session_id: Option<String>,
    },
    /// Lists the sessions.
    List {},
}

fn two_minutes() -> u64 {
    120_000
}

fn one_mebibyte() -> usize {
    1 << 20
}

fn sixty_four_kibibytes() -> usize {
    64 << 10
}

fn eighty() -> u16 {
    80
}

fn twenty_four() -> u16 {
    24
}

/// How a command ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Executed {
    pub exit_code: Option<i32>,
    /// The name of the signal that ended it, such as `SIGKILL`.
    pub signal: Option<String>,
    pub stdout: String,
    /// Empty in a session: a terminal has one stream.
    pub stderr: String,
    /// The exact bytes, where `stdout` could not show them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout_b64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_b64: Option<String>,
    /// Whether a stream was longer than was kept.
    pub truncated: bool,
    pub duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Typed {
    pub session_id: String,
    /// In bytes.
    pub written: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Heard")]
pub struct SessionOutput {
    pub session_id: String,
    pub data: String,
    /// The exact bytes, where `data` could not show them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_b64: Option<String>,
    pub offset: u64,
    pub next_offset: u64,
    /// The oldest offset that can still be read.
    pub first_offset: u64,
    /// Whether nothing more will ever come.
    pub eof: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Listed")]
pub struct SessionList {
    pub sessions: Vec<Facts>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    Executed(Executed),
    Typed(Typed),
    Heard(SessionOutput),
    Session(Facts),
    Listed(SessionList),
}

pub fn operations() -> Vec<Operation> {
    let work = |more: serde_json::Value| {
        let mut example = json!({ "session_id": "work" });
        for (key, value) in more.as_object().into_iter().flatten() {
            example[key] = value.clone();
        }
        example
    };
    let hour = std::time::Duration::from_secs(3700);
    vec![
        Operation::execute("exec").example(json!({ "command": "echo hello" })).gives::<Executed>().deadline(hour),
        Operation::execute("create").example(work(json!({}))).gives::<Facts>(),
        Operation::execute("write").example(work(json!({ "command": "ls" }))).gives::<Typed>(),
        Operation::read("read").example(work(json!({ "wait_ms": 100 }))).gives::<SessionOutput>().deadline(hour),
        Operation::execute("resize").example(work(json!({ "cols": 120, "rows": 40 }))).gives::<Facts>(),
        Operation::execute("signal").example(work(json!({ "name": "INT" }))).gives::<Facts>(),
        Operation::execute("close").example(work(json!({}))).gives::<Facts>(),
        Operation::read("list").quick().example(json!({})).gives::<SessionList>(),
    ]
}
