//! Performs commands: on the symbols, on the participants of a run, or by starting a job.
//!
//! A command that fails is a result like any other. Only an outage of the symbol store ends up in an error's words there.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::action::{self, PhaseAction, WantedId};
use super::participants::{Participants, SymbolReason};
use super::step::Stop;
use crate::services::symbols::change::{By, DocumentKind};
use crate::services::symbols::index::Within;
use crate::services::symbols::store::{Author, SymbolStore};
use crate::services::symbols::symbol::{Symbol, check_id};
use acheron_base::{Code, Error, Result};

/// The most symbols that one walk brings in.
const WALK_ROOM: usize = 64;
/// How many symbols a walk by words begins at.
const WALK_ROOTS: usize = 5;

/// Starts a job of another service, with the rights of the agent.
#[async_trait]
pub trait Dispatch: Send + Sync {
    /// Starts an operation of a service and gives the id of its job.
    async fn dispatch(&self, service: &str, operation: &str, arguments: &Value) -> Result<String>;
}

/// The outcome of a command.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub action: Value,
    pub result: Value,
    pub payload: Value,
    /// The note for the next phase.
    pub note: String,
    pub ends: Option<Stop>,
}

impl Outcome {
    /// As it stands in the result of a run.
    pub fn json(&self) -> Value {
        json!({ "action": self.action, "result": self.result, "payload": self.payload })
    }
}

/// The environment of a command.
pub struct CommandEnv<'a> {
    pub symbol_store: &'a SymbolStore,
    pub dispatch: Option<&'a dyn Dispatch>,
    pub by: By,
    pub at_ms: u64,
    /// False in the last phase of a strict run.
    pub may_mutate: bool,
    /// The commands that the phase allows; all if it does not say.
    pub allowed: Option<&'a [String]>,
}

/// A command that is beyond the caps: it is not run.
pub fn refused(body: &Value) -> Outcome {
    outcome(body, json!({ "status": "refused", "reason": "limit" }), None)
}

/// Runs one command.
pub async fn perform(env: &CommandEnv<'_>, participants: &mut Participants, body: &Value) -> Outcome {
    let (row, action) = match action::read(body) {
        Ok(read) => read,
        Err(result) => return outcome(body, result, None),
    };
    if let Some(reason) = env.forbids(row.name) {
        return outcome(body, json!({ "status": "refused", "reason": reason }), None);
    }
    if row.mutates && !env.may_mutate {
        let reason = "no further symbolic mutation in the last phase";
        return outcome(body, json!({ "status": "refused", "reason": reason }), None);
    }
    match env.act(participants, action).await {
        Ok(done) => Outcome { ends: done.ends, ..outcome(body, done.result, done.note) },
        Err(fault) => {
            let mut result = action::error(fault.message);
            result["code"] = json!(fault.code.name());
            outcome(body, result, None)
        }
    }
}

struct PerformedCommand {
    result: Value,
    note: Option<String>,
    ends: Option<Stop>,
}

impl From<Value> for PerformedCommand {
    fn from(result: Value) -> PerformedCommand {
        PerformedCommand { result, note: None, ends: None }
    }
}

fn noted(result: Value, note: String) -> PerformedCommand {
    PerformedCommand { result, note: Some(note), ends: None }
}

fn outcome(body: &Value, result: Value, note: Option<String>) -> Outcome {
    let action = body.get("action").cloned().unwrap_or(Value::Null);
    let name = action.as_str().unwrap_or("missing_action").chars().take(64).collect::<String>();
    let note = note.unwrap_or_else(|| format!("{name}: {}", sorted(&result)));
    Outcome { action, result, payload: body.clone(), note, ends: None }
}

impl CommandEnv<'_> {
    /// Why the phase does not allow a command; none if it does.
    fn forbids(&self, name: &str) -> Option<String> {
        let allowed = self.allowed?;
        let phase = &self.by.phase;
        match allowed.is_empty() {
            true => Some(format!("phase {phase} allows no commands")),
            false if allowed.iter().any(|own| own == name) => None,
            false => Some(format!("phase {phase} allows {}, not {name}", allowed.join(", "))),
        }
    }

    async fn act(&self, participants: &mut Participants, action: PhaseAction) -> Result<PerformedCommand> {
        match action {
            PhaseAction::StoreSymbol { symbol } => {
                if Symbol::read(&symbol).is_err() {
                    return Ok(action::error("invalid_symbol").into());
                }
                let stored = self.symbol_store.put(DocumentKind::Symbol, &symbol, &self.author("")).await?;
                self.changed(participants, stored.body)
            }
            PhaseAction::UpdateSymbol { symbol } => self.update(participants, &symbol).await,
            PhaseAction::DeleteSymbol { id } => {
                let there = self.symbol_store.delete(DocumentKind::Symbol, &id, &self.author("")).await?;
                participants.forget(&id);
                Ok(json!({ "status": if there { "deleted" } else { "not_found" }, "id": id }).into())
            }
            PhaseAction::LoadSymbol { ids } => {
                let (found, missing) = self.fetch(&ids).await?;
                let result = json!({ "symbols": shown(&found), "missing": missing });
                Ok(noted(result, added("load_symbol", participants, found)))
            }
            PhaseAction::LoadKit { kit } => self.load_kit(participants, kit).await,
            PhaseAction::InvokeAgent { id } => match self.symbol_store.agent(&id).await? {
                None => Ok(json!({ "status": "not_found", "agent_id": id }).into()),
                Some(agent) => {
                    let result = json!(agent);
                    let said = if participants.call(agent) { "joined the roster" } else { "is on the roster already" };
                    Ok(noted(result, format!("invoke_agent: {id} {said}")))
                }
            },
            PhaseAction::QuerySymbols { ids, query, k, domain, tag } => {
                let (mut found, missing) = self.fetch(&ids).await?;
                let mut hits = Vec::new();
                if let Some(query) = query {
                    let within = Within { domain: domain.as_deref(), tag: tag.as_deref() };
                    for (hit, symbol) in self.symbol_store.search(&query, k, &within).await? {
                        hits.push(hit);
                        found.push(symbol);
                    }
                }
                let result = json!({ "symbols": shown(&found), "missing": missing, "hits": hits });
                Ok(noted(result, added("query_symbols", participants, found)))
            }
            PhaseAction::RecurseGraph { ids, query, depth } => self.recurse(participants, &ids, query, depth).await,
            PhaseAction::EmitFeedback { kind, target, reason } => self.feedback(&kind, &target, &reason).await,
            PhaseAction::DispatchTask { task, payload } => self.task(&task, &payload).await,
        }
    }

    async fn update(&self, participants: &mut Participants, symbol: &Value) -> Result<PerformedCommand> {
        let accept = |whole: &Value| {
            if action::marked(whole) { Ok(()) } else { Err(Error::forbidden("missing_validated_trait")) }
        };
        match self.symbol_store.update(DocumentKind::Symbol, symbol, &self.author(""), accept).await {
            Ok(stored) => self.changed(participants, stored.body),
            Err(fault) if fault.code == Code::Forbidden => {
                Ok(json!({ "status": "rejected", "reason": fault.message }).into())
            }
            Err(fault) if fault.code == Code::InvalidPayload => {
                Ok(json!({ "status": "error", "reason": "invalid_symbol", "detail": fault.message }).into())
            }
            Err(fault) => Err(fault),
        }
    }

    async fn load_kit(&self, participants: &mut Participants, kit: String) -> Result<PerformedCommand> {
        let Some(resolved) = self.symbol_store.kit(&kit).await? else {
            return Ok(json!({ "status": "not_found", "kit_id": kit }).into());
        };
        let agents: Vec<&str> = resolved.agents.iter().map(|agent| agent.id.as_str()).collect();
        let result = json!({
            "kit": resolved.kit,
            "symbols": shown(&resolved.symbols),
            "agents": agents,
            "unresolved": resolved.unresolved,
        });
        for agent in resolved.agents {
            participants.call(agent);
        }
        Ok(noted(result, added("load_kit", participants, resolved.symbols)))
    }

    async fn recurse(
        &self,
        participants: &mut Participants,
        ids: &[WantedId],
        query: Option<String>,
        depth: usize,
    ) -> Result<PerformedCommand> {
        let (mut roots, missing) = self.fetch(ids).await?;
        if let Some(query) = &query {
            let hits = self.symbol_store.search(query, WALK_ROOTS, &Within::default()).await?;
            roots.extend(hits.into_iter().map(|(_, symbol)| symbol));
        }
        let mut met = roots.clone();
        if ids.is_empty() && query.is_none() {
            roots = participants.symbols();
        }
        let walked = self.symbol_store.walk(&roots, depth, WALK_ROOM).await?;
        let dangling: Vec<String> = missing.into_iter().chain(walked.dangling).collect();
        met.extend(walked.symbols);
        let new: Vec<String> = met
            .into_iter()
            .filter(|symbol| participants.bring(symbol.clone(), SymbolReason::Loaded))
            .map(|symbol| symbol.id)
            .collect();
        let note = if new.is_empty() {
            "recurse_graph: no linked symbols loaded".to_owned()
        } else {
            format!("recurse_graph: loaded linked symbols [{}]", new.join(", "))
        };
        let result = json!({ "status": "ok", "depth": depth, "query": query, "loaded": new, "dangling": dangling, "cut": walked.cut });
        Ok(noted(result, note))
    }

    async fn feedback(&self, kind: &str, target: &str, reason: &str) -> Result<PerformedCommand> {
        check_id(target)?;
        let mut of = DocumentKind::Symbol;
        for other in [DocumentKind::Agent, DocumentKind::Kit] {
            if self.symbol_store.get(DocumentKind::Symbol, target).await?.is_none()
                && self.symbol_store.get(other, target).await?.is_some()
            {
                of = other;
            }
        }
        let author = self.author(&format!("[{kind}] {reason}"));
        let known = self.symbol_store.feedback(of, target, &author).await?;
        Ok(json!({ "status": "ok", "type": kind, "target": target, "kind": of, "known": known }).into())
    }

    async fn task(&self, task: &str, payload: &Value) -> Result<PerformedCommand> {
        let ends = match task {
            "complete_inference_session" => Some(Stop::Complete),
            "terminate_inference_session" => Some(Stop::Terminated),
            _ => None,
        };
        if ends.is_some() {
            return Ok(PerformedCommand { ends, ..json!({ "status": "ok", "task": task }).into() });
        }
        let (Some((service, operation)), Some(dispatch)) = (task.split_once('.'), self.dispatch) else {
            let reason = "a task is complete_inference_session, terminate_inference_session or <service>.<operation>";
            return Ok(json!({ "status": "unknown_task", "task": task, "reason": reason }).into());
        };
        let job = dispatch.dispatch(service, operation, payload).await?;
        Ok(json!({ "status": "dispatched", "task": task, "job_id": job }).into())
    }

    /// The symbols of a list, and the entries that lead to none, in their order.
    async fn fetch(&self, ids: &[WantedId]) -> Result<(Vec<Symbol>, Vec<String>)> {
        let names: Vec<String> = ids.iter().filter_map(|wanted| wanted.id.clone()).collect();
        let mut symbols = self.symbol_store.symbols(&names).await?.into_iter();
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for wanted in ids {
            match wanted.id.as_ref().and_then(|_| symbols.next().flatten()) {
                Some(symbol) => found.push(symbol),
                None => missing.push(wanted.shown.clone()),
            }
        }
        Ok((found, missing))
    }

    /// A symbol that this run stored takes part in it.
    fn changed(&self, participants: &mut Participants, body: Value) -> Result<PerformedCommand> {
        let symbol = Symbol::read(&body)?;
        participants.refresh(&symbol);
        participants.bring(symbol, SymbolReason::Loaded);
        Ok(body.into())
    }

    fn author(&self, reason: &str) -> Author {
        Author::new(self.by.clone(), self.at_ms).because(reason)
    }
}

fn shown(symbols: &[Symbol]) -> Vec<Value> {
    symbols.iter().map(Symbol::json).collect()
}

fn added(action: &str, participants: &mut Participants, symbols: Vec<Symbol>) -> String {
    let ids: Vec<String> = symbols
        .into_iter()
        .filter(|symbol| participants.bring(symbol.clone(), SymbolReason::Loaded))
        .map(|symbol| symbol.id)
        .collect();
    match ids.is_empty() {
        true => format!("{action}: no new symbols added"),
        false => format!("{action}: added symbols [{}]", ids.join(", ")),
    }
}

/// JSON with its keys in order, at every depth.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            Value::Object(keys.into_iter().map(|key| (key.clone(), sorted(&fields[key]))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
