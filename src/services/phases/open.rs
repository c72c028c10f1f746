//! Putting the loop of one agent together.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::history::Histories;
use super::run::{Engine, ReadDefaults, TokenBudget};
use super::service::Phases;
use super::speaker::{OfflineSpeaker, Question, Speaker, SpokenReply};
use crate::agent::own_model::OwnModel;
use crate::model::{Message, ModelRequest};
use crate::services::prompts::Library;
use crate::services::symbols::store::SymbolStore;
use acheron_base::{Clock, Random, Result, Room};
use acheron_store::Store;

/// Where a key for histories may be given instead of a file.
pub const KEY_VARIABLE: &str = "ACHERON_HISTORY_KEY";
/// The longest answer that is asked of a model.
const ANSWER: u32 = 4096;

/// The parts of an agent's loop.
pub struct PhasesParts {
    pub library: Arc<Library>,
    pub symbol_store: Arc<SymbolStore>,
    pub speaker: Arc<dyn Speaker>,
    pub store: Store,
    pub room: Arc<Room>,
    pub clock: Clock,
    /// For keys.
    pub random: Random,
    /// The token budget of a run that begins now.
    pub token_budget: ReadTokenBudget,
    /// The symbols and agents with which a run begins now.
    pub defaults: ReadDefaults,
}

/// Reads the token budget of a run that begins now.
pub type ReadTokenBudget = Box<dyn Fn() -> Result<TokenBudget> + Send + Sync>;

/// Asks the model of an agent. Where that is the guide, the offline speaker answers.
pub fn speaker_of(own: Arc<OwnModel>) -> Arc<dyn Speaker> {
    Arc::new(ModelSpeaker(own))
}

/// The token budget that the model and the limits of an agent leave.
pub fn token_budget_of(own: Arc<OwnModel>) -> ReadTokenBudget {
    Box::new(move || {
        let (window, run) = (own.described()?.context_tokens as usize, own.limits()?.tokens as usize);
        Ok(TokenBudget { prompt: beside_answer(window), run })
    })
}

/// The share of a model's window that a prompt may have; the rest is for the answer.
fn beside_answer(context_tokens: usize) -> usize {
    context_tokens.saturating_sub((ANSWER as usize).min(context_tokens / 4))
}

/// Opens the phases of `agent`, whose histories lie under `home`.
pub fn open(home: &Path, agent: &str, parts: PhasesParts) -> Result<Phases> {
    let given = std::env::var(KEY_VARIABLE).ok();
    let random = parts.random;
    let random = Arc::new(move |bytes: &mut [u8]| random.fill(bytes));
    let dir = home.join("phases");
    let histories = Histories::open(&dir, agent, parts.store, given.as_deref(), random, Some(parts.room))?;
    Phases::new(Engine {
        library: parts.library,
        symbol_store: parts.symbol_store,
        histories: Arc::new(histories),
        speaker: parts.speaker,
        defaults: parts.defaults,
        clock: parts.clock,
        token_budget: parts.token_budget,
    })
}

/// The agent's model as it is now, asked with the whole prompt as one message; the offline speaker where there is none.
struct ModelSpeaker(Arc<OwnModel>);

#[async_trait]
impl Speaker for ModelSpeaker {
    async fn speak(&self, question: &Question) -> Result<SpokenReply> {
        let Some(model) = self.0.open()? else { return OfflineSpeaker.speak(question).await };
        let messages = vec![Message::user(question.prompt.clone())];
        let ask = ModelRequest { system: String::new(), messages, max_tokens: ANSWER, ..ModelRequest::default() };
        let said = model.answer(ask).await?;
        Ok(SpokenReply { text: said.text, cut: said.cut })
    }
}
