//! Who tells the story: nobody, a script, or a model. All of them only propose.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use super::turn::Ready;
use super::world::Cartridge;
use crate::error::Result;

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
