//! Requests for approval of the agent that an editor talks to, as questions of the editor. They are those of `/approvals`: whoever
//! answers first decides, here or elsewhere.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use acheron_acp::{AcpPermission, AcpToolCall, AcpUpdate, CallState, PermissionAnswer, one_line};
use serde_json::Value;
use tokio::sync::oneshot;

use super::EditorConnection;
use crate::doors::tree::{DoorTree, Wait};
use acheron_base::{Error, Result};

/// The time between two looks while a request waits that is not for this editor.
const AGAIN: Duration = Duration::from_millis(500);
/// The largest page of a request.
const MOST: usize = 1 << 20;

/// The requests of one agent that were not put to the editor yet.
pub struct AgentApprovals {
    tree: DoorTree,
    agent: String,
    asked: HashSet<String>,
}

impl AgentApprovals {
    pub fn of(tree: &DoorTree, agent: &str) -> AgentApprovals {
        AgentApprovals { tree: tree.clone(), agent: agent.to_owned(), asked: HashSet::new() }
    }

    /// Waits for the next one; returns its id. An error if this caller sees none. May be dropped and called again.
    pub async fn next(&mut self) -> Result<String> {
        loop {
            // Shows the oldest request of any agent, so that it says when to look.
            self.tree.read("/approvals/next.json", MOST, Wait::UntilReady).await?;
            let waiting = page(&self.tree, "/approvals/status.json").await?;
            let requests = waiting["requests"].as_array().into_iter().flatten();
            let own = requests.filter(|request| request["agent"].as_str() == Some(&self.agent));
            let new = own.filter_map(|request| request["id"].as_str()).find(|id| !self.asked.contains(*id));
            if let Some(id) = new.map(str::to_owned) {
                self.asked.insert(id.clone());
                return Ok(id);
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

async fn page(tree: &DoorTree, path: &str) -> Result<Value> {
    let bytes = tree.read(path, MOST, Wait::Never).await?;
    serde_json::from_slice(&bytes).map_err(|err| Error::internal(format!("{path}: {err}")))
}

/// Puts a request to the editor, and its answer into the tree. Ends when somebody has decided.
pub async fn ask(connection: Arc<EditorConnection>, session: String, tree: DoorTree, id: String) {
    let Ok(request) = page(&tree, &format!("/approvals/{id}/request.json")).await else { return };
    let (sender, answer) = oneshot::channel();
    let asked = connection.side.lock().ask(&session, &permission(&id, &request));
    let Some((question, message)) = asked else { return };
    connection.questions.lock().insert(question, sender);
    if connection.send(message).await.is_err() {
        return;
    }
    let status = format!("/approvals/{id}/status.json");
    let decided = tokio::select! {
        answer = answer => answer.ok().and_then(|answer| decision(&answer)),
        _ = tree.read(&status, MOST, Wait::UntilReady) => None, // decided elsewhere, or expired
    };
    connection.questions.lock().remove(&question);
    connection.side.lock().withdraw(question);
    let Some(decision) = decided else { return };
    let path = format!("/approvals/{id}/decision");
    if let Err(error) = tree.write(&path, decision.as_bytes(), false, false).await {
        // The user of the editor must not believe that it counts.
        let said = format!("The answer was not taken: {}\n\n", error.message);
        _ = connection.update(&session, &AcpUpdate::Message(said)).await;
    }
}

/// The question of an editor for a request.
fn permission(id: &str, request: &Value) -> AcpPermission {
    let call = AcpToolCall {
        id: format!("approval/{id}"),
        title: one_line(request["summary"].as_str().unwrap_or("the agent asks for approval"), 300),
        kind: "execute",
        state: CallState::Pending,
        locations: Vec::new(),
        new_text: None,
        input: request.clone(),
    };
    let mut options = vec![("allow".to_owned(), "Allow".to_owned(), "allow_once")];
    if request["offers"].to_string().contains("allow always") {
        options.push(("always".to_owned(), "Always allow".to_owned(), "allow_always"));
    }
    options.push(("deny".to_owned(), "Deny".to_owned(), "reject_once"));
    AcpPermission { call, options }
}

/// What is written to `decision`; nothing if the editor did not decide.
fn decision(answer: &PermissionAnswer) -> Option<&'static str> {
    match answer {
        PermissionAnswer::Chosen(option) => match option.as_str() {
            "allow" => Some("allow\n"),
            "always" => Some("allow always\n"),
            _ => Some("deny: the user of the editor said no\n"),
        },
        PermissionAnswer::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn always_is_offered_where_the_request_offers_it() {
        let kinds = |offers: Value| -> Vec<&'static str> {
            permission("a", &json!({"summary": "run\ngit push", "offers": offers}))
                .options
                .iter()
                .map(|it| it.2)
                .collect()
        };
        assert_eq!(kinds(json!({"allow": {}, "allow always": {}})), ["allow_once", "allow_always", "reject_once"]);
        assert_eq!(kinds(json!({"allow": {}})), ["allow_once", "reject_once"]);
        assert_eq!(permission("a", &json!({"summary": "run\ngit push"})).call.title, "run git push");
        assert_eq!(decision(&PermissionAnswer::Cancelled), None);
    }
}
