//! The cost of one request: reserved before it is sent, counted while it is answered, settled in one commit with its line.

use std::sync::Arc;

use serde_json::json;

use super::client::{Totals, fault_of};
use super::request_line::{LoweredAnswer, RequestLine};
use super::request_logs::RequestLog;
use crate::agent::ask::PaidAnswer;
use crate::agent::ledger::{Ledger, RequestCost, Reservation};
use crate::model::{Prices, Usage};
use crate::state::model_requests::{self, RequestRow};
use acheron_base::{Clock, Code, Error, Result};
use acheron_gateway::{Dialect, TokenUsage};
use acheron_http::Secret;
use acheron_store::{Tx, Written};

/// The longest answer that is reserved for a program that names none, in tokens.
pub const USUAL_ANSWER: u32 = 16_384;
/// The shortest answer, in tokens, for which a model is asked.
const LEAST_ANSWER: u32 = 64;
/// The tokens of an answer after which its progress is noted on the disk.
const NOTED_TOKENS: u64 = 256;
/// The part of a body that is kept, in bytes.
const KEPT_BODY: usize = 256 << 10;

/// Where requests of one program are charged and shown.
#[derive(Clone)]
pub struct Books {
    pub agent: String,
    pub ledger: Ledger,
    pub log: Arc<RequestLog>,
    pub clock: Clock,
    pub totals: Arc<Totals>,
}

/// What a request may cost.
pub struct WantedRequest {
    pub line: RequestLine,
    /// The input in tokens.
    pub input: u64,
    /// The longest answer that the program asks for.
    pub max_tokens: Option<u32>,
    pub prices: Prices,
    /// A server counts it: it must not be forgotten in a crash.
    pub billed: bool,
    /// The request, if bodies are kept, and the secret that must not be in it.
    pub kept: Option<(String, Option<Secret>)>,
}

/// One request under way. Dropped before its end, it has cost what was counted: its client is gone.
pub struct RequestAccount {
    books: Books,
    reservation: Option<Reservation>,
    prices: Prices,
    estimated_input: u64,
    line: RequestLine,
    noted: u64,
    kept: Option<(String, Option<Secret>)>,
    answer: Vec<u8>,
}

impl Books {
    /// Reserves what a request may cost, and returns when that is on the disk. The longest answer may be lower than asked for:
    /// the line says so.
    pub async fn reserve(&self, wanted: WantedRequest) -> Result<RequestAccount> {
        let WantedRequest { mut line, input, max_tokens, prices, billed, kept } = wanted;
        let output = max_tokens.unwrap_or(USUAL_ANSWER);
        let least_output = LEAST_ANSWER.min(output);
        let cost = RequestCost { input, output, least_output, prices, outlives_crash: billed };
        let left = self.ledger.left(&self.agent);
        let (id, agent, at_ms) = (line.id.clone(), self.agent.clone(), line.at_ms);
        line.input = input;
        line.money = prices.cost(Usage::new(input, 0));
        let begun = line.text();
        let reserved = self
            .ledger
            .reserve_with(&self.agent, &cost, move |tx| model_requests::begin(tx, &id, &agent, at_ms, &begun));
        let (reservation, written) = match reserved {
            Ok(reserved) => reserved,
            Err(error) => {
                let status = Dialect::named(&line.dialect).map_or(429, |dialect| fault_of(&error).status(dialect));
                self.refuse(line, &error, status);
                return Err(error);
            }
        };
        let limited = left.tokens.is_some() || left.money.is_some();
        let to = reservation.output();
        let lower = max_tokens.map_or(limited, |asked| to < asked);
        line.max_tokens = lower.then_some(LoweredAnswer { from: max_tokens, to });
        let mut account = RequestAccount {
            books: self.clone(),
            reservation: Some(reservation),
            prices,
            estimated_input: input,
            line,
            noted: 0,
            kept,
            answer: Vec::new(),
        };
        account.note(Usage::new(input, 0));
        if let Some(written) = written {
            // Only then may it be sent: what a server counts, the books must have.
            if let Err(error) = written.await {
                account.fail(503, &error.message);
                return Err(error);
            }
        }
        Ok(account)
    }

    /// Writes down a request that was not sent.
    pub fn refuse(&self, mut line: RequestLine, error: &Error, status: u16) {
        line.status = status;
        (line.input, line.money) = (0, 0.0);
        line.error = Some(format!("{}: {}", error.code.name(), error.message));
        line.ms = self.clock.now_ms().saturating_sub(line.at_ms);
        self.totals.add(&line, error.code == Code::BudgetExceeded);
        let (log, agent) = (self.log.clone(), self.agent.clone());
        let row = Arc::new(RequestRow { line: line.text(), bodies: None });
        let shown = row.clone();
        let change = move |tx: &Tx<'_>| model_requests::end(tx, &line.id, &agent, line.at_ms, &row);
        drop(self.ledger.write_then(change, move || log.show(&shown)));
    }
}

impl Books {
    /// Charges an answer that was paid for elsewhere, in one commit with its line.
    pub async fn settle(&self, answered: PaidAnswer, line: RequestLine) -> Result<()> {
        self.totals.add(&line, false);
        let row = RequestRow { line: line.text(), bodies: None };
        let (id, agent, at_ms) = (line.id, self.agent.clone(), line.at_ms);
        let written_row = Arc::new(row);
        let shown = written_row.clone();
        let (_, written) = answered.settle(move |tx| model_requests::end(tx, &id, &agent, at_ms, &written_row));
        written.await?;
        self.log.show(&shown);
        Ok(())
    }
}

impl RequestAccount {
    /// The input in tokens, as it was estimated.
    pub fn input(&self) -> u64 {
        self.estimated_input
    }

    /// The longest answer, if it had to be lowered.
    pub fn lowered(&self) -> Option<u32> {
        self.line.max_tokens.map(|lowered| lowered.to)
    }

    /// Waits until the seconds of the agent are used up.
    pub async fn seconds_used_up(&self) -> Error {
        self.books.ledger.seconds_used_up(&self.books.agent).await;
        Error::budget_exceeded(format!("{} has used up its seconds", self.books.agent))
    }

    /// The head of the answer has come.
    pub fn begin(&mut self, status: u16) {
        self.line.status = status;
        self.line.first_byte_ms = Some(self.books.clock.now_ms().saturating_sub(self.line.at_ms));
    }

    /// Keeps bytes of the answer, if bodies are kept.
    pub fn keep(&mut self, bytes: &[u8]) {
        if self.kept.is_some() {
            let room = KEPT_BODY.saturating_sub(self.answer.len());
            self.answer.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// So much has come of the answer; what a crash may lose of that is little.
    pub fn progress(&mut self, usage: TokenUsage, output: u64) {
        self.note(self.used(usage, output));
        if output >= self.noted + NOTED_TOKENS || (self.noted == 0 && output > 0) {
            self.noted = output;
            if let Some(reservation) = &self.reservation {
                let (id, line) = (self.line.id.clone(), self.line.text());
                reservation.note_on_disk(move |tx| model_requests::progress(tx, &id, &line));
            }
        }
    }

    fn used(&self, usage: TokenUsage, output: u64) -> Usage {
        let input = usage.input.unwrap_or(self.estimated_input);
        Usage { input, output, cache_read: usage.cache_read, cache_write: usage.cache_write }
    }

    fn note(&mut self, usage: Usage) {
        let money = self.prices.cost(usage);
        self.line.set_usage(usage);
        self.line.money = money;
        if let Some(reservation) = &mut self.reservation {
            reservation.note(1, usage, money);
        }
    }

    /// The answer is complete. It is charged when the future has ended.
    pub async fn complete(mut self, usage: TokenUsage, output: u64) -> Result<()> {
        self.line.estimated = usage.input.is_none() || usage.output.is_none();
        self.note(self.used(usage, output));
        match self.settle() {
            Some(written) => written.await,
            None => Ok(()),
        }
    }

    /// The server refused, and counts nothing.
    pub fn refused(mut self, status: u16, why: &str) {
        (self.line.input, self.line.output, self.line.cached, self.line.money) = (0, 0, 0, 0.0);
        if let Some(reservation) = &mut self.reservation {
            reservation.note(0, Usage::default(), 0.0);
        }
        self.fail(status, why);
    }

    /// It ended too early; it is charged as far as it came.
    pub fn fail(mut self, status: u16, why: &str) {
        self.line.status = status;
        self.line.error = Some(why.to_owned());
        drop(self.settle());
    }

    fn settle(&mut self) -> Option<Written<()>> {
        let reservation = self.reservation.take()?;
        self.line.ms = self.books.clock.now_ms().saturating_sub(self.line.at_ms);
        self.books.totals.add(&self.line, false);
        let row = Arc::new(RequestRow { line: self.line.text(), bodies: self.bodies() });
        let (id, agent, at_ms) = (self.line.id.clone(), self.books.agent.clone(), self.line.at_ms);
        let (log, shown) = (self.books.log.clone(), row.clone());
        let also = move |tx: &Tx<'_>| model_requests::end(tx, &id, &agent, at_ms, &row);
        Some(reservation.settle_then(self.line.ms, also, move || log.show(&shown)))
    }

    /// The bodies without the key.
    fn bodies(&mut self) -> Option<String> {
        let (asked, secret) = self.kept.take()?;
        let clean = |text: &str| secret.as_ref().map_or_else(|| text.to_owned(), |secret| secret.redacted(text));
        let asked = clean(asked.char_indices().nth(KEPT_BODY).map_or(&*asked, |(end, _)| &asked[..end]));
        let answer = clean(&String::from_utf8_lossy(&self.answer));
        Some(json!({"id": self.line.id, "request": asked, "answer": answer}).to_string())
    }
}

impl Drop for RequestAccount {
    fn drop(&mut self) {
        if self.reservation.is_some() {
            self.line.error = Some("client_gone: the program went away before the answer was complete".to_owned());
            self.line.estimated = true;
            drop(self.settle());
        }
    }
}
