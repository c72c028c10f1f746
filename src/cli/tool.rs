//! `acheron tool`: the three file tools over standard input and output, for any agent.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};

use super::plain_text::for_stdout;
use super::{CommandResult, root};
use crate::agent::tools::{self, Misuse, MountTools};
use acheron_base::{Clock, Error, Ids, Random};

/// Run file_read, file_write and file_list for an external agent: one JSON call per input line, one result per output line.
#[derive(Args)]
#[command(after_long_help = CALLS, after_help = "--help shows one call of each tool and all arguments.")]
pub struct ToolArgs {
    /// Mount point [default: the only mount]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// One call per tool; `src/agent/tools/mod.rs` reads them.
const CALLS: &str = r#"Calls; a call may also have an "id", which its result repeats:

  {"name": "file_read", "arguments": {"path": "/AGENTS.md"}}
      max_bytes: at most 8388608 [default: 1048576]
      wait_until_ready: false returns at once with "ready": false where a read would wait [default: true]

  {"name": "file_write", "arguments": {"path": "/agents/self/chat/control/input", "content": "Hello"}}
      append: adds to the file [default: false]
      create_parents: creates missing directories [default: false]
      wait_until_ready: as for file_read [default: true]

  {"name": "file_list", "arguments": {"path": "/agents/self"}}
      path [default: the root]
      recursive: lists subdirectories too [default: false]
      max_entries: at most 5000 [default: 500]

A failed call has "error" with "code" and "message" in its result. A write that starts a job has "job_id"."#;

/// The size limit of a line; longer lines are refused and skipped.
const LINE: usize = 4 << 20;

impl ToolArgs {
    pub fn run(self) -> CommandResult {
        let root = root::choose_living(self.root.as_deref())?;
        let ids = Ids::new(Clock::real(), Random::real());
        let ground = MountTools::new(root, Arc::new(move || ids.id("tool")));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut lines, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
        while let Some(line) = next_line(&mut lines)? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let answer = runtime.block_on(answer(&ground, &line));
            writeln!(stdout, "{}", for_stdout(&answer.to_string()))?;
            stdout.flush()?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The next line without its end, truncated at the limit.
fn next_line(lines: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let (mut line, mut begun) = (Vec::new(), false);
    loop {
        let chunk = lines.fill_buf()?;
        if chunk.is_empty() {
            return Ok(begun.then_some(line));
        }
        begun = true;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let take = end.unwrap_or(chunk.len());
        let room = (LINE + 1).saturating_sub(line.len());
        line.extend_from_slice(&chunk[..take.min(room)]);
        lines.consume(end.map_or(take, |end| end + 1));
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

async fn answer(ground: &MountTools, line: &[u8]) -> Value {
    let (id, outcome) = match parse(line) {
        Ok((id, tool)) => (id, tools::perform(ground, &tool).await),
        Err((id, error)) => (id, tools::failure(&error)),
    };
    let mut answer = Map::new();
    if let Some(id) = id {
        answer.insert("id".to_owned(), id);
    }
    if let Value::Object(outcome) = outcome {
        answer.extend(outcome);
    }
    Value::Object(answer)
}

type Id = Option<Value>;

/// `{"id"?, "name", "arguments"}`.
fn parse(line: &[u8]) -> Result<(Id, tools::ToolCall), (Id, Error)> {
    if line.len() > LINE {
        return Err((None, Error::too_large(format!("a call has at most {LINE} bytes"))));
    }
    let malformed = |why: String| Error::invalid(format!("not a call: {why}; it is {}", example()));
    let call: Value = serde_json::from_slice(line).map_err(|err| (None, malformed(err.to_string())))?;
    let Value::Object(mut call) = call else { return Err((None, malformed("not a JSON object".to_owned()))) };
    let id = call.remove("id");
    let name = match call.remove("name") {
        Some(Value::String(name)) => name,
        _ => return Err((id, malformed("`name` is missing".to_owned()))),
    };
    let arguments = match call.remove("arguments") {
        None => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err((id, malformed("`arguments` is not an object".to_owned()))),
    };
    if let Some(key) = call.keys().next() {
        return Err((id, malformed(format!("unknown key `{key}`"))));
    }
    match tools::ToolCall::read(&name, arguments) {
        Ok(tool) => Ok((id, tool)),
        Err(Misuse::Unknown(said)) => Err((id, Error::unknown_operation(said))),
        Err(Misuse::Arguments(said)) => Err((id, Error::invalid(said))),
    }
}

fn example() -> Value {
    json!({ "name": "file_read", "arguments": { "path": "/README.md" } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_call_or_a_sentence_that_says_why_not() {
        let said = |line: &str| match parse(line.as_bytes()) {
            Ok((_, tool)) => tool.name().to_owned(),
            Err((_, error)) => error.code.name().to_owned(),
        };
        for (line, expected) in [
            (r#"{"name":"file_list"}"#, "file_list"),
            (r#"{"id":1,"name":"file_read","arguments":{"path":"/"}}"#, "file_read"),
            (r#"{"name":"file_read"}"#, "invalid_payload"),
            (r#"{"name":"fly"}"#, "unknown_operation"),
            (r#"{"name":"file_list","extra":1}"#, "invalid_payload"),
            ("[]", "invalid_payload"),
            ("{", "invalid_payload"),
        ] {
            assert_eq!(said(line), expected, "{line}");
        }
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let mut long = std::io::BufReader::new(std::io::repeat(b'x').take(3 * LINE as u64).chain(&b"\nnext"[..]));
        assert_eq!(next_line(&mut long).unwrap().unwrap().len(), LINE + 1);
        assert_eq!(next_line(&mut long).unwrap().unwrap(), b"next");
        assert_eq!(next_line(&mut long).unwrap(), None);
    }

    use std::io::Read;
}
