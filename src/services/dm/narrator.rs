//! Narrators: none, or a model. A narrator only proposes; the rules of `acheron-dm` decide. The service uses it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::agent::ask::PaidModel;
use crate::agent::own_model::OpenModel;
use crate::model::{Message, ModelRequest};
use crate::services::prompts::Library;
use acheron_base::delimited::delimited;
use acheron_base::{Error, Result};
use acheron_dm::brief::Brief;
use acheron_dm::input::Intent;
use acheron_prompts::manifest::{Container, Shape};
use acheron_prompts::output::Output;

#[async_trait]
pub trait Narrator: Send + Sync {
    /// A proposal for this turn, as JSON of [`acheron_dm::proposal::Proposal`]'s shape. `None`: the kernel narrates.
    async fn propose(&self, brief: &Brief) -> Result<Option<Value>>;
}

/// Proposes nothing; the story consists of the kernel's own sentences.
pub struct NoNarrator;

#[async_trait]
impl Narrator for NoNarrator {
    async fn propose(&self, _brief: &Brief) -> Result<Option<Value>> {
        Ok(None)
    }
}

/// A model behind the prompt `dm/narrator`. Its answer is searched for one JSON object; [`acheron_dm::proposal`] decides
/// which fields of it are accepted.
///
/// The model is looked up for every turn; without one, the kernel narrates.
pub struct ModelNarrator {
    open: Box<OpenModel>,
    prompts: Arc<Library>,
    /// How long a turn waits for it, with all that is asked again in that time.
    limit: Duration,
}

impl ModelNarrator {
    pub fn new(
        open: impl Fn() -> Result<Option<PaidModel>> + Send + Sync + 'static,
        prompts: Arc<Library>,
        limit: Duration,
    ) -> ModelNarrator {
        ModelNarrator { open: Box::new(open), prompts, limit }
    }

    /// Asks the model, for as long as a turn waits. A model that is silent until then is not asked again.
    async fn answer(&self, model: &PaidModel, request: ModelRequest) -> Result<String> {
        let asked = tokio::time::timeout(self.limit, model.answer(request)).await;
        let silent = || Error::timeout(format!("no answer within {} s (dm.narrator_seconds)", self.limit.as_secs()));
        Ok(asked.map_err(|_| silent())??.text)
    }

    /// A question about the rules, with the page that answers it.
    async fn explain(&self, model: &PaidModel, brief: &Brief) -> Result<Option<Value>> {
        let params = json!({"page": delimited("page", None, &brief.page), "question": delimited("question", None, &brief.input)});
        let system = self.prompts.render("dm", "rules", &params)?.text;
        let asked = ModelRequest {
            system,
            messages: vec![Message::user(brief.input.clone())],
            max_tokens: 600,
            ..ModelRequest::default()
        };
        Ok(Some(json!({"answer": self.answer(model, asked).await?})))
    }

    fn ask(&self, brief: &Brief) -> Result<ModelRequest> {
        let list = |name: &str, lines: &[String]| {
            delimited(name, None, &if lines.is_empty() { "-".to_owned() } else { lines.join("\n") })
        };
        let snippets: Vec<String> = brief.snippets.iter().map(|own| format!("{} {}", own.from, own.text)).collect();
        let wishes = [format!("kept out of the story, or off stage: {}", brief.lines_veils)];
        let wishes: Vec<String> = wishes.into_iter().chain(brief.preferences.iter().cloned()).collect();
        // Texts of players, worlds and earlier turns are data: each stands between delimiters that it cannot end.
        let params = json!({
            "wishes": list("wishes", &wishes), "invariants": list("laws", &brief.invariants),
            "boot": delimited("campaign", None, &brief.boot), "endings": list("endings", &brief.endings),
            "snippets": list("passages", &snippets), "input": delimited("move", None, &brief.input),
            "indicators": brief.indicators.join(", "),
        });
        let text = self.prompts.render("dm", "narrator", &params)?.text;
        Ok(ModelRequest {
            system: text,
            messages: vec![Message::user(brief.input.clone())],
            max_tokens: 2000,
            ..ModelRequest::default()
        })
    }
}

#[async_trait]
impl Narrator for ModelNarrator {
    async fn propose(&self, brief: &Brief) -> Result<Option<Value>> {
        let Some(model) = (self.open)()? else { return Ok(None) };
        if brief.intent == Intent::Ooc {
            return self.explain(&model, brief).await;
        }
        let said = self.answer(&model, self.ask(brief)?).await?;
        let any = Shape {
            name: "Proposal".into(),
            schema: json!({"type": "object"}),
            container: Container::Object,
            allow_extra_keys: true,
        };
        let output = Output::new(&any).map_err(Error::internal)?;
        match output.parse(&said) {
            Ok(parsed) => Ok(Some(parsed.value)),
            // Prose without an object is no proposal; [`acheron_dm::proposal`] reports it.
            Err(_) => Ok(Some(Value::String("prose".into()))),
        }
    }
}
