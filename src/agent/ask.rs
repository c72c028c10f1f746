//! The one function that asks a model, for turns and for services: [`PaidModel::ask`].
//!
//! It keeps a request within the window, reserves what it may cost before it is sent, counts what every attempt has cost, and
//! settles that afterwards. Only this file can reach the model itself. Used by `agent` and `services`.

use std::sync::Arc;
use std::time::Duration;

use super::budget::Spent;
use super::ledger::{Ledger, RequestCost, Reservation};
use crate::model::{AnswerPiece, Model, ModelAnswer, ModelRequest, Prices, Usage, tokens};
use acheron_base::{Code, Error, Result};
use acheron_store::{Tx, Written};

/// The shortest answer, in tokens, for which a model is asked.
const LEAST_ANSWER: u32 = 64;

/// A model that can only be asked by somebody who pays.
#[derive(Clone)]
pub struct OpenedModel(Arc<dyn Model>);

impl OpenedModel {
    pub fn new(model: Arc<dyn Model>) -> OpenedModel {
        OpenedModel(model)
    }

    /// The name in transcripts and in `status.json`.
    pub fn name(&self) -> String {
        self.0.name()
    }

    /// The answers of an interrupted turn that continues after a restart.
    pub fn resume(&self, said: &[String]) {
        self.0.resume(said);
    }
}

/// A model, and who pays for it.
#[derive(Clone)]
pub struct PaidModel {
    pub model: OpenedModel,
    pub prices: Prices,
    /// The context window in tokens.
    pub window: u64,
    pub ledger: Ledger,
    /// The name of the payer in the ledger.
    pub payer: String,
}

/// An answer that is not charged yet. Dropped, it is charged without waiting for the disk.
pub struct PaidAnswer {
    pub said: ModelAnswer,
    /// The time from the request to the answer.
    pub ms: u64,
    reservation: Reservation,
}

impl PaidAnswer {
    /// Charges it in one commit with what `also` writes.
    pub fn settle(self, also: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static) -> (ModelAnswer, Written<()>) {
        (self.said, self.reservation.settle(self.ms, also))
    }
}

impl PaidModel {
    /// The longest prompt and the longest answer, in tokens, that go into the window together.
    pub fn room(&self, longest_answer: u32) -> (u64, u32) {
        let answer = u64::from(longest_answer).min(self.window / 4);
        (self.window - answer, answer as u32)
    }

    /// Asks once, and charges the payer.
    pub async fn answer(&self, request: ModelRequest) -> Result<ModelAnswer> {
        let (said, charged) = self.ask(request, &mut |_| ()).await?.settle(|_| Ok(()));
        charged.await?;
        Ok(said)
    }

    /// Asks once. `watch` receives the answer while it is generated. Dropping the future cancels the request, which has then
    /// cost what was sent and received.
    pub async fn ask(
        &self,
        mut request: ModelRequest,
        watch: &mut (dyn FnMut(AnswerPiece) + Send),
    ) -> Result<PaidAnswer> {
        let input = self.input(&request).await?;
        let room = self.window.saturating_sub(input);
        let least = LEAST_ANSWER.min(request.max_tokens);
        if room < least.into() {
            return Err(Error::too_large(format!(
                "the prompt has {input} tokens, and the model's window has {}: shorten the prompt, or raise \
                 context_tokens of the model",
                self.window
            )));
        }
        let output = request.max_tokens.min(u32::try_from(room).unwrap_or(u32::MAX));
        let wanted = RequestCost { input, output, least_output: least, prices: self.prices };
        let mut meter = Meter::begin(self.ledger.reserve(&self.payer, &wanted)?, wanted);
        request.max_tokens = meter.reservation.output();
        let answer = {
            let mut count = |piece: AnswerPiece| {
                meter.count(&piece);
                watch(piece);
            };
            tokio::select! {
                answer = self.model.0.answer(&request, &mut count) => answer,
                () = self.seconds_used_up() => {
                    Err(Error::budget_exceeded(format!("{} has used up its seconds", self.payer)))
                }
            }
        };
        meter.end(answer)
    }

    /// The tokens of a request. They are counted only where the figure decides about something.
    async fn input(&self, request: &ModelRequest) -> Result<u64> {
        let left = self.ledger.left(&self.payer);
        let fits = request.at_most() + u64::from(request.max_tokens) <= self.window;
        match fits && left.tokens.is_none() && left.money.is_none() {
            true => Ok(request.estimated()),
            false => request.counted().await,
        }
    }

    /// Waits until the seconds of the payer are used up, by whichever requests.
    async fn seconds_used_up(&self) {
        loop {
            match self.ledger.ms_left(&self.payer) {
                None => std::future::pending::<()>().await,
                Some(0) => return,
                Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            }
        }
    }
}

/// Counts what a request costs while it is answered.
struct Meter {
    reservation: Reservation,
    wanted: RequestCost,
    /// The answers that were cut off and asked for again: their servers have counted them too.
    void: Spent,
    /// Whether the server has begun to answer, and the tokens that have come.
    begun: bool,
    given: u64,
}

impl Meter {
    fn begin(reservation: Reservation, wanted: RequestCost) -> Meter {
        let mut meter = Meter { reservation, wanted, void: Spent::default(), begun: false, given: 0 };
        meter.note(meter.estimated());
        meter
    }

    fn count(&mut self, piece: &AnswerPiece) {
        match piece {
            AnswerPiece::Text(text) | AnswerPiece::Thought(text) => {
                (self.begun, self.given) = (true, self.given + tokens(text));
            }
            AnswerPiece::Again => {
                self.void = self.void.plus(&self.estimated());
                (self.begun, self.given) = (false, 0);
            }
        }
        self.note(self.estimated());
    }

    /// Notes what this answer has cost, beside those before it.
    fn note(&mut self, answer: Spent) {
        let all = self.void.plus(&answer);
        self.reservation.note(all.rounds, all.usage, all.money);
    }

    /// An answer of which the server has not said what it costs.
    fn estimated(&self) -> Spent {
        self.priced(Usage { input: self.wanted.input, output: self.given.min(self.wanted.output.into()) })
    }

    fn priced(&self, usage: Usage) -> Spent {
        Spent { rounds: 1, usage, ms: 0, money: self.wanted.prices.cost(usage) }
    }

    fn end(mut self, answer: Result<ModelAnswer>) -> Result<PaidAnswer> {
        match answer {
            Ok(said) => {
                self.note(self.priced(said.usage));
                Ok(PaidAnswer { said, ms: self.reservation.ms(), reservation: self.reservation })
            }
            Err(error) => {
                // A server that refuses has answered nothing, and counts nothing.
                if !self.begun && error.code != Code::BudgetExceeded {
                    self.note(Spent::default());
                }
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests;
