//! A model that only programs behind the gateway can ask, because the agents of this host do not speak its language.

use async_trait::async_trait;

use super::{AnswerPiece, Model, ModelAnswer, ModelRequest};
use acheron_base::{Error, Result};

/// Refuses whatever an agent of this host asks it.
pub struct GatewayOnly(pub String);

#[async_trait]
impl Model for GatewayOnly {
    fn name(&self) -> String {
        format!("gemini:{}", self.0)
    }

    async fn answer(&self, _: &ModelRequest, _: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
        Err(Error::unavailable(
            "a model of kind gemini answers only programs that ask it through the gateway; for the agent itself name \
             another kind, such as openai with the base_url https://generativelanguage.googleapis.com/v1beta/openai",
        ))
    }

    fn is_billed(&self) -> bool {
        false
    }
}
