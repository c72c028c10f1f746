//! The steps of a turn as an editor shows them. Pure.

use acheron_acp::{AcpToolCall, AcpUpdate, CallState, one_line};
use serde_json::Value;

/// The longest title of a call.
const TITLE: usize = 200;

/// The update for one line of `steps.ndjson`. `real` finds the path on this machine of a path in the tree.
pub fn update(step: &Value, job: &str, real: &dyn Fn(&str) -> Option<String>) -> Option<AcpUpdate> {
    let text = || step["text"].as_str().unwrap_or_default().to_owned();
    match step["step"].as_str()? {
        "thought" => Some(AcpUpdate::Thought(text())),
        "text" => Some(AcpUpdate::Message(text())),
        "said" => Some(AcpUpdate::Message(text() + "\n\n")),
        "call" => Some(AcpUpdate::Call(call(step, job, real))),
        "outcome" => {
            let state = if step["ok"] == true { CallState::Completed } else { CallState::Failed };
            Some(AcpUpdate::CallState { id: format!("{job}/{}", step["call"]), state, text: Some(text()) })
        }
        _ => None,
    }
}

fn call(step: &Value, job: &str, real: &dyn Fn(&str) -> Option<String>) -> AcpToolCall {
    let (tool, arguments) = (step["tool"].as_str().unwrap_or_default(), &step["arguments"]);
    let path = arguments["path"].as_str().unwrap_or_default();
    let path = format!("/{}", path.trim_start_matches("./").trim_start_matches('/'));
    let found = real(&path);
    let operation = operation(&path);
    let (title, kind) = match (tool, &operation) {
        ("file_read", _) => (format!("Read {path}"), "read"),
        ("file_list", _) => (format!("List {path}"), "read"),
        ("file_write", Some(operation)) => (operation.clone(), "execute"),
        ("file_write", None) => (format!("Write {path}"), "edit"),
        // A tool of a program that is the mind of the agent.
        (other, _) => (other.to_owned(), kind(step["kind"].as_str().unwrap_or_default())),
    };
    let content = arguments["content"].as_str().filter(|_| kind == "edit" && arguments["append"] != true);
    let outside = step["locations"].as_array().into_iter().flatten().filter_map(|at| at.as_str().map(str::to_owned));
    AcpToolCall {
        id: format!("{job}/{}", step["seq"]),
        title: one_line(&title, TITLE),
        kind,
        state: CallState::InProgress,
        locations: found.iter().filter(|_| arguments["path"].is_string()).cloned().chain(outside).collect(),
        new_text: found.zip(content.map(str::to_owned)),
        input: arguments.clone(),
    }
}

/// The operation that a write to this path calls: `search_code.search`.
fn operation(path: &str) -> Option<String> {
    let (service, file) = path.split_once("/control/")?;
    let service = service.rsplit('/').next()?;
    Some(format!("{service}.{}", file.strip_suffix(".json").unwrap_or(file)))
}

/// The word of the protocol; anything else is `other`.
fn kind(word: &str) -> &'static str {
    const KINDS: [&str; 9] = ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode"];
    KINDS.into_iter().find(|kind| *kind == word).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(step: Value) -> Value {
        let real = |path: &str| path.strip_prefix("/projects/p/fs/").map(|rest| format!("/src/{rest}"));
        update(&step, "job-1", &real).map(|update| update.value()).unwrap_or_default()
    }

    #[test]
    fn steps_are_what_an_editor_shows() {
        assert_eq!(shown(json!({"step": "thought", "text": "hm"}))["sessionUpdate"], "agent_thought_chunk");
        assert_eq!(shown(json!({"step": "strange"})), Value::Null);
        let write = |path: &str| json!({"seq": 4, "step": "call", "tool": "file_write", "arguments": {"path": path, "content": "x"}});
        let edit = shown(write("projects/p/fs/a.rs"));
        assert_eq!(
            (&edit["title"], &edit["kind"], &edit["toolCallId"]),
            (&json!("Write /projects/p/fs/a.rs"), &json!("edit"), &json!("job-1/4"))
        );
        assert_eq!(edit["content"], json!([{"type": "diff", "path": "/src/a.rs", "oldText": null, "newText": "x"}]));
        assert_eq!(edit["locations"], json!([{"path": "/src/a.rs"}]));
        let run = shown(write("agents/self/terminal/control/exec.json"));
        assert_eq!((&run["title"], &run["kind"]), (&json!("terminal.exec"), &json!("execute")));
        let outcome = shown(json!({"seq": 5, "step": "outcome", "call": 4, "ok": false, "text": "forbidden: no"}));
        assert_eq!((&outcome["toolCallId"], &outcome["status"]), (&json!("job-1/4"), &json!("failed")));
        let outside = shown(
            json!({"seq": 1, "step": "call", "tool": "Run ls", "kind": "execute", "locations": ["/x"], "arguments": {}}),
        );
        assert_eq!(
            (&outside["title"], &outside["kind"], &outside["locations"]),
            (&json!("Run ls"), &json!("execute"), &json!([{"path": "/x"}]))
        );
    }
}
