//! What an agent tells its client: pieces of thoughts and messages, calls of tools, requests for permission.

use serde_json::{Value, json};

/// An update of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum AcpUpdate {
    UserMessage(String),
    Thought(String),
    Message(String),
    Call(AcpToolCall),
    /// A call has changed; `text` is its result.
    CallState {
        id: String,
        state: CallState,
        text: Option<String>,
    },
}

/// A call of a tool, as a client shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct AcpToolCall {
    pub id: String,
    pub title: String,
    /// `read`, `edit`, `execute`, … as the protocol names them.
    pub kind: &'static str,
    pub state: CallState,
    /// The files that it is about, by their absolute paths on this machine.
    pub locations: Vec<String>,
    /// The new text of a file that it writes.
    pub new_text: Option<(String, String)>,
    pub input: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallState {
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl CallState {
    pub fn word(self) -> &'static str {
        match self {
            CallState::Pending => "pending",
            CallState::InProgress => "in_progress",
            CallState::Completed => "completed",
            CallState::Failed => "failed",
        }
    }
}

/// A question that the client puts to its user.
#[derive(Clone, Debug, PartialEq)]
pub struct AcpPermission {
    pub call: AcpToolCall,
    /// What can be answered: an id, a name for people, and the kind (`allow_once`, `allow_always`, `reject_once`).
    pub options: Vec<(String, String, &'static str)>,
}

impl AcpToolCall {
    fn fields(&self) -> Value {
        let locations: Vec<Value> = self.locations.iter().map(|path| json!({ "path": path })).collect();
        let mut fields = json!({
            "toolCallId": self.id, "title": self.title, "kind": self.kind, "status": self.state.word(),
            "locations": locations, "rawInput": self.input,
        });
        if let Some((path, text)) = &self.new_text {
            fields["content"] = json!([{ "type": "diff", "path": path, "oldText": null, "newText": text }]);
        }
        fields
    }
}

impl AcpUpdate {
    /// The field `update` of `session/update`.
    pub fn value(&self) -> Value {
        let chunk =
            |kind: &str, text: &str| json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } });
        match self {
            AcpUpdate::UserMessage(text) => chunk("user_message_chunk", text),
            AcpUpdate::Thought(text) => chunk("agent_thought_chunk", text),
            AcpUpdate::Message(text) => chunk("agent_message_chunk", text),
            AcpUpdate::Call(call) => {
                let mut update = call.fields();
                update["sessionUpdate"] = "tool_call".into();
                update
            }
            AcpUpdate::CallState { id, state, text } => {
                let mut update =
                    json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": state.word() });
                if let Some(text) = text {
                    update["content"] = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
                }
                update
            }
        }
    }
}

impl AcpPermission {
    /// The parameters of `session/request_permission`.
    pub fn params(&self, session: &str) -> Value {
        let options: Vec<Value> =
            self.options.iter().map(|(id, name, kind)| json!({ "optionId": id, "name": name, "kind": kind })).collect();
        json!({ "sessionId": session, "toolCall": self.call.fields(), "options": options })
    }
}
