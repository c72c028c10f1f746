//! Answers that are calls, though not written as the contract asks.

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::*;
use super::World;
use crate::agent::ask::OpenedModel;
use crate::agent::runtime::Settings;
use crate::model::{AnswerPiece, Model, ModelAnswer, ModelRequest};

/// Answers from a list, and keeps the last message of every request.
struct Listing(Mutex<Vec<String>>, Mutex<Vec<String>>);

#[async_trait]
impl Model for Listing {
    fn name(&self) -> String {
        "listing".into()
    }

    async fn answer(&self, ask: &ModelRequest, _: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
        self.1.lock().push(ask.last().to_owned());
        Ok(ModelAnswer { text: self.0.lock().remove(0), ..ModelAnswer::default() })
    }
}

fn settings(answers: &[&str], strict: bool) -> (Arc<Listing>, Settings) {
    let answers = answers.iter().map(|answer| (*answer).to_owned()).collect();
    let model = Arc::new(Listing(Mutex::new(answers), Mutex::default()));
    (model.clone(), Settings { model: Some(OpenedModel::new(model)), strict, ..Settings::default() })
}

const REPLY: &str = r#"{"path":"agents/self/chat/control/reply","content":"done"}"#;

#[tokio::test]
async fn a_call_in_another_form_is_performed_told_once_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let fenced = "First I look.\n```json\n{\"tool_calls\":[{\"name\":\"file_list\",\"arguments\":{}}]}\n```";
    let bare = r#"{"name":"file_list","arguments":{}}"#;
    let reply = json!({"function": {"name": "file_write", "arguments": REPLY}}).to_string();
    let (model, settings) = settings(&[fenced, bare, &reply], false);
    let world = World::new(dir.path(), settings);
    assert_eq!(world.say("go").await, "done\n");
    let status: Value = serde_json::from_str(&world.read("chat/status.json").await).unwrap();
    assert_eq!(status["deviations"], 3);
    let heard = model.1.lock();
    let told: Vec<bool> = heard.iter().map(|message| message.contains("your call was understood")).collect();
    assert_eq!(told, [false, true, false]);
}

#[tokio::test]
async fn words_without_a_call_are_in_the_thoughts_and_in_the_error_and_strict_refuses_other_forms() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path(), settings(&["I am", "quite", "All is well."], false).1);
    assert!(world.say("go").await.ends_with("; it said: All is well.\n"));
    assert_eq!(world.read("thoughts/latest.txt").await, "All is well.\n");
    let dir = tempfile::tempdir().unwrap();
    let bare = format!(r#"{{"name":"file_write","arguments":{REPLY}}}"#);
    let world = World::new(dir.path(), settings(&[&bare, &bare, &bare], true).1);
    assert!(world.say("go").await.contains("broke the protocol 3 times in a row: native_call"));
    let status: Value = serde_json::from_str(&world.read("chat/status.json").await).unwrap();
    assert_eq!(status["deviations"], 0);
}
