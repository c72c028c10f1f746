//! Driving the loop: asks the speaker, performs the commands, tells the machine, keeps the record.
//!
//! Only here do phases meet models, symbols and disks. Nothing that was said goes into the log of the program: events
//! carry ids, counts and lengths.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::context::{Material, Turn, assemble, tokens};
use super::history::{Histories, HistoryRecord, check_session};
use super::library;
use super::participants::{Participants, SymbolReason};
use super::perform::{CommandEnv, Dispatch, Outcome, perform, refused};
use super::record::Run;
use super::speaker::{Question, Speaker, SpokenReply};
use super::step::{PhaseLoop, PhaseReply, Stop};
use crate::services::prompts::Library;
use crate::services::symbols::catalogue::Defaults;
use crate::services::symbols::change::By;
use crate::services::symbols::index::Within;
use crate::services::symbols::store::SymbolStore;
use acheron_base::{Clock, Error, Result, blocking};

/// How many symbols near the query a run begins with.
const NEIGHBOURS: usize = 5;
/// The longest query.
pub const LONGEST_QUERY: usize = 64 * 1024;

/// The parts with which runs are made.
pub struct Engine {
    pub library: Arc<Library>,
    pub symbol_store: Arc<SymbolStore>,
    pub histories: Arc<Histories>,
    pub speaker: Arc<dyn Speaker>,
    /// The symbols and agents with which a run begins: those of the library as it is then.
    pub defaults: ReadDefaults,
    pub clock: Clock,
    /// The token budget of a run that begins now: the agent's model and limits may have changed since the last one.
    pub token_budget: Box<dyn Fn() -> Result<TokenBudget> + Send + Sync>,
}

/// Reads the symbols and agents with which a run that begins now begins. May wait for a disk.
pub type ReadDefaults = Arc<dyn Fn() -> Result<Defaults> + Send + Sync>;

/// How many tokens there are.
#[derive(Clone, Copy, Debug)]
pub struct TokenBudget {
    /// For one prompt.
    pub prompt: usize,
    /// For all that a run reads and writes.
    pub run: usize,
}

/// A request for a run.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    pub query: String,
    pub session_id: String,
    pub set: String,
    pub strict: bool,
    pub max_iterations: Option<usize>,
}

/// The result of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Report")]
pub struct RunReport {
    pub run_id: String,
    /// What a person reads of the last phase's answer: its narrative, or its words.
    pub reply: String,
    /// The last phase's whole answer.
    pub reply_raw: String,
    /// Every symbol that a prompt showed, each once, in the order in which they were shown.
    pub symbols_used: Vec<String>,
    pub history_length: usize,
    /// `{action, result, payload}` of every command, in order.
    pub commands: Vec<Value>,
    pub intermediate_responses: Vec<PhaseReply>,
    pub stop_reason: Stop,
}

impl Engine {
    /// Runs one query through its phases.
    pub async fn run(
        &self,
        order: &RunRequest,
        run: &Arc<Run>,
        by: &By,
        dispatch: Option<&dyn Dispatch>,
    ) -> Result<RunReport> {
        let mut running = self.begin(order, run).await?;
        while let Some(phase) = running.machine.phase().cloned() {
            let by = By { run: run.id.clone(), phase: phase.phase_id.clone(), ..by.clone() };
            let reply = match self.ask(&mut running, order, &phase.file, &phase.phase_id).await? {
                Some(reply) => reply,
                None => break,
            };
            tracing::info!(
                event = "inference.phase_completed",
                phase_id = phase.phase_id,
                run = run.id,
                reply_length = reply.text.len()
            );
            self.perform_commands(&mut running, &reply, by, (phase.commands.as_deref(), dispatch)).await;
            if let Some(warning) = running.machine.advance() {
                tracing::warn!(event = event_of(&running.machine), phase_id = phase.phase_id, run = run.id);
                run.trace(json!({"event": "warning", "phase_id": phase.phase_id, "message": warning}));
            }
            let next = running.machine.phase().map(|next| next.phase_id.clone());
            run.moved(next.as_deref(), running.machine.iterations());
        }
        self.end(order, running).await
    }

    /// Whether an order can be run at all.
    pub fn check(&self, order: &RunRequest) -> Result<()> {
        check_order(&order.query, &order.session_id)?;
        library::set(&self.library, &order.set).map(drop)
    }

    async fn begin(&self, order: &RunRequest, run: &Arc<Run>) -> Result<RunInProgress> {
        self.check(order)?;
        let (set, token_budget) = (library::set(&self.library, &order.set)?, (self.token_budget)()?);
        let machine = PhaseLoop::begin(set.clone(), order.strict, order.max_iterations)?;
        let (histories, session) = (self.histories.clone(), order.session_id.clone());
        let stored = blocking(move || histories.read(&session)).await?;
        let history: Vec<Turn> = stored.iter().map(turn).collect();
        let mut participants = Participants::default();
        let read = self.defaults.clone();
        let defaults = blocking(move || read()).await?;
        for id in &defaults.default_agent_ids {
            match self.symbol_store.agent(id).await? {
                Some(agent) => _ = participants.call(agent),
                None => tracing::debug!(event = "inference.default_agent_missing", agent_id = id),
            }
        }
        for symbol in self.symbol_store.symbols(&defaults.default_symbol_ids).await?.into_iter().flatten() {
            participants.bring(symbol, SymbolReason::Default);
        }
        for (hit, symbol) in self.symbol_store.search(&order.query, NEIGHBOURS, &Within::default()).await? {
            participants.bring(symbol, SymbolReason::Near(hit.score));
        }
        tracing::info!(event = "inference.run_query.start", run = run.id, query_length = order.query.len());
        let first = machine.phase().map(|phase| phase.phase_id.clone());
        run.moved(first.as_deref(), 1);
        let order_of = set.phases.iter().map(|phase| phase.phase_id.clone()).collect();
        Ok(RunInProgress {
            machine,
            participants,
            history,
            outcomes: vec![],
            shown: vec![],
            spent: 0,
            token_budget,
            order_of,
            run: run.clone(),
        })
    }

    /// The reply of a phase; none when the run ended before it was asked.
    async fn ask(
        &self,
        running: &mut RunInProgress,
        order: &RunRequest,
        file: &str,
        phase_id: &str,
    ) -> Result<Option<SpokenReply>> {
        let carried =
            (!running.machine.state.is_empty()).then(|| Value::Object(running.machine.state.clone()).to_string());
        let material = Material {
            system: library::system(&self.library, &order.set, file)?,
            carried,
            agents: running.participants.agent_lines(),
            symbols: running.participants.symbol_lines(),
            history: running.history.clone(),
            query: order.query.clone(),
        };
        let context = match assemble(&material, running.token_budget.prompt) {
            Ok(context) => context,
            Err(fault) => {
                running.machine.stop(Stop::Budget, fault.message);
                return Ok(None);
            }
        };
        if running.spent + context.tokens > running.token_budget.run {
            running.machine.stop(Stop::Budget, format!("the run has used its {} tokens", running.token_budget.run));
            return Ok(None);
        }
        tracing::debug!(
            event = "context_manager.prompt_built",
            phase_id,
            tokens = context.tokens,
            cut = context.cut.len()
        );
        running.run.asked(phase_id, &context);
        for id in &context.symbols {
            if !running.shown.contains(id) {
                running.shown.push(id.clone());
            }
        }
        running.run.symbols(running.shown.clone());
        let place = running.order_of.iter().position(|id| id == phase_id);
        let question = Question {
            phase_id: phase_id.to_owned(),
            query: order.query.clone(),
            symbols: context.symbols.clone(),
            following: place.and_then(|place| running.order_of.get(place + 1).cloned()),
            iteration: running.machine.iterations(),
            prompt: context.text,
        };
        match self.speaker.speak(&question).await {
            Ok(reply) => {
                running.spent += context.tokens + tokens(&reply.text);
                Ok(Some(reply))
            }
            Err(fault) => {
                tracing::error!(
                    event = "inference.model_error",
                    phase_id,
                    run = running.run.id,
                    code = fault.code.name()
                );
                let sentence = format!("phase {phase_id}: {}", fault.message);
                running.machine.stop(Stop::ModelError, sentence.clone());
                running.run.ended(Stop::ModelError, &sentence);
                Err(Error::new(fault.code, sentence))
            }
        }
    }

    /// Takes a reply: performs its commands and puts what came of them before the next phase.
    async fn perform_commands(
        &self,
        running: &mut RunInProgress,
        reply: &SpokenReply,
        by: By,
        (allowed, dispatch): (Option<&[String]>, Option<&dyn Dispatch>),
    ) {
        let heard = running.machine.read_reply(&reply.text);
        if reply.cut {
            running.machine.was_cut();
        }
        running.history.push(Turn { role: "assistant".to_owned(), text: reply.text.clone() });
        let may_mutate = running.machine.may_mutate();
        let mut outcomes = Vec::new();
        for asked in &heard.commands {
            let (by, at_ms) = (by.clone(), self.clock.now_ms());
            let env = CommandEnv { symbol_store: &self.symbol_store, dispatch, by, at_ms, may_mutate, allowed };
            outcomes.push(perform(&env, &mut running.participants, &asked.body).await);
        }
        outcomes.extend(heard.refused.iter().map(|asked| refused(&asked.body)));
        if let Some(entry) = running.machine.entries.last() {
            running.run.trace(json!({"event": "reply", "entry": entry}));
        }
        for outcome in outcomes {
            // The name of an action is the model's own word: shown only if it is one of ours.
            let known =
                super::action::TABLE.iter().find(|row| outcome.action == row.name).map_or("other", |row| row.name);
            tracing::info!(event = "command_interpreter.executed", action = known, run = running.run.id);
            running.run.obeyed(&by.phase, known, &outcome.json());
            running.history.push(Turn { role: "system".to_owned(), text: format!("[command] {}", outcome.note) });
            if let Some(stop) = outcome.ends {
                running.machine.stop(stop, "the model dispatched the end of the session");
            }
            running.outcomes.push(outcome);
        }
    }

    /// Writes down what happened and gives the report.
    async fn end(&self, order: &RunRequest, running: RunInProgress) -> Result<RunReport> {
        let (stop_reason, why) = running.machine.stopped().unwrap_or((Stop::Complete, ""));
        let Some(last) = running.machine.entries.last() else {
            running.run.ended(stop_reason, why);
            return Err(Error::budget_exceeded(why));
        };
        let at_ms = self.clock.now_ms();
        let record = |role: &str, content: String| HistoryRecord { role: role.to_owned(), content, at_ms };
        let mut records = vec![record("query", order.query.clone())];
        records.extend(running.outcomes.iter().map(|outcome| record("command", outcome.note.clone())));
        records.push(record("assistant", running.machine.narrative.clone()));
        let (histories, session) = (self.histories.clone(), order.session_id.clone());
        blocking(move || histories.append(&session, &records)).await?;
        let report = RunReport {
            run_id: running.run.id.clone(),
            reply: running.machine.narrative.clone(),
            reply_raw: last.response.clone(),
            symbols_used: running.shown.clone(),
            history_length: running.history.len(),
            commands: running.outcomes.iter().map(Outcome::json).collect(),
            intermediate_responses: running.machine.entries.clone(),
            stop_reason,
        };
        tracing::info!(event = "inference.run_query.completed", run = running.run.id, commands = report.commands.len());
        running.run.replied(&report.reply, &report.reply_raw);
        running.run.ended(stop_reason, why);
        Ok(report)
    }
}

/// What a query and the name of a session tell by themselves.
pub fn check_order(query: &str, session: &str) -> Result<()> {
    check_session(session)?;
    match query.len() {
        _ if query.trim().is_empty() => Err(Error::invalid("the query is empty")),
        bytes if bytes > LONGEST_QUERY => {
            Err(Error::too_large(format!("a query of {bytes} bytes is over {LONGEST_QUERY}")))
        }
        _ => Ok(()),
    }
}

/// A run under way.
struct RunInProgress {
    machine: PhaseLoop,
    participants: Participants,
    history: Vec<Turn>,
    outcomes: Vec<Outcome>,
    /// The symbols that prompts showed, each once.
    shown: Vec<String>,
    /// Tokens read and written so far.
    spent: usize,
    token_budget: TokenBudget,
    /// The ids of the set, in order.
    order_of: Vec<String>,
    run: Arc<Run>,
}

fn event_of(machine: &PhaseLoop) -> &'static str {
    match machine.stopped() {
        Some((Stop::UnknownPhase | Stop::RouteRefused, _)) => "inference.next_phase_invalid",
        Some((Stop::Cut, _)) => "inference.reply_cut",
        Some((Stop::Unfinished, _)) => "inference.unfinished",
        Some((Stop::Cycle, _)) => "inference.next_phase_cycle",
        Some((Stop::Limit, _)) => "inference.phase_iteration_limit",
        _ => "inference.route_not_declared",
    }
}

fn turn(record: &HistoryRecord) -> Turn {
    let (role, text) = match record.role.as_str() {
        "query" => ("user", record.content.clone()),
        "command" => ("system", format!("[command] {}", record.content)),
        role => (role, record.content.clone()),
    };
    Turn { role: role.to_owned(), text }
}

#[cfg(test)]
mod tests;
