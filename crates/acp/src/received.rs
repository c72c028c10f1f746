//! What an agent outside tells: updates, calls of its own tools, and questions. All of it is foreign and bounded here.

use serde_json::Value;

use crate::message::one_line;

/// The longest piece of text that one message brings.
const LONGEST_TEXT: usize = 1 << 20;
/// The longest title, and the longest result of a call.
const TITLE: usize = 300;
const RESULT: usize = 16 << 10;
/// The most files of a call.
const LOCATIONS: usize = 16;

/// An update that matters here; plans, modes and the like do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceivedUpdate {
    Thought(String),
    Message(String),
    /// A call, new or changed: fields that were not sent are empty.
    Call(ReceivedCall),
    Other,
}

/// A call of a tool of the agent outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedCall {
    pub id: String,
    pub title: String,
    pub kind: String,
    /// `pending`, `in_progress`, `completed` or `failed`.
    pub status: String,
    pub locations: Vec<String>,
    /// The text of its result.
    pub text: String,
}

/// One of the answers that an agent offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionOption {
    pub id: String,
    pub name: String,
    pub kind: String,
}

impl ReceivedUpdate {
    /// Reads the field `update` of `session/update`.
    pub fn read(update: &Value) -> ReceivedUpdate {
        let text = || cut(update["content"]["text"].as_str().unwrap_or_default(), LONGEST_TEXT);
        match update["sessionUpdate"].as_str() {
            Some("agent_thought_chunk") => ReceivedUpdate::Thought(text()),
            Some("agent_message_chunk") => ReceivedUpdate::Message(text()),
            Some("tool_call" | "tool_call_update") => ReceivedUpdate::Call(ReceivedCall::read(update)),
            _ => ReceivedUpdate::Other,
        }
    }
}

impl ReceivedCall {
    pub fn read(call: &Value) -> ReceivedCall {
        let word = |key: &str| one_line(call[key].as_str().unwrap_or_default(), TITLE);
        let locations = call["locations"].as_array().into_iter().flatten().take(LOCATIONS);
        let locations = locations.filter_map(|at| at["path"].as_str()).map(|path| one_line(path, 4096));
        let content = call["content"].as_array().into_iter().flatten();
        let mut text = String::new();
        for entry in content {
            match entry["type"].as_str() {
                Some("content") => text.push_str(entry["content"]["text"].as_str().unwrap_or_default()),
                Some("diff") => {
                    let path = one_line(entry["path"].as_str().unwrap_or_default(), 4096);
                    text.push_str(&format!("writes {path}\n"));
                }
                _ => (),
            }
            if text.len() > RESULT {
                break;
            }
        }
        ReceivedCall {
            id: word("toolCallId"),
            title: word("title"),
            kind: word("kind"),
            status: word("status"),
            locations: locations.collect(),
            text: cut(&text, RESULT),
        }
    }
}

/// The options of a question.
pub fn options(params: &Value) -> Vec<PermissionOption> {
    let options = params["options"].as_array().into_iter().flatten().take(16);
    let read = |option: &Value| {
        Some(PermissionOption {
            id: option["optionId"].as_str()?.to_owned(),
            name: one_line(option["name"].as_str().unwrap_or_default(), 100),
            kind: one_line(option["kind"].as_str().unwrap_or_default(), 40),
        })
    };
    options.filter_map(read).collect()
}

/// The option for an answer: the kinds say what an option means, its id and name are the agent's own. `None` if the agent offers
/// nothing of the kind, which is answered as cancelled.
pub fn choose(options: &[PermissionOption], allow: bool) -> Option<&PermissionOption> {
    let kinds = if allow { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
    kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind))
}

/// At most `most` bytes, whole characters.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn updates_are_read_and_bounded() {
        let read = |update: Value| ReceivedUpdate::read(&update);
        let chunk = |kind: &str, text: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
        assert_eq!(read(chunk("agent_message_chunk", "hi")), ReceivedUpdate::Message("hi".into()));
        assert_eq!(read(chunk("plan", "hi")), ReceivedUpdate::Other);
        assert_eq!(read(json!(7)), ReceivedUpdate::Other);
        let ReceivedUpdate::Thought(long) = read(chunk("agent_thought_chunk", &"ä".repeat(LONGEST_TEXT))) else {
            panic!("no thought")
        };
        assert!(long.len() <= LONGEST_TEXT && long.ends_with('ä'));
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Run\nls", "status": "failed",
            "content": [{"type": "diff", "path": "/a"}, {"type": "content", "content": {"text": "no"}}, 7],
            "locations": [{"path": "/a"}, {}]});
        let ReceivedUpdate::Call(call) = read(call) else { panic!("no call") };
        assert_eq!((call.title.as_str(), call.text.as_str(), call.locations.len()), ("Run ls", "writes /a\nno", 1));
    }

    #[test]
    fn an_answer_is_chosen_by_its_kind() {
        let params = json!({"options": [{"optionId": "yolo", "kind": "allow_always"}, {"optionId": "go", "kind": "allow_once"},
            {"optionId": "no", "kind": "reject_once"}, {"kind": "reject_always"}]});
        let options = options(&params);
        assert_eq!(choose(&options, true).map(|option| option.id.as_str()), Some("go"));
        assert_eq!(choose(&options, false).map(|option| option.id.as_str()), Some("no"));
        assert_eq!(choose(&[], false), None);
    }
}
