//! What each payer may use up, has used up, and has reserved for requests under way.
//!
//! [`Ledger::reserve`] decides and holds in one step, so that requests at the same time cannot overspend together; a
//! [`Reservation`] is settled in one commit with whatever its owner writes down. A payer is a name: an agent, or anything
//! else that pays for models. A payer may have another above it (the parent of a helper), which pays as well.
//! [`ask`](super::ask) reserves; nothing here knows an agent, a turn or a model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::budget::{BudgetLimits, Spent, Standing, passed, standing};
use crate::model::{Prices, Usage};
use crate::state::audit::{self, Record};
use crate::state::spending::{self, SpendingRow};
use acheron_base::{Clock, Error, Result};
use acheron_store::{Store, Tx, Written};

/// A limit of a payer of which 80 % are used.
pub struct PassedLimit {
    pub what: &'static str,
    pub limits: BudgetLimits,
    pub spent: Spent,
}

/// Is told of each limit once, when its 80 % are passed, whatever the request was for. It must not wait.
pub type LimitListener = Arc<dyn Fn(&PassedLimit) + Send + Sync>;

/// What a payer may use up.
#[derive(Clone, Default)]
pub struct AccountTerms {
    pub limits: BudgetLimits,
    /// The payer above it, which pays as well.
    pub parent: Option<String>,
    /// How its limits are raised: the end of the sentence that refuses a request.
    pub raise: String,
    pub listener: Option<LimitListener>,
}

#[derive(Default)]
struct Account {
    terms: AccountTerms,
    spent: Spent,
    /// The requests under way, by number.
    held: BTreeMap<u64, HeldRequest>,
}

/// What a request under way may still cost.
#[derive(Clone, Copy)]
struct HeldRequest {
    tokens: u64,
    money: f64,
    begun_ms: u64,
}

impl Account {
    /// What is used up if every request under way costs what it may.
    fn promised(&self, now_ms: u64) -> Spent {
        let mut all = self.spent;
        for held in self.held.values() {
            all.rounds += 1;
            all.usage.input = all.usage.input.saturating_add(held.tokens);
            all.money += held.money;
            all.ms += now_ms.saturating_sub(held.begun_ms);
        }
        all
    }
}

/// What a request may cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestCost {
    /// An upper bound of its input, and the longest answer that is wanted, in tokens.
    pub input: u64,
    pub output: u32,
    /// The shortest answer that is of any use.
    pub least_output: u32,
    pub prices: Prices,
    /// The reservation is on the disk as well: after a crash the request is charged.
    pub outlives_crash: bool,
}

#[derive(Clone)]
pub struct Ledger(Arc<LedgerInner>);

struct LedgerInner {
    store: Store,
    clock: Clock,
    state: Mutex<LedgerState>,
}

#[derive(Default)]
struct LedgerState {
    accounts: BTreeMap<String, Account>,
    requests: u64,
}

/// Listeners to be told when the ledger is not locked.
type Passed = Vec<(LimitListener, PassedLimit)>;

impl LedgerState {
    /// Adds to what some payers have used up; a request that is over is held no longer.
    fn spend(&mut self, payers: &[String], request: Option<u64>, spent: &Spent) -> Passed {
        let mut told = Vec::new();
        for payer in payers {
            let Some(account) = self.accounts.get_mut(payer) else { continue };
            if let Some(request) = request {
                account.held.remove(&request);
            }
            let before = account.spent;
            account.spent = before.plus(spent);
            let (limits, spent) = (account.terms.limits, account.spent);
            let Some(listener) = &account.terms.listener else { continue };
            let passed = passed(&limits, &before, &spent).into_iter();
            told.extend(passed.map(|what| (listener.clone(), PassedLimit { what, limits, spent })));
        }
        told
    }

    /// A payer and those above it.
    fn chain(&self, payer: &str) -> Vec<String> {
        let mut chain: Vec<String> = Vec::new();
        let mut next = Some(payer);
        // A circle of parents ends where it closes.
        while let Some(payer) = next.filter(|payer| !chain.iter().any(|known| known == payer)) {
            let Some((name, account)) = self.accounts.get_key_value(payer) else { break };
            chain.push(name.clone());
            next = account.terms.parent.as_deref();
        }
        chain
    }
}

impl Ledger {
    /// Opens the ledger of a store, and charges the requests that an earlier host left unsettled. Blocks.
    pub fn open(store: Store, clock: Clock) -> Result<Ledger> {
        let left =
            match store.look(|conn| Ok(conn.query_row("SELECT count(*) FROM reservations", [], |row| row.get(0))?))? {
                0usize => 0,
                _ => store.write_blocking(spending::settle_left)?,
            };
        if left > 0 {
            tracing::warn!(
                requests = left,
                "requests to models were under way when the host stopped; their input and the noted part of their answers are charged"
            );
        }
        Ok(Ledger(Arc::new(LedgerInner { store, clock, state: Mutex::default() })))
    }

    /// Opens the account of a payer; `before` is what it had used up before there was a ledger. Blocks.
    pub fn account(&self, payer: &str, terms: AccountTerms, before: impl FnOnce() -> Result<Spent>) -> Result<()> {
        let known = self.0.store.look(|conn| spending::of(conn, payer))?;
        let spent = match known {
            Some(row) => spent_of(&row),
            None => {
                let (spent, name) = (before()?, payer.to_owned());
                // A payer that has used nothing needs no row, and a host with a thousand new agents no thousand commits.
                if spent != Spent::default() {
                    self.0.store.write_blocking(move |tx| spending::add(tx, &name, &row_of(&spent)))?;
                }
                spent
            }
        };
        let mut state = self.0.state.lock();
        let account = state.accounts.entry(payer.to_owned()).or_insert_with(|| Account { spent, ..Account::default() });
        account.terms = terms;
        Ok(())
    }

    /// Changes what a payer may use up; it holds at once.
    pub fn change(&self, payer: &str, change: impl FnOnce(&mut AccountTerms)) {
        if let Some(account) = self.0.state.lock().accounts.get_mut(payer) {
            change(&mut account.terms);
        }
    }

    /// Forgets a payer that is gone.
    pub fn forget(&self, payer: &str) {
        self.0.state.lock().accounts.remove(payer);
    }

    /// What a payer has used up.
    pub fn spent(&self, payer: &str) -> Spent {
        self.0.state.lock().accounts.get(payer).map(|account| account.spent).unwrap_or_default()
    }

    /// What is left of the limits of a payer and of those above it, beside what is reserved.
    pub fn left(&self, payer: &str) -> BudgetLimits {
        let now_ms = self.0.clock.now_ms();
        let state = self.0.state.lock();
        let accounts = state.chain(payer).into_iter().filter_map(|name| state.accounts.get(&name));
        accounts.fold(BudgetLimits::default(), |left, account| {
            left.and(&account.terms.limits.less(&account.promised(now_ms)))
        })
    }

    /// The number of milliseconds for which the requests under way may go on, if that is limited: each has its share of the
    /// seconds that are left.
    pub fn ms_left(&self, payer: &str) -> Option<u64> {
        let now_ms = self.0.clock.now_ms();
        let state = self.0.state.lock();
        let accounts = state.chain(payer).into_iter().filter_map(|name| state.accounts.get(&name));
        let left = accounts.filter_map(|account| {
            let limit = account.terms.limits.seconds?.saturating_mul(1000);
            Some(limit.saturating_sub(account.promised(now_ms).ms) / account.held.len().max(1) as u64)
        });
        left.min()
    }

    /// Refuses if a payer, or one above it, has nothing left.
    pub fn check(&self, payer: &str) -> Result<()> {
        self.reserve_in(&mut self.0.state.lock(), payer, &RequestCost::default()).map(drop)
    }

    /// Reserves what a request may cost, or refuses it. The answer may be shorter than wanted, never longer than what is left
    /// pays for.
    pub fn reserve(&self, payer: &str, cost: &RequestCost) -> Result<Reservation> {
        // The request need not wait for the disk: its settlement stands behind this note in the same queue.
        self.reserve_with(payer, cost, |_| Ok(())).map(|(reservation, _)| reservation)
    }

    /// The same with what is to be written down beside the reservation, in one commit. If the cost is to outlive a crash, and
    /// the caller waits for the answer, no request is sent that a crash could forget.
    pub fn reserve_with(
        &self,
        payer: &str,
        cost: &RequestCost,
        also: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static,
    ) -> Result<(Reservation, Option<Written<()>>)> {
        let mut state = self.0.state.lock();
        let (payers, output) = self.reserve_in(&mut state, payer, cost)?;
        state.requests += 1;
        let number = state.requests;
        let at_most = Usage::new(cost.input, output.into());
        let (tokens, money) = (at_most.total(), cost.prices.cost(at_most));
        let held = HeldRequest { tokens, money, begun_ms: self.0.clock.now_ms() };
        for payer in &payers {
            if let Some(account) = state.accounts.get_mut(payer) {
                account.held.insert(number, held);
            }
        }
        drop(state);
        let sent = Usage::new(cost.input, 0);
        let (names, money) = (payers.clone(), cost.prices.cost(sent));
        let written = cost.outlives_crash.then(|| {
            self.0.store.write(move |tx| {
                also(tx)?;
                spending::reserve(tx, number, &names, sent.input, money)
            })
        });
        let begun_ms = held.begun_ms;
        Ok((Reservation { ledger: self.clone(), payers, number, output, begun_ms, used: Spent::default() }, written))
    }

    /// The payers of a request, and the longest answer that all of them can pay for.
    fn reserve_in(&self, state: &mut LedgerState, payer: &str, cost: &RequestCost) -> Result<(Vec<String>, u32)> {
        let (payers, now_ms) = (state.chain(payer), self.0.clock.now_ms());
        if payers.is_empty() {
            return Err(Error::internal(format!("{payer} has no account")));
        }
        let mut output = cost.output;
        for name in &payers {
            let Some(account) = state.accounts.get(name) else { continue };
            let promised = account.promised(now_ms);
            let over = |what: &str| {
                let waits =
                    if account.held.is_empty() { "" } else { ", of which a part is reserved for requests under way" };
                let raise = match account.terms.raise.as_str() {
                    "" => String::new(),
                    how => format!("; {how}"),
                };
                Error::budget_exceeded(format!("{name} has used up its {what}{waits}{raise}"))
            };
            if let Standing::Over(what) = standing(&account.terms.limits, &promised) {
                return Err(over(what));
            }
            let left = account.terms.limits.less(&promised);
            output = output.min(affordable(&left, cost).map_err(over)?);
        }
        Ok((payers, output))
    }

    /// Writes something that costs nothing, in the order of what does.
    pub fn write(&self, change: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static) -> Written<()> {
        self.0.store.write(change)
    }

    /// The same, then calls `then`, which must be short: it runs on the thread of the writer.
    pub fn write_then(
        &self,
        change: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static,
        then: impl FnOnce() + Send + 'static,
    ) -> Written<()> {
        self.0.store.write_then(change, move |()| then())
    }

    /// Waits until the seconds of a payer are used up, by whichever requests.
    pub async fn seconds_used_up(&self, payer: &str) {
        loop {
            match self.ms_left(payer) {
                None => std::future::pending::<()>().await,
                Some(0) => return,
                Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            }
        }
    }

    /// Charges what was used without a reservation: time spent on calls of a turn. `also` is written in the same commit.
    pub fn charge(
        &self,
        payer: &str,
        spent: &Spent,
        also: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static,
    ) -> Written<()> {
        let mut state = self.0.state.lock();
        let payers = state.chain(payer);
        let passed = state.spend(&payers, None, spent);
        drop(state);
        let row = row_of(spent);
        let written = self.0.store.write(move |tx| {
            also(tx)?;
            payers.iter().try_for_each(|payer| spending::add(tx, payer, &row))
        });
        tell(&passed);
        written
    }
}

/// What is told stands behind the spending in the queue of the store.
fn tell(passed: &Passed) {
    for (listener, limit) in passed {
        listener(limit);
    }
}

/// The longest answer that these limits pay for, or the limit that is too small.
fn affordable(left: &BudgetLimits, cost: &RequestCost) -> Result<u32, &'static str> {
    let mut output = u64::from(cost.output);
    let least = u64::from(cost.least_output.min(cost.output));
    if let Some(tokens) = left.tokens {
        output = output.min(tokens.checked_sub(cost.input).filter(|room| *room >= least).ok_or("tokens")?);
    }
    if let Some(money) = left.money {
        let input = cost.prices.cost(Usage::new(cost.input, 0));
        let one = cost.prices.cost(Usage::new(0, 1));
        // Without a price of output, the input alone has to be paid for.
        let room = if one > 0.0 { ((money - input) / one).floor() } else { f64::from(cost.output) };
        if money < input || room < least as f64 {
            return Err("money");
        }
        output = output.min(room as u64);
    }
    Ok(u32::try_from(output).unwrap_or(cost.output))
}

/// What is held for one request. Dropped without being settled, it has cost what was noted last.
#[must_use = "a request is charged when it is settled"]
pub struct Reservation {
    ledger: Ledger,
    /// Empty once it is settled.
    payers: Vec<String>,
    number: u64,
    output: u32,
    begun_ms: u64,
    used: Spent,
}

impl Reservation {
    /// The longest answer that is paid for.
    pub fn output(&self) -> u32 {
        self.output
    }

    /// The time since it was made.
    pub fn ms(&self) -> u64 {
        self.ledger.0.clock.now_ms().saturating_sub(self.begun_ms)
    }

    /// Notes what the request has cost so far; its time is added at the end.
    pub fn note(&mut self, rounds: u64, usage: Usage, money: f64) {
        self.used = Spent { rounds, usage, ms: 0, money };
    }

    /// Writes what was noted last to the disk, for the case of a crash, in one commit with what `also` writes. Nothing waits
    /// for it.
    pub fn note_on_disk(&self, also: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static) {
        let number = self.number;
        let Spent { usage, money, .. } = self.used;
        drop(self.ledger.0.store.write(move |tx| {
            also(tx)?;
            spending::progress(tx, number, usage.input, usage.output, money)
        }));
    }

    /// Charges what was noted and `ms` of time, and lets go of the rest, in one commit with what `also` writes.
    pub fn settle(self, ms: u64, also: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static) -> Written<()> {
        self.settle_then(ms, also, || ())
    }

    /// The same, then calls `then`, which must be short: it runs on the thread of the writer.
    pub fn settle_then(
        mut self,
        ms: u64,
        also: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static,
        then: impl FnOnce() + Send + 'static,
    ) -> Written<()> {
        self.used.ms = ms;
        self.end(also, then)
    }

    fn end(
        &mut self,
        also: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static,
        then: impl FnOnce() + Send + 'static,
    ) -> Written<()> {
        let payers = std::mem::take(&mut self.payers);
        let mut state = self.ledger.0.state.lock();
        let passed = state.spend(&payers, Some(self.number), &self.used);
        drop(state);
        let (number, row, at_ms) = (self.number, row_of(&self.used), self.ledger.0.clock.now_ms());
        let change = move |tx: &Tx<'_>| {
            also(tx)?;
            if row.rounds > 0 {
                let asked = Record::new(at_ms, "model").with("payer", payers.first().map_or("", String::as_str));
                let asked = asked.with("rounds", row.rounds).with("input", row.input).with("output", row.output);
                audit::note(tx, &asked.with("money", row.money));
            }
            spending::settle(tx, number, &payers, &row)
        };
        let written = self.ledger.0.store.write_then(change, move |()| then());
        tell(&passed);
        written
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.payers.is_empty() {
            self.used.ms = self.ms();
            drop(self.end(|_| Ok(()), || ())); // a request that failed or was cut off; nobody waits for the disk
        }
    }
}

fn spent_of(row: &SpendingRow) -> Spent {
    let SpendingRow { rounds, input, output, cache_read, cache_write, ms, money } = *row;
    Spent { rounds, usage: Usage { input, output, cache_read, cache_write }, ms, money }
}

fn row_of(spent: &Spent) -> SpendingRow {
    let Spent { rounds, usage: Usage { input, output, cache_read, cache_write }, ms, money } = *spent;
    SpendingRow { rounds, input, output, cache_read, cache_write, ms, money }
}

#[cfg(test)]
mod tests;
