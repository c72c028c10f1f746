//! The speaker of a conversation: the agent's model, or without one a speaker that only looks pages up. `state` uses it.

use async_trait::async_trait;

use crate::agent::ask::PaidModel;
use crate::agent::own_model::OpenModel;
use crate::model::{Message, ModelRequest};
use acheron_base::Result;
use acheron_recall::block::injected;
use acheron_recall::links::links;
use acheron_recall::message::Role;
use acheron_recall::page::{fold, title};
use acheron_recall::resolve::spellings;

/// Whatever can answer.
#[async_trait]
pub trait Speak: Send + Sync {
    /// Whether a model answers now; without one only pages are looked up.
    fn has_model(&self) -> Result<bool>;

    async fn speak(&self, said: &[(Role, String)]) -> Result<String>;
}

/// The agent's current model; the offline speaker where it has none.
pub struct RecallModelSpeaker {
    /// The longest answer that is asked for, in tokens.
    longest: Box<dyn Fn() -> u32 + Send + Sync>,
    open: Box<OpenModel>,
}

impl RecallModelSpeaker {
    pub fn new(
        longest: impl Fn() -> u32 + Send + Sync + 'static,
        open: impl Fn() -> Result<Option<PaidModel>> + Send + Sync + 'static,
    ) -> RecallModelSpeaker {
        RecallModelSpeaker { longest: Box::new(longest), open: Box::new(open) }
    }
}

#[async_trait]
impl Speak for RecallModelSpeaker {
    fn has_model(&self) -> Result<bool> {
        Ok((self.open)()?.is_some())
    }

    async fn speak(&self, said: &[(Role, String)]) -> Result<String> {
        match (self.open)()? {
            Some(model) => Ok(model.answer(ask(said, (self.longest)())).await?.text),
            None => RecallOfflineSpeaker.speak(said).await,
        }
    }
}

fn ask(said: &[(Role, String)], max_tokens: u32) -> ModelRequest {
    let system = said.iter().filter(|(role, _)| *role == Role::System).map(|(_, text)| text.as_str());
    let messages = said.iter().filter_map(|(role, text)| match role {
        Role::User => Some(Message::user(text.as_str())),
        Role::Assistant => Some(Message::assistant(text.as_str())),
        Role::System | Role::AssistantReasoning => None,
    });
    ModelRequest {
        system: system.collect::<Vec<_>>().join("\n\n"),
        messages: messages.collect(),
        max_tokens,
        ..ModelRequest::default()
    }
}

/// Recalls the page that a question names and repeats its text, for a host without a model.
pub struct RecallOfflineSpeaker;

#[async_trait]
impl Speak for RecallOfflineSpeaker {
    fn has_model(&self) -> Result<bool> {
        Ok(false)
    }

    async fn speak(&self, said: &[(Role, String)]) -> Result<String> {
        Ok(guided(said))
    }
}

fn guided(said: &[(Role, String)]) -> String {
    let asked = said.iter().rposition(|(role, text)| *role == Role::User && !injected(text));
    let Some(asked) = asked else { return "Ask me about a page of the wiki.".to_owned() };
    let shown: Vec<&str> =
        said[asked + 1..].iter().filter(|(_, text)| injected(text)).map(|it| it.1.as_str()).collect();
    if let Some(block) = shown.iter().rfind(|text| text.starts_with("<memory ")) {
        let inner = block.lines().skip(1).take_while(|line| *line != "</memory>");
        return inner.collect::<Vec<_>>().join("\n").trim().to_owned();
    }
    if !shown.is_empty() {
        return "The wiki does not tell me.".to_owned();
    }
    let question = fold(&said[asked].1);
    let known = said[..asked].iter().filter(|(role, _)| *role == Role::System).flat_map(|(_, text)| links("", text));
    // The longest title is the one that is meant: `River boat`, not `River`.
    let named = known.filter_map(|link| {
        let bare = *spellings(&link.target).last()?;
        question.contains(&fold(title(bare))).then(|| bare.to_owned())
    });
    match named.max_by_key(String::len) {
        Some(name) => format!("<recall>{name}</recall>"),
        None => "I have no model, and can only show you pages that the index names.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_recalls_what_is_named_and_repeats_it() {
        let said = |parts: &[(Role, &str)]| {
            guided(&parts.iter().map(|(role, text)| (*role, (*text).to_owned())).collect::<Vec<_>>())
        };
        let system = (Role::System, "Start: [[River]], [[River boat|boat]], [[Obol]]");
        let asked = (Role::User, "what of the river BOAT?");
        assert_eq!(said(&[system, asked]), "<recall>River boat</recall>");
        let block = (Role::User, "<memory name=\"River boat\">\nIt is small.\n</memory>");
        assert_eq!(said(&[system, asked, (Role::Assistant, "x"), block]), "It is small.");
        assert_eq!(said(&[system, asked, (Role::User, "<cathedral>\nno\n</cathedral>")]), "The wiki does not tell me.");
        assert!(said(&[system, (Role::User, "hello")]).starts_with("I have no model"));
        assert!(said(&[]).starts_with("Ask me"));
    }
}
