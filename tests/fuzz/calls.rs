//! What is asked of a service, and what a program answers.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::driver::{Kind, Target};
use crate::kind;
use acheron::agent::protocol;
use acheron::contract::{Contract, Envelope};
use acheron::policy::PrincipalCaller;
use acheron::service::Service;
use acheron::services::external::answer::answer;
use acheron::services::memory::Memory;
use acheron::services::symbols::symbol::Symbol;
use acheron_base::{Error, Result};
use acheron_dm::tools::{self, Role};
use acheron_sandbox::ExitStatus;
use acheron_vfs::{Answer, Caller, CommandContext, CommandSink, Control, File as _, Handle, Open, Reply};

static CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    let operations = Memory::operations();
    Contract::of::<<Memory as Service>::Command, <Memory as Service>::Output>(Memory::NAME, Memory::ABOUT, operations)
        .unwrap()
});

/// Takes calls as the desk of a service does, and only writes them down.
struct Noting {
    /// The file `control/<op>.json`; else the one for envelopes.
    op: Option<&'static str>,
    calls: Mutex<Vec<Envelope>>,
}

impl CommandSink for Noting {
    fn template(&self) -> Bytes {
        Bytes::new()
    }

    fn submit(&self, _: &CommandContext, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        let read = |value| match self.op {
            Some(op) => CONTRACT.arguments(op, value),
            None => CONTRACT.envelope(value),
        };
        Answer::Now(commands.into_iter().map(read).collect::<Result<Vec<_>>>().map(|calls| {
            self.calls.lock().extend(calls);
            Vec::new()
        }))
    }

    fn refused(&self, _: &CommandContext, _: &Error) {}
}

/// What becomes of these writes: the calls, and what was said to the first write that was refused.
fn written(op: Option<&'static str>, writes: &[&[u8]]) -> (Vec<Envelope>, Option<Error>) {
    let noting = Arc::new(Noting { op, calls: Mutex::default() });
    let handle = Control::new(noting.clone()).open(&Caller::operator(), Open::WRITE).unwrap();
    let refused = writes.iter().find_map(|write| said(&*handle, write));
    handle.closed();
    drop(handle);
    let calls = std::mem::take(&mut *noting.calls.lock());
    (calls, refused)
}

fn said(handle: &dyn Handle, write: &[u8]) -> Option<Error> {
    match handle.write(0, write) {
        Answer::Now(outcome) => outcome.err(),
        _ => panic!("a control file answers a write at once"),
    }
}

/// Envelopes and bare arguments, several in a row, cut anywhere.
pub fn control_payload() -> Target {
    const WORDS: &[&str] = &[
        "{\"op\":\"create\",\"arguments\":{\"kind\":\"note\",\"content\":\"x\"}}",
        "\"arguments\":",
        "\"op\":",
        "\"_meta\":{\"correlation_id\":\"a\"}",
        "\"correlation_id\":",
        "\"search\"",
        "\"query\":\"x\"",
        "\"memory_path\":\"/agents/self/memory/items/a\"",
        "\"limit\":25",
        "\"tags\":[\"a\"]",
        "{}",
        "}{",
        "\n",
    ];
    fn run(input: &[u8]) -> Kind {
        let op = [None, Some("create"), Some("search"), Some("mutate")][input.len() % 4];
        let (calls, refused) = written(op, &[input]);
        let cut = input.iter().fold(7usize, |sum, byte| sum.wrapping_mul(31) + usize::from(*byte)) % (input.len() + 1);
        let (parts, interrupted) = written(op, &[&input[..cut], &input[cut..]]);
        match &refused {
            None => assert_eq!((parts, interrupted), (calls.clone(), None), "cut at {cut}"),
            Some(_) => assert!(calls.is_empty(), "a refused write runs nothing"),
        }
        for call in &calls {
            let mut again = json!({"op": call.op, "arguments": call.arguments});
            if let Some(id) = &call.correlation_id {
                again["correlation_id"] = json!(id);
            }
            assert_eq!(CONTRACT.envelope(again).as_ref(), Ok(call));
            CONTRACT
                .command::<<Memory as Service>::Command>(&call.op, &call.arguments)
                .expect("what fits the contract is a command");
        }
        refused.map_or(calls.len() as Kind, |error| kind(&error.message))
    }
    Target { name: "control_payload", words: WORDS, run }
}

/// What a model answers.
pub fn tool_call() -> Target {
    const WORDS: &[&str] = &[
        "{\"tool_calls\":[{\"name\":\"file_read\",\"arguments\":{\"path\":\"/\"}}]}",
        "\"tool_calls\":",
        "\"name\":\"file_write\"",
        "\"file_list\"",
        "\"arguments\":{",
        "\"path\":\"a\"",
        "\"content\":\"b\"",
        "\"append\":true",
        "\"max_bytes\":1",
        "\"function\":{}",
        "\"type\":\"tool_use\"",
        "<think>",
        "</think>",
        "```json\n",
        "<tool_call>",
        "[TOOL_CALLS]",
        "\"id\":\"1\"",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        let (thought, rest) = protocol::thoughts(&text);
        assert!(text.ends_with(rest) && thought.is_none_or(|thought| text.contains(thought)));
        match protocol::parse(&text) {
            Ok(call) => {
                assert!(call.id.is_none_or(|id| id.chars().count() <= 128));
                kind(call.tool.name()).wrapping_add(call.tool.path().len() as u64 % 8)
            }
            Err(wrong) => {
                assert!(!wrong.why.is_empty() && wrong.why.len() < 1000, "{}", wrong.why);
                kind(&format!("{} {}", wrong.fault.name(), wrong.why))
            }
        }
    }
    Target { name: "tool_call", words: WORDS, run }
}

/// The tool calls of the game.
pub fn dm_tool() -> Target {
    const WORDS: &[&str] = &[
        "\"name\":\"",
        "\"arguments\":{",
        "read_state_panel",
        "read_hot_pack",
        "roll_dice",
        "write_file",
        "\"path\":\"../x\"",
        "\"campaign\":\"c1\"",
        "\"reason\":\"x\"",
        "\"content\":\"x\"",
    ];
    fn run(input: &[u8]) -> Kind {
        let Ok(call) = serde_json::from_slice::<tools::Call>(input) else { return 0 };
        let mut kinds = 0;
        for role in [Role::Author, Role::Builder, Role::Dm, Role::SaveRead] {
            kinds ^= match tools::admit(role, &call) {
                Ok(tool) => {
                    assert!(tool.name == call.name && tool.roles.contains(&role));
                    kind(tool.name)
                }
                Err(error) => {
                    assert!(error.message.len() < 1000);
                    kind(&error.message)
                }
            };
            tools::changes_campaign(role, &call);
        }
        kinds
    }
    Target { name: "dm_tool", words: WORDS, run }
}

/// What an outside program prints as its answer.
pub fn program_answer() -> Target {
    const WORDS: &[&str] =
        &["{\"error\":", "{\"code\":\"not_found\",\"message\":\"x\"}", "{\"version\":1", "null", "true"];
    fn run(input: &[u8]) -> Kind {
        let operation = CONTRACT.operation("create").unwrap();
        let code = Some(i32::from(input.first() == Some(&b' ')));
        let complaint = String::from_utf8_lossy(&input[..input.len().min(40)]).into_owned();
        match answer(&CONTRACT, operation, ExitStatus { code, signal: None }, input, &complaint) {
            Ok(_) => 1,
            Err(error) => kind(&error.message),
        }
    }
    Target { name: "program_answer", words: WORDS, run }
}

/// Symbols, as anybody writes them.
pub fn symbol() -> Target {
    const WORDS: &[&str] = &[
        "\"id\":\"SYM-1\"",
        "\"facets\":{",
        "\"links\":[\"A\"]",
        "\"linked_patterns\":",
        "\"triad\":\"a,b c\"",
        "\"traits\":[\"validated\"]",
        "\"version\":1",
        "\"invariants\":",
        "\"lnk\":",
    ];
    fn run(input: &[u8]) -> Kind {
        let Ok(value) = serde_json::from_slice::<Value>(input) else { return 0 };
        match Symbol::read(&value) {
            Ok(symbol) => {
                assert_eq!(Symbol::read(&symbol.json()).as_ref(), Ok(&symbol), "the canonical form is its own");
                1 + symbol.links().len() as u64
            }
            Err(error) => kind(&error.message),
        }
    }
    Target { name: "symbol", words: WORDS, run }
}
