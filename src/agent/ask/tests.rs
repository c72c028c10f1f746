use std::time::Duration;

use async_trait::async_trait;

use super::*;
use crate::agent::budget::BudgetLimits;
use crate::agent::test_paid::paid;
use crate::model::Message;

/// Answers after pieces; an empty last piece is a failure.
struct Piecewise(Vec<AnswerPiece>, Option<Usage>);

#[async_trait]
impl Model for Piecewise {
    fn name(&self) -> String {
        "piecewise".into()
    }

    async fn answer(&self, ask: &ModelRequest, watch: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
        self.0.iter().cloned().for_each(watch);
        match self.1 {
            Some(usage) => Ok(ModelAnswer { text: ask.max_tokens.to_string(), usage, ..ModelAnswer::default() }),
            None => Err(Error::provider("the server is gone")),
        }
    }
}

fn model(pieces: &[AnswerPiece], usage: Option<Usage>) -> PaidModel {
    paid(Arc::new(Piecewise(pieces.to_vec(), usage)))
}

fn request(bytes: usize, max_tokens: u32) -> ModelRequest {
    ModelRequest {
        system: String::new(),
        messages: vec![Message::user("word ".repeat(bytes / 5))],
        max_tokens,
        ..ModelRequest::default()
    }
}

fn text(text: &str) -> AnswerPiece {
    AnswerPiece::Text(text.to_owned())
}

#[tokio::test]
async fn an_answer_that_was_cut_off_and_asked_for_again_is_paid_twice() {
    let usage = Usage::new(7, 5);
    let model = model(&[text("half of"), AnswerPiece::Again, text("whole")], Some(usage));
    model.answer(request(30, 100)).await.unwrap();
    let spent = model.ledger.spent(&model.payer);
    assert_eq!(spent.rounds, 2);
    assert!(spent.usage.input > 7 && spent.usage.output > 5, "{spent:?}");
}

#[tokio::test]
async fn a_server_that_refuses_costs_nothing_and_one_that_breaks_off_costs_what_it_said() {
    let refused = model(&[], None);
    refused.answer(request(30, 100)).await.unwrap_err();
    assert_eq!(refused.ledger.spent(&refused.payer).usage, Usage::default());
    let broken = model(&[text("some words")], None);
    broken.answer(request(30, 100)).await.unwrap_err();
    let spent = broken.ledger.spent(&broken.payer);
    assert!(spent.rounds == 1 && spent.usage.input > 0 && spent.usage.output > 0, "{spent:?}");
}

#[tokio::test]
async fn prompt_and_answer_go_into_the_window_together() {
    let mut model = model(&[], Some(Usage::default()));
    model.window = 4096;
    let said = model.answer(request(5_000, 4096)).await.unwrap().text.parse::<u64>().unwrap();
    let counted = request(5_000, 0).counted().await.unwrap();
    assert!(said < 4096 && said + counted == 4096, "{said} and {counted}");
    let refused = model.answer(request(60_000, 4096)).await.unwrap_err();
    assert!(refused.message.contains("the model's window has 4096"), "{refused}");
}

#[tokio::test]
async fn a_request_that_is_given_up_has_cost_what_was_sent() {
    struct Silent;
    #[async_trait]
    impl Model for Silent {
        fn name(&self) -> String {
            "silent".into()
        }

        async fn answer(&self, _: &ModelRequest, _: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
            std::future::pending().await
        }
    }
    let model = paid(Arc::new(Silent));
    let asked = model.answer(request(30, 100));
    assert!(tokio::time::timeout(Duration::from_millis(1), asked).await.is_err());
    let spent = model.ledger.spent(&model.payer);
    assert!(spent.rounds == 1 && spent.usage.input > 0 && spent.usage.output == 0, "{spent:?}");
    model.ledger.change(&model.payer, |terms| {
        terms.limits = BudgetLimits { seconds: Some(0), rounds: Some(9), ..BudgetLimits::default() };
    });
    let over = model.answer(request(30, 100)).await.unwrap_err();
    assert!(over.message.starts_with("ada has used up its seconds"), "{over}");
}

#[tokio::test]
async fn an_answer_that_was_cut_goes_on_where_it_ended() {
    /// Says one letter of its words for each request, and is cut before the last.
    struct Cutting(parking_lot::Mutex<Vec<ModelRequest>>);
    #[async_trait]
    impl Model for Cutting {
        fn name(&self) -> String {
            "cutting".into()
        }

        async fn answer(&self, ask: &ModelRequest, watch: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
            let mut asked = self.0.lock();
            let text = ["{\"a\": ", "1, \"b\"", ": 2}"][asked.len()].to_owned();
            asked.push(ask.clone());
            watch(AnswerPiece::Text(text.clone()));
            Ok(ModelAnswer { text, cut: asked.len() < 3, usage: Usage::new(7, 5), ..ModelAnswer::default() })
        }
    }
    let model = Arc::new(Cutting(Default::default()));
    let paying = paid(model.clone());
    let said = paying.answer(request(30, 100)).await.unwrap();
    assert_eq!((said.text.as_str(), said.cut, said.usage), ("{\"a\": 1, \"b\": 2}", false, Usage::new(21, 15)));
    let spent = paying.ledger.spent(&paying.payer);
    assert_eq!((spent.rounds, spent.usage), (3, Usage::new(21, 15)), "each part is a request");
    let asked = model.0.lock();
    let last: Vec<&str> = asked[2].messages.iter().skip(1).map(|message| message.text.as_str()).collect();
    assert_eq!(last, ["{\"a\": 1, \"b\"", GO_ON]);
}
