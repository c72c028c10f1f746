//! The service of CONTRIBUTING.md, so that the example there compiles and works.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use acheron::contract::Operation;
use acheron::service::{Cx, Service};
use acheron_base::{Error, Result};

/// Repeats what it is told. It has no state, so several calls may run at once.
pub struct Parrot;

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Repeats a text.
    Echo {
        /// The text to repeat.
        text: String,
    },
}

#[derive(Serialize, JsonSchema)]
pub struct Repeated {
    /// The same text.
    text: String,
}

#[async_trait]
impl Service for Parrot {
    const NAME: &'static str = "parrot";
    const ABOUT: &'static str = "Repeats what it is told.";
    type Command = Command;
    type Output = Repeated;

    fn operations() -> Vec<Operation> {
        vec![Operation::read("echo").example(json!({"text": "land ahoy"})).idempotent()]
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Repeated> {
        let Command::Echo { text } = command;
        if text.is_empty() {
            return Err(Error::invalid("there is nothing to repeat: `text` is empty"));
        }
        cx.log("repeating");
        Ok(Repeated { text })
    }
}
