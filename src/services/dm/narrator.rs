//! Who tells the story: nobody, a script, or a model. All of them only propose.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};

use super::turn::Ready;
use super::world::Cartridge;
use crate::model::{Message, Model, ModelRequest};
use crate::services::prompts::Library;
use crate::services::prompts::manifest::{Container, Shape};
use crate::services::prompts::output::Output;
use acheron_base::{Error, Result};

/// What a narrator is shown of a turn before it proposes. No hidden file, no secret, no dice.
#[derive(Clone, Debug, Serialize)]
pub struct Brief {
    pub title: String,
    pub boot: String,
    pub input: String,
    pub intent: super::input::Intent,
    pub refs: Vec<String>,
    pub snippets: Vec<super::fetch::Snippet>,
    pub indicators: Vec<String>,
}

pub fn brief(ready: &Ready, input: &str, world: &Cartridge) -> Brief {
    Brief {
        title: world.title.clone(),
        boot: ready.boot.summary(world),
        input: input.to_owned(),
        intent: ready.found.intent,
        refs: ready.refs.clone(),
        snippets: ready.fetched.snippets.clone(),
        indicators: world.indicators.iter().map(|own| format!("{} {}-{}", own.name, own.min, own.max)).collect(),
    }
}

#[async_trait]
pub trait Narrator: Send + Sync {
    /// A proposal for this turn, as JSON of [`super::proposal::Proposal`]'s shape. `None`: the kernel narrates.
    async fn propose(&self, brief: &Brief) -> Result<Option<Value>>;
}

/// Says nothing; the kernel's own sentences are the story.
pub struct Silent;

#[async_trait]
impl Narrator for Silent {
    async fn propose(&self, _brief: &Brief) -> Result<Option<Value>> {
        Ok(None)
    }
}

type Open = dyn Fn() -> Result<Option<Arc<dyn Model>>> + Send + Sync;

/// A model behind the prompt `dm/narrator`. What it says is searched for one JSON object; which fields of that are lawful is
/// the sieve's business.
///
/// The model is looked up for every turn; where there is none, the kernel narrates.
pub struct ByModel {
    open: Box<Open>,
    prompts: Arc<Library>,
}

impl ByModel {
    pub fn new(
        open: impl Fn() -> Result<Option<Arc<dyn Model>>> + Send + Sync + 'static,
        prompts: Arc<Library>,
    ) -> ByModel {
        ByModel { open: Box::new(open), prompts }
    }

    fn ask(&self, brief: &Brief) -> Result<ModelRequest> {
        let list = |lines: Vec<String>| if lines.is_empty() { "-".to_owned() } else { lines.join("\n") };
        let snippets = brief.snippets.iter().map(|own| format!("{} {}", own.from, own.text)).collect();
        let params = json!({
            "boot": brief.boot, "snippets": list(snippets), "input": brief.input, "indicators": brief.indicators.join(", "),
        });
        let text = self.prompts.render("dm", "narrator", &params)?.text;
        Ok(ModelRequest { system: text, messages: vec![Message::user(brief.input.clone())], max_tokens: 2000 })
    }
}

#[async_trait]
impl Narrator for ByModel {
    async fn propose(&self, brief: &Brief) -> Result<Option<Value>> {
        let Some(model) = (self.open)()? else { return Ok(None) };
        let said = model.answer(&self.ask(brief)?, &mut |_| ()).await?;
        let any = Shape {
            name: "Proposal".into(),
            schema: json!({"type": "object"}),
            container: Container::Object,
            allow_extra_keys: true,
        };
        let output = Output::new(&any).map_err(Error::internal)?;
        match output.parse(&said.text) {
            Ok(parsed) => Ok(Some(parsed.value)),
            // Prose without an object is no proposal; the sieve reports it as such.
            Err(_) => Ok(Some(Value::String("prose".into()))),
        }
    }
}
