//! The service: commands in, answers out. Everything else is in the cores.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};

use super::command::{Command, Opening, PromptList, PromptView};
use super::evaluate::{Evaluated, evaluate};
use super::memory::MemoryState;
use super::opened::Opened;
use super::openings::{OpenRequest, Openings};
use super::override_store::{Inspected, LATEST, OverrideStore};
use super::resources::kinds::{FILESYSTEM, MEMORY, ResourceKinds, SESSION};
use super::resources::{ProjectFiles, Snapshot};
use super::tool_call::{self, Called, PromptTools};
use super::{Library, files, openings, override_store};
use crate::agent::ask::PaidModel;
use crate::contract::Operation;
use crate::policy::{Principal, PrincipalCaller};
use crate::service::WithoutCall;
use crate::service::{Cx, Service, ServiceContext};
use acheron_base::{ConfinedDir, Error, Result, Room, blocking};
use acheron_prompts::manifest::Need;
use acheron_vfs::{Caller, Node};

/// The model of that name, or the agent's own.
pub type ChooseModel = Arc<dyn Fn(Option<&str>) -> Result<PaidModel> + Send + Sync>;
/// The directory of a project that may be written and taken back; asked each time, for rights may have gone.
pub type OpenProject = Arc<dyn Fn(&str) -> Result<OpenedProject> + Send + Sync>;
pub use super::resources::OpenedProject;

/// The parts from which the prompts of one agent are built.
pub struct PromptsParts {
    pub library: Arc<Library>,
    /// Shared by all agents: `<state>/prompts/overrides`.
    pub overrides: Arc<OverrideStore>,
    /// The agent's own: what is open, and copies for rollback.
    pub home: std::path::PathBuf,
    pub room: Arc<Room>,
    pub agent: String,
    pub context: Arc<ServiceContext>,
    pub projects: OpenProject,
    pub models: Option<ChooseModel>,
    /// Kinds of resources that Rust code adds to those that there are.
    pub kinds: ResourceKinds,
}

pub struct Prompts {
    openings: Arc<Openings>,
    models: Option<ChooseModel>,
}

impl Prompts {
    pub fn new(parts: PromptsParts) -> Result<Prompts> {
        let open = ConfinedDir::create(parts.home.join("open"))?.with_room(parts.room.clone());
        let copies = parts.home.join("copies");
        ConfinedDir::create(&copies)?;
        let mut kinds = ResourceKinds::new();
        let (context, agent) = (parts.context.clone(), parts.agent.clone());
        kinds.insert(
            MEMORY.to_owned(),
            Arc::new(move |_: &Need| Ok(Arc::new(MemoryState::new(context.clone(), &agent)) as _)),
        );
        let (projects, ids, room) = (parts.projects.clone(), parts.context.ids.clone(), parts.room);
        kinds.insert(
            FILESYSTEM.to_owned(),
            Arc::new(move |need: &Need| {
                let (projects, project) = (projects.clone(), need.project.clone().unwrap_or_default());
                projects(&project)?;
                let ids = ids.clone();
                let fresh = move || ids.id("copy");
                let copies = ConfinedDir::open(&copies)?.with_room(room.clone());
                Ok(Arc::new(ProjectFiles::new(move || projects(&project), copies, fresh)) as _)
            }),
        );
        for (name, make) in parts.kinds {
            if name == SESSION || kinds.contains_key(&name) {
                return Err(Error::already_exists(format!("there is a kind of resource `{name}` already")));
            }
            kinds.insert(name, make);
        }
        let openings = Openings::new(parts.library, parts.overrides, open, kinds)?;
        Ok(Prompts { openings: Arc::new(openings), models: parts.models })
    }
}

fn latest(tag: Option<&str>) -> &str {
    tag.filter(|tag| !tag.is_empty()).unwrap_or(LATEST)
}

fn value<T: Serialize>(answer: T) -> Result<Value> {
    serde_json::to_value(answer).map_err(|error| Error::internal(error.to_string()))
}

#[async_trait]
impl Service for Prompts {
    const NAME: &'static str = "prompts";
    const ABOUT: &'static str = "Prompts: typed, composed of sections, overridable without a change of their files.\n\n\
        `templates/` shows what there is. `control/open.json` opens one: write its params, `cat text`, write the \
        model's answer to `reply`, read `output.json`. What is open keeps the template it was opened with, over a \
        restart too; its `status.json` says when that has been edited since.";
    type Command = Command;
    type Output = Value;

    fn operations() -> Vec<Operation> {
        let change = json!({"title": "Rename a function", "diff": "-fn a() {}\n+fn b() {}"});
        let open = json!({"open_id": "p1"});
        let with = |more: Value| {
            let mut all = open.clone();
            if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
                all.extend(more);
            }
            all
        };
        let prompt = json!({"prompt": "review/change"});
        let section = json!({"target": "section", "path": "look", "body": "Look at the tests first."});
        vec![
            Operation::read("list").gives::<PromptList>().example(json!({})),
            Operation::read("render").example(json!({"prompt": "review/change", "params": {"Change": change}})),
            Operation::execute("open")
                .gives::<Opening>()
                .example(json!({"prompt": "review/change", "params": {"Change": change}})),
            Operation::execute("bind").example(with(json!({"params": {"Manner": {"findings": 3}}}))),
            Operation::execute("parse").example(json!({"prompt": "review/change",
                "reply": "{\"verdict\": \"take\", \"summary\": \"Fine.\", \"findings\": []}"})),
            Operation::execute("expand").example(with(json!({"section_keys": ["search"], "reason": "to look around"}))),
            Operation::read("read_section").example(with(json!({"section_key": "look.behaviour"}))),
            Operation::execute("evaluate")
                .gives::<Evaluated>()
                .example(open.clone())
                .deadline(Duration::from_secs(600)),
            Operation::execute("call_tool").gives::<Called>().example(with(json!({"tool": "search_code.search",
                "arguments": {"query": "fn main"}}))),
            Operation::execute("snapshot").gives::<Snapshot>().example(with(json!({"tag": "before"}))),
            Operation::execute("restore").idempotent().example(with(json!({"snapshot": "before"}))),
            Operation::read("override_list").gives::<Vec<Inspected>>().example(json!({})),
            Operation::read("override_resolve").example(prompt.clone()),
            Operation::execute("override_store").example(json!({"prompt": "review/change", "change": section})),
            Operation::execute("override_upsert").example(json!({"prompt": "review/change", "file": {
                "version": 2, "ns": "review", "prompt_key": "change", "tag": "draft"}})),
            Operation::execute("override_seed")
                .idempotent()
                .example(json!({"prompt": "review/change", "tag": "draft"})),
            Operation::execute("override_delete").example(json!({"prompt": "review/change", "tag": "draft"})),
            Operation::execute("close").example(open),
            Operation::execute("reload").idempotent().example(json!({})),
        ]
    }

    fn files(&self) -> Vec<(String, Node)> {
        files::files(&self.openings)
    }

    fn check(&self, _caller: &Caller, command: Command) -> Result<()> {
        match command {
            Command::Open { prompt, time_limit_ms, .. } => {
                check_time_limit(time_limit_ms)?;
                openings::ns_and_key(&prompt).map(drop)
            }
            Command::Parse { open_id: None, prompt: Some(prompt), .. }
            | Command::Render { prompt, .. }
            | Command::OverrideResolve { prompt, .. }
            | Command::OverrideStore { prompt, .. }
            | Command::OverrideSeed { prompt, .. }
            | Command::OverrideDelete { prompt, .. } => openings::ns_and_key(&prompt).map(drop),
            Command::OverrideUpsert { prompt, file } => {
                let (ns, key) = openings::ns_and_key(&prompt)?;
                override_store::check_file(ns, key, &file).map(drop)
            }
            Command::Parse { open_id: Some(_), prompt: None, .. } => Ok(()),
            Command::Parse { .. } => Err(either()),
            _ => Ok(()),
        }
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Value> {
        match command {
            Command::Evaluate { open_id, model } => self.evaluate(cx, &open_id, model.as_deref()).await,
            Command::CallTool { open_id, tool, arguments, tag } => {
                let opened = self.openings.get(&open_id)?;
                let called = tool_call::call(cx, &cx.caller, &opened, &tool, Value::Object(arguments), tag).await;
                self.save(&open_id).await?;
                value(called?)
            }
            Command::OverrideStore { .. }
            | Command::OverrideUpsert { .. }
            | Command::OverrideSeed { .. }
            | Command::OverrideDelete { .. }
                if cx.caller.principal() != &Principal::Operator =>
            {
                // One agent's words would stand in the prompts of all others.
                Err(Error::forbidden("overrides are shared by all agents: only the operator writes them"))
            }
            // The rest touches files at most.
            command => {
                let (openings, cx) = (self.openings.clone(), cx.clone());
                blocking(move || at_once(&openings, &cx, command)).await
            }
        }
    }
}

impl Prompts {
    async fn evaluate(&self, cx: &Cx, open_id: &str, model: Option<&str>) -> Result<Value> {
        let opened = self.openings.get(open_id)?;
        // Which model is asked decides what it costs and what it may read: that is the operator's to say.
        if model.is_some() && cx.caller.principal() != &Principal::Operator {
            return Err(Error::forbidden("only the operator chooses another model"));
        }
        let choose = self.models.as_ref().ok_or_else(|| Error::unavailable("this agent has no model to ask"))?;
        let model = choose(model)?;
        let runner = PromptTools { cx, opened: &opened };
        let evaluation = evaluate(&self.openings.library, &opened, &model, &runner);
        let evaluated = match opened.time_limit_ms() {
            None => evaluation.await,
            // A tool that is under way is ended and taken back when the evaluation is dropped.
            Some(limit) => match tokio::time::timeout(Duration::from_millis(limit), evaluation).await {
                Ok(evaluated) => evaluated,
                Err(_) => {
                    let _taken_back = opened.turn.lock().await;
                    Err(Error::timeout(format!(
                        "the prompt allows an evaluation {limit} ms; what a tool under way had changed is as it was"
                    )))
                }
            },
        };
        self.save(open_id).await?;
        value(evaluated?)
    }

    async fn save(&self, open_id: &str) -> Result<()> {
        let (openings, opened) = (self.openings.clone(), self.openings.get(open_id)?);
        // Not as part of the call: what the tools and the model did has happened anyway.
        blocking(move || openings.save(&WithoutCall, &opened, Value::Null)).await
    }
}

fn at_once(openings: &Openings, cx: &Cx, command: Command) -> Result<Value> {
    match command {
        Command::List {} => value(listed(openings)),
        Command::Render { prompt, params, tag, headings, session, visibility } => {
            let mut prompt = openings.prompt(&prompt, latest(tag.as_deref()))?;
            prompt.bind_json(&params)?;
            prompt.headings = headings;
            prompt.deadline_ms = deadline(cx);
            prompt.session.values = session;
            for (path, visibility) in visibility {
                prompt.set_visibility(&path, visibility)?;
            }
            value(prompt.render()?)
        }
        Command::Open { prompt, params, id, tag, headings, session, resources, time_limit_ms } => {
            check_time_limit(time_limit_ms)?;
            let (deadline_ms, now_ms) = (deadline(cx), cx.clock.now_ms());
            let needs = resources;
            let asked =
                OpenRequest { id, prompt, params, tag, headings, session, needs, time_limit_ms, deadline_ms, now_ms };
            let opening = |opened: &Opened| {
                let path = format!("/agents/{}/prompts/open/{}", cx.agent, opened.id);
                json!(Opening { open_id: opened.id.clone(), path })
            };
            Ok(opening(&*openings.open(cx, asked, opening)?))
        }
        Command::Close { open_id } => openings.close(cx, &open_id),
        Command::Parse { reply, open_id: None, prompt: Some(prompt) } => {
            let template = openings.template(&prompt)?;
            value(template.output.as_ref().ok_or_else(undeclared)?.parse(&reply)?)
        }
        Command::Reload {} => {
            let faults = openings.library.reload();
            Ok(json!({"faults": faults.iter().map(ToString::to_string).collect::<Vec<_>>()}))
        }
        command => on_opened(openings, cx, command),
    }
}

/// Changes an open prompt, and saves it afterwards.
fn on_opened(openings: &Openings, cx: &Cx, command: Command) -> Result<Value> {
    match command {
        Command::Bind { open_id, params, resources } => {
            let opened = openings.get(&open_id)?;
            let _turn = opened.turn.blocking_lock();
            opened.prompt().bind_json(&params)?; // both or neither: the params must be good before resources change
            let names = openings.bind_resources(&opened, resources)?;
            opened.bind_json(&params)?;
            let bound: Vec<String> = opened.saved().params.into_keys().collect();
            saved(openings, cx, &opened, json!({"bound": bound, "resources": names}))
        }
        Command::Parse { reply, open_id: Some(open_id), prompt: None } => {
            let opened = openings.get(&open_id)?;
            match opened
                .take_reply(&reply)
                .map_err(Error::from)
                .and_then(|parsed| value(parsed.ok_or_else(undeclared)?))
            {
                Ok(parsed) => saved(openings, cx, &opened, parsed),
                Err(error) => {
                    openings.save(&WithoutCall, &opened, Value::Null)?; // it counts the replies that did not fit
                    Err(error)
                }
            }
        }
        Command::Parse { .. } => Err(either()),
        Command::Expand { open_id, section_keys, reason } => {
            let opened = openings.get(&open_id)?;
            let expansion = opened.expand(&section_keys, &reason)?;
            saved(openings, cx, &opened, value(expansion)?)
        }
        Command::ReadSection { open_id, section_key } => {
            value(openings.get(&open_id)?.prompt().read_section(&section_key)?)
        }
        Command::Snapshot { open_id, tag } => {
            let opened = openings.get(&open_id)?;
            let _turn = opened.turn.blocking_lock();
            opened.resources().hold_all()?;
            let snapshot = opened.resources().snapshot(cx.job_id(), cx.clock.now_ms(), tag.as_deref(), None)?;
            opened.keep_snapshot(snapshot.clone());
            saved(openings, cx, &opened, value(snapshot)?)
        }
        Command::Restore { open_id, snapshot } => {
            let opened = openings.get(&open_id)?;
            let _turn = opened.turn.blocking_lock();
            let snapshot = opened.find_snapshot(&snapshot)?;
            opened.resources().hold_all()?;
            opened.resources().restore(&snapshot)?;
            let restored = json!({"restored": snapshot.id, "resources": snapshot.resources.keys().collect::<Vec<_>>()});
            saved(openings, cx, &opened, restored)
        }
        command => on_overrides(openings, cx, command),
    }
}

/// Saves an open prompt that the call changed, and ends the call with `result`.
fn saved(openings: &Openings, cx: &Cx, opened: &Opened, result: Value) -> Result<Value> {
    openings.save(cx, opened, result.clone())?;
    Ok(result)
}

fn on_overrides(openings: &Openings, cx: &Cx, command: Command) -> Result<Value> {
    let store = &openings.overrides;
    match command {
        Command::OverrideList {} => value(store.inspect()?),
        Command::OverrideResolve { prompt, tag } => {
            let template = openings.template(&prompt)?;
            let resolved = store.resolve(&template, latest(tag.as_deref()))?;
            let all = &resolved.overrides;
            Ok(json!({
                "sections": all.sections.keys().collect::<Vec<_>>(),
                "tools": all.tools.keys().collect::<Vec<_>>(),
                "task_examples": all.tasks.keys().map(|(path, index)| format!("{path}#{index}")).collect::<Vec<_>>(),
                "stale": resolved.stale,
                "tags": store.tags(&template.ns, &template.key)?,
            }))
        }
        Command::OverrideStore { prompt, change, tag } => {
            value(store.store(cx, &*openings.template(&prompt)?, latest(tag.as_deref()), &change)?)
        }
        Command::OverrideUpsert { prompt, file } => {
            store.upsert(cx, &*openings.template(&prompt)?, &file)?;
            value(file)
        }
        Command::OverrideSeed { prompt, tag } => {
            value(store.seed(&*openings.template(&prompt)?, latest(tag.as_deref()))?)
        }
        Command::OverrideDelete { prompt, tag } => {
            let (ns, key) = openings::ns_and_key(&prompt)?;
            value(store.delete(cx, ns, key, latest(tag.as_deref()))?)
        }
        _ => Err(Error::internal("this waits")), // cannot: see invoke
    }
}

fn check_time_limit(time_limit_ms: Option<u64>) -> Result<()> {
    match time_limit_ms {
        Some(0) => Err(Error::invalid("time_limit_ms is at least 1")),
        _ => Ok(()),
    }
}

fn either() -> Error {
    Error::invalid("parse wants either an open_id or a prompt")
}

fn undeclared() -> Error {
    Error::invalid("this prompt does not declare structured output")
}

/// When the job of this call is out of time.
fn deadline(cx: &Cx) -> Option<u64> {
    let allowed_ms = u64::try_from(cx.deadline.as_millis()).ok()?;
    cx.job.created_at_ms.checked_add(allowed_ms)
}

fn listed(openings: &Openings) -> PromptList {
    let shown = openings.library.list().into_iter().map(|(template, origin)| PromptView {
        prompt: template.id(),
        name: template.name.clone(),
        origin: json!(origin),
        params: template.records.keys().cloned().collect(),
        output: template.output.as_ref().map(|output| output.name.clone()),
    });
    PromptList {
        prompts: shown.collect(),
        open: openings.ids(),
        stale: openings.stale_ids(),
        faults: openings.library.faults().iter().map(ToString::to_string).collect(),
    }
}

#[cfg(test)]
mod tests;
