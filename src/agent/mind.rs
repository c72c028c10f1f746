//! Agents whose mind is a program: it runs whole turns itself, where otherwise the loop of a turn asks a model for one call after
//! another. The host implements it; used by turns.

use std::sync::Arc;

use async_trait::async_trait;

use super::chat_session::ChatSession;
use crate::jobs::Job;
use acheron_base::Result;

/// A program that runs turns.
#[async_trait]
pub trait Mind: Send + Sync {
    /// Runs a turn; returns the reply. What the program does meanwhile is added to the steps of the job. Dropping the future
    /// cancels the turn.
    async fn turn(&self, turn: MindTurn) -> Result<String>;

    /// For listings.
    fn name(&self) -> String;
}

/// One turn.
pub struct MindTurn {
    pub job: Arc<Job>,
    /// The conversation that it belongs to.
    pub session: Option<ChatSession>,
    pub input: String,
    /// What was said in this conversation before, for a program that was started anew.
    pub earlier: Vec<(String, String)>,
}
