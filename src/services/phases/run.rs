//! Driving the loop: asks the speaker, performs the commands, tells the machine, keeps the record.
//!
//! Only here do phases meet models, symbols and disks. Nothing that was said goes into the log of the program: events
//! carry ids, counts and lengths.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::context::{Material, Turn, assemble, tokens};
use super::history::{Histories, Record, check_session};
use super::library;
use super::perform::{Dispatch, Hands, Outcome, perform, refused};
use super::record::Run;
use super::scene::{Scene, Why};
use super::speaker::{Question, Speaker};
use super::step::{Entry, Loop, Stop};
use crate::services::prompts::Library;
use crate::services::symbols::catalogue::Defaults;
use crate::services::symbols::change::By;
use crate::services::symbols::index::Within;
use crate::services::symbols::shelf::Shelf;
use acheron_base::Clock;
use acheron_base::blocking;
use acheron_base::{Error, Result};

/// How many symbols near the query a run begins with.
const NEIGHBOURS: usize = 5;
/// The longest query.
pub const LONGEST_QUERY: usize = 64 * 1024;

/// What a run is made with.
pub struct Engine {
    pub library: Arc<Library>,
    pub shelf: Arc<Shelf>,
    pub histories: Arc<Histories>,
    pub speaker: Arc<dyn Speaker>,
    pub defaults: Defaults,
    pub clock: Clock,
    /// What a run that begins now may use: the agent's model and limits may have changed since the last one.
    pub room: Box<dyn Fn() -> Result<Room> + Send + Sync>,
}

/// How many tokens there are.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// For one prompt.
    pub prompt: usize,
    /// For all that a run reads and writes.
    pub run: usize,
}

/// What is asked of a run.
#[derive(Clone, Debug, Default)]
pub struct Order {
    pub query: String,
    pub session_id: String,
    pub set: String,
    pub strict: bool,
    pub max_iterations: Option<usize>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    pub run_id: String,
    /// The last phase's whole answer.
    pub reply: String,
    /// Every symbol that took part, each once: defaults, neighbours, loaded.
    pub symbols_used: Vec<String>,
    pub history_length: usize,
    /// `{action, result, payload}` of every command, in order.
    pub commands: Vec<Value>,
    pub intermediate_responses: Vec<Entry>,
    pub stop_reason: Stop,
}

impl Engine {
    /// Runs one query through its phases.
    pub async fn run(&self, order: &Order, run: &Arc<Run>, by: &By, dispatch: Option<&dyn Dispatch>) -> Result<Report> {
        let mut ride = self.begin(order, run).await?;
        while let Some(phase) = ride.machine.phase().cloned() {
            let by = By { run: run.id.clone(), phase: phase.phase_id.clone(), ..by.clone() };
            let reply = match self.ask(&mut ride, order, &phase.file, &phase.phase_id).await? {
                Some(reply) => reply,
                None => break,
            };
            tracing::info!(
                event = "inference.phase_completed",
                phase_id = phase.phase_id,
                run = run.id,
                reply_length = reply.len()
            );
            self.obey(&mut ride, &reply, by, dispatch).await;
            if let Some(warning) = ride.machine.advance() {
                tracing::warn!(event = event_of(&ride.machine), phase_id = phase.phase_id, run = run.id);
                run.trace(json!({"event": "warning", "phase_id": phase.phase_id, "message": warning}));
            }
            let next = ride.machine.phase().map(|next| next.phase_id.clone());
            run.moved(next.as_deref(), ride.machine.iterations());
        }
        self.end(order, ride).await
    }

    /// Whether an order can be run at all.
    pub fn check(&self, order: &Order) -> Result<()> {
        check_session(&order.session_id)?;
        if order.query.trim().is_empty() {
            return Err(Error::invalid("the query is empty"));
        }
        if order.query.len() > LONGEST_QUERY {
            return Err(Error::too_large(format!("a query of {} bytes is over {LONGEST_QUERY}", order.query.len())));
        }
        library::set(&self.library, &order.set).map(drop)
    }

    async fn begin(&self, order: &Order, run: &Arc<Run>) -> Result<Ride> {
        self.check(order)?;
        let (set, room) = (library::set(&self.library, &order.set)?, (self.room)()?);
        let machine = Loop::begin(set.clone(), order.strict, order.max_iterations)?;
        let (histories, session) = (self.histories.clone(), order.session_id.clone());
        let stored = blocking(move || histories.read(&session)).await?;
        let history: Vec<Turn> = stored.iter().map(turn).collect();
        let mut scene = Scene::default();
        for id in &self.defaults.default_agent_ids {
            match self.shelf.agent(id).await? {
                Some(agent) => _ = scene.call(agent),
                None => tracing::debug!(event = "inference.default_agent_missing", agent_id = id),
            }
        }
        for symbol in self.shelf.symbols(&self.defaults.default_symbol_ids).await?.into_iter().flatten() {
            scene.bring(symbol, Why::Default);
        }
        for (hit, symbol) in self.shelf.search(&order.query, NEIGHBOURS, &Within::default()).await? {
            scene.bring(symbol, Why::Near(hit.score));
        }
        tracing::info!(event = "inference.run_query.start", run = run.id, query_length = order.query.len());
        let first = machine.phase().map(|phase| phase.phase_id.clone());
        run.moved(first.as_deref(), 1);
        let order_of = set.phases.iter().map(|phase| phase.phase_id.clone()).collect();
        Ok(Ride { machine, scene, history, outcomes: vec![], spent: 0, room, order_of, run: run.clone() })
    }

    /// The reply of a phase; none when the run ended before it was asked.
    async fn ask(&self, ride: &mut Ride, order: &Order, file: &str, phase_id: &str) -> Result<Option<String>> {
        let carried = (!ride.machine.state.is_empty()).then(|| Value::Object(ride.machine.state.clone()).to_string());
        let material = Material {
            system: library::system(&self.library, &order.set, file)?,
            carried,
            agents: ride.scene.agent_lines(),
            symbols: ride.scene.symbol_lines(),
            history: ride.history.clone(),
            query: order.query.clone(),
        };
        let context = match assemble(&material, ride.room.prompt) {
            Ok(context) => context,
            Err(fault) => {
                ride.machine.stop(Stop::Budget, fault.message);
                return Ok(None);
            }
        };
        if ride.spent + context.tokens > ride.room.run {
            ride.machine.stop(Stop::Budget, format!("the run has used its {} tokens", ride.room.run));
            return Ok(None);
        }
        tracing::debug!(
            event = "context_manager.prompt_built",
            phase_id,
            tokens = context.tokens,
            cut = context.cut.len()
        );
        ride.run.asked(phase_id, &context);
        let place = ride.order_of.iter().position(|id| id == phase_id);
        let question = Question {
            phase_id: phase_id.to_owned(),
            query: order.query.clone(),
            symbols: context.symbols.clone(),
            following: place.and_then(|place| ride.order_of.get(place + 1).cloned()),
            iteration: ride.machine.iterations(),
            prompt: context.text,
        };
        match self.speaker.speak(&question).await {
            Ok(reply) => {
                ride.spent += context.tokens + tokens(&reply);
                Ok(Some(reply))
            }
            Err(fault) => {
                tracing::error!(event = "inference.model_error", phase_id, run = ride.run.id, code = fault.code.name());
                let sentence = format!("phase {phase_id}: {}", fault.message);
                ride.machine.stop(Stop::ModelError, sentence.clone());
                ride.run.ended(Stop::ModelError, &sentence);
                Err(Error::new(fault.code, sentence))
            }
        }
    }

    /// Takes a reply: performs its commands and puts what came of them before the next phase.
    async fn obey(&self, ride: &mut Ride, reply: &str, by: By, dispatch: Option<&dyn Dispatch>) {
        let heard = ride.machine.hear(reply);
        ride.history.push(Turn { role: "assistant".to_owned(), text: reply.to_owned() });
        let may_mutate = ride.machine.may_mutate();
        let mut outcomes = Vec::new();
        for asked in &heard.commands {
            let (by, at_ms) = (by.clone(), self.clock.now_ms());
            let hands = Hands { shelf: &self.shelf, dispatch, by, at_ms, may_mutate };
            outcomes.push(perform(&hands, &mut ride.scene, &asked.body).await);
        }
        outcomes.extend(heard.refused.iter().map(|asked| refused(&asked.body)));
        if let Some(entry) = ride.machine.entries.last() {
            ride.run.trace(json!({"event": "reply", "entry": entry}));
        }
        for outcome in outcomes {
            // The name of an action is the model's own word: shown only if it is one of ours.
            let known =
                super::action::TABLE.iter().find(|row| outcome.action == row.name).map_or("other", |row| row.name);
            tracing::info!(event = "command_interpreter.executed", action = known, run = ride.run.id);
            ride.run.obeyed(&by.phase, known, &outcome.json());
            ride.history.push(Turn { role: "system".to_owned(), text: format!("[command] {}", outcome.note) });
            if let Some(stop) = outcome.ends {
                ride.machine.stop(stop, "the model dispatched the end of the session");
            }
            ride.outcomes.push(outcome);
        }
        ride.run.symbols(ride.scene.ids());
    }

    /// Writes down what happened and gives the report.
    async fn end(&self, order: &Order, ride: Ride) -> Result<Report> {
        let (stop_reason, why) = ride.machine.stopped().unwrap_or((Stop::Complete, ""));
        let Some(last) = ride.machine.entries.last() else {
            ride.run.ended(stop_reason, why);
            return Err(Error::budget_exceeded(why));
        };
        let at_ms = self.clock.now_ms();
        let record = |role: &str, content: String| Record { role: role.to_owned(), content, at_ms };
        let mut records = vec![record("query", order.query.clone())];
        records.extend(ride.outcomes.iter().map(|outcome| record("command", outcome.note.clone())));
        records.push(record("assistant", last.response.clone()));
        let (histories, session) = (self.histories.clone(), order.session_id.clone());
        blocking(move || histories.append(&session, &records)).await?;
        let report = Report {
            run_id: ride.run.id.clone(),
            reply: last.response.clone(),
            symbols_used: ride.scene.ids(),
            history_length: ride.history.len(),
            commands: ride.outcomes.iter().map(Outcome::json).collect(),
            intermediate_responses: ride.machine.entries.clone(),
            stop_reason,
        };
        tracing::info!(event = "inference.run_query.completed", run = ride.run.id, commands = report.commands.len());
        ride.run.replied(&report.reply);
        ride.run.ended(stop_reason, why);
        Ok(report)
    }
}

/// A run under way.
struct Ride {
    machine: Loop,
    scene: Scene,
    history: Vec<Turn>,
    outcomes: Vec<Outcome>,
    /// Tokens read and written so far.
    spent: usize,
    room: Room,
    /// The ids of the set, in order.
    order_of: Vec<String>,
    run: Arc<Run>,
}

fn event_of(machine: &Loop) -> &'static str {
    match machine.stopped() {
        Some((Stop::UnknownPhase, _)) => "inference.next_phase_invalid",
        Some((Stop::Cycle, _)) => "inference.next_phase_cycle",
        Some((Stop::Limit, _)) => "inference.phase_iteration_limit",
        _ => "inference.route_not_declared",
    }
}

fn turn(record: &Record) -> Turn {
    let (role, text) = match record.role.as_str() {
        "query" => ("user", record.content.clone()),
        "command" => ("system", format!("[command] {}", record.content)),
        role => (role, record.content.clone()),
    };
    Turn { role: role.to_owned(), text }
}

#[cfg(test)]
mod tests;
