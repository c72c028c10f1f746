//! The built-in script. It is read when it is first asked: its patterns take longer to compile than the rest of a host takes
//! to start.

use std::sync::LazyLock;

use async_trait::async_trait;

use super::script::Script;
use super::{AnswerPiece, Model, ModelAnswer, ModelRequest};
use acheron_base::Result;

const NAME: &str = "guide";
const TEXT: &str = include_str!("../../prompts/runtime/guide.ndjson");

pub struct Guide(LazyLock<Result<Script>>);

impl Default for Guide {
    fn default() -> Self {
        Guide(LazyLock::new(|| Script::read(NAME, TEXT)))
    }
}

#[async_trait]
impl Model for Guide {
    fn name(&self) -> String {
        format!("script:{NAME}")
    }

    async fn answer(&self, ask: &ModelRequest, watch: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
        self.0.as_ref().map_err(Clone::clone)?.answer(ask, watch).await
    }

    fn is_billed(&self) -> bool {
        false
    }

    fn resume(&self, said: &[ModelAnswer]) {
        if let Ok(script) = self.0.as_ref() {
            script.resume(said);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_be_read_and_is_called_as_the_script_that_it_is() {
        let guide = Guide::default();
        assert_eq!(guide.0.as_ref().unwrap().name(), guide.name());
    }
}
