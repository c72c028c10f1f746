//! The one function that asks a model, for turns and for services: [`PaidModel::ask`].
//!
//! It keeps a request within the window, reserves what it may cost before it is sent, counts what every attempt has cost, and
//! settles that afterwards. Only this file can reach the model itself. Used by `agent` and `services`.

use std::sync::Arc;

use super::budget::Spent;
use super::ledger::{Ledger, RequestCost, Reservation};
use crate::model::{AnswerPiece, Message, Model, ModelAnswer, ModelRequest, Prices, Usage, tokens};
use acheron_base::{Code, Error, Result};
use acheron_store::{Tx, Written};

/// The shortest answer, in tokens, for which a model is asked.
const LEAST_ANSWER: u32 = 64;

/// How often an answer that was cut at its token limit may go on.
const CONTINUATIONS: usize = 3;
const GO_ON: &str =
    "Your answer was cut at its token limit. Go on exactly where it ends: repeat nothing, and explain nothing.";

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
    pub fn resume(&self, said: &[ModelAnswer]) {
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
    /// The time from the request to the answer, and that of its last part, which is not charged yet.
    pub ms: u64,
    last_ms: u64,
    reservation: Reservation,
}

impl PaidAnswer {
    /// This answer and the rest of it. The first part is charged now.
    fn joined(self, rest: PaidAnswer) -> PaidAnswer {
        let (PaidAnswer { mut said, ms, last_ms, reservation }, next) = (self, rest.said);
        drop(reservation.settle(last_ms, |_| Ok(()))); // on the disk before the rest, which stands behind it in the queue
        said.text.push_str(&next.text);
        said.thoughts = match (said.thoughts, next.thoughts) {
            (Some(first), Some(next)) => Some(format!("{first}\n{next}")),
            (first, next) => first.or(next),
        };
        (said.cut, said.native_call) = (next.cut, next.native_call);
        // What was kept of each part is not the whole.
        (said.calls, said.kept) = (next.calls, None);
        said.usage = said.usage.plus(next.usage);
        PaidAnswer { said, ms: ms + rest.ms, last_ms: rest.last_ms, reservation: rest.reservation }
    }

    /// Charges it in one commit with what `also` writes.
    pub fn settle(self, also: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static) -> (ModelAnswer, Written<()>) {
        (self.said, self.reservation.settle(self.last_ms, also))
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

    /// Asks, and lets an answer that was cut at its token limit go on, at most [`CONTINUATIONS`] times. `watch` receives the
    /// answer while it is generated. Dropping the future cancels the request, which has then cost what was sent and received.
    pub async fn ask(
        &self,
        mut request: ModelRequest,
        watch: &mut (dyn FnMut(AnswerPiece) + Send),
    ) -> Result<PaidAnswer> {
        let mut answer = self.ask_once(request.clone(), watch).await?;
        for _ in 0..CONTINUATIONS {
            if !answer.said.cut || answer.said.native_call || answer.said.text.trim().is_empty() {
                break;
            }
            request.messages.push(Message::assistant(answer.said.text.as_str()));
            request.messages.push(Message::user(GO_ON));
            // What has come so far is of use without the rest, which may be too long or too dear.
            let Ok(rest) = self.ask_once(request.clone(), watch).await else { break };
            answer = answer.joined(rest);
            request.messages.truncate(request.messages.len() - 2);
        }
        Ok(answer)
    }

    async fn ask_once(
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
        let outlives_crash = self.model.0.is_billed();
        let wanted = RequestCost { input, output, least_output: least, prices: self.prices, outlives_crash };
        let mut meter = Meter::begin(self.ledger.reserve(&self.payer, &wanted)?, wanted);
        request.max_tokens = meter.reservation.output();
        let answer = {
            let mut count = |piece: AnswerPiece| {
                meter.count(&piece);
                watch(piece);
            };
            tokio::select! {
                answer = self.model.0.answer(&request, &mut count) => answer,
                () = self.ledger.seconds_used_up(&self.payer) => {
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
            AnswerPiece::Text(text) | AnswerPiece::Thought(text) | AnswerPiece::Call(text) => {
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
        self.priced(Usage::new(self.wanted.input, self.given.min(self.wanted.output.into())))
    }

    fn priced(&self, usage: Usage) -> Spent {
        Spent { rounds: 1, usage, ms: 0, money: self.wanted.prices.cost(usage) }
    }

    fn end(mut self, answer: Result<ModelAnswer>) -> Result<PaidAnswer> {
        match answer {
            Ok(said) => {
                self.note(self.priced(said.usage));
                let ms = self.reservation.ms();
                Ok(PaidAnswer { said, ms, last_ms: ms, reservation: self.reservation })
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
