//! Tool calls of a role: reads, changes of one campaign, control tools, an author's writes. Only `service` uses it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::store::ChangedBy;
use super::GameSession;
use crate::service::Cx;
use acheron_base::{Error, Result, blocking};
use acheron_dm::act::{Act, ActResult};
use acheron_dm::files::Files;
use acheron_dm::load;
use acheron_dm::mechanics::maps::MapChange;
use acheron_dm::tools::control::{self, Plan, is_control};
use acheron_dm::tools::{self, Call, Role, run};
use acheron_dm::world::ObjectKind;

impl GameSession {
    /// Runs tool calls of a role. Calls that only read run first. The changes of a batch are one transaction: if one call
    /// fails, nothing has been changed.
    pub async fn tools(
        self: &Arc<Self>,
        cx: Option<&Cx>,
        role: &str,
        id: Option<String>,
        calls: Vec<Call>,
        scope_confirmed: bool,
    ) -> Result<Value> {
        let named = Role::named(role)?;
        for call in &calls {
            tools::admit(named, call)?;
        }
        if matches!(named, Role::Author | Role::Builder) && !scope_confirmed && calls.iter().any(writes) {
            let asked = run::questionnaire(&json!({"role": role, "scope": "pending", "count": 10}));
            return Err(Error::forbidden(format!(
                "pending scope: {role} writes after these are settled (scope_confirmed): {}",
                asked["questions"]
            )));
        }
        let changes = |call: &Call| tools::changes_campaign(named, call);
        let control: Vec<&Call> = calls.iter().filter(|call| is_control(call)).collect();
        let own: Vec<usize> = (0..calls.len()).filter(|at| changes(&calls[*at])).collect();
        if !control.is_empty() && !own.is_empty() {
            return Err(Error::invalid("control tools and changes of a campaign do not go into one batch"));
        }
        if named == Role::Author {
            return self.author(cx, calls).await;
        }
        let mut results = vec![json!({"status": "ok"}); calls.len()];
        for (at, call) in calls.iter().enumerate().filter(|(_, call)| !is_control(call) && !changes(call)) {
            results[at] = self.look(id.clone(), call).await?;
        }
        if !own.is_empty() {
            let batch: Vec<Call> = own.iter().map(|at| calls[*at].clone()).collect();
            let id = self.meant(tools::one_campaign(&batch, id)?).await?;
            let whole = {
                let calls = calls.clone();
                move |done: &ActResult| tool_results(&calls, with_changes(results.clone(), &own, &done.output))
            };
            let act = Act::Tools { role: role.to_owned(), calls: batch };
            let done = self.act(&ends_with(cx, whole.clone()), &id, act).await?;
            return Ok(whole(&done));
        }
        let told = tool_results(&calls, results);
        if !control.is_empty() {
            self.carry_out(&ends_with_value(cx, &told), control::plan(&control)?).await?;
        }
        Ok(told)
    }

    async fn carry_out(self: &Arc<Self>, by: &ChangedBy, plan: Plan) -> Result<()> {
        let (session, by, seed) = (self.clone(), by.clone(), self.now_ms());
        blocking(move || {
            session.campaigns().carry_out(&by, &plan, seed, &session.now(), &ActResult::default())?;
            if plan.made {
                session.show(&plan.id);
            }
            Ok(())
        })
        .await
    }

    /// Runs a call that changes no campaign.
    async fn look(self: &Arc<Self>, id: Option<String>, call: &Call) -> Result<Value> {
        if call.name == "generate_questionnaire" {
            return Ok(run::questionnaire(&call.arguments));
        }
        let named = tools::one_campaign(std::slice::from_ref(call), id)?;
        let (session, id, call) = (self.clone(), self.meant(named).await?, call.clone());
        blocking(move || {
            let (save, world) = session.campaigns().play(&id)?;
            run::look(save.context(&world, &session.now()), &call)
        })
        .await
    }

    /// Runs the calls of an author: each sees what those before it would write, and all is written at the end.
    async fn author(self: &Arc<Self>, cx: Option<&Cx>, calls: Vec<Call>) -> Result<Value> {
        let (session, cx) = (self.clone(), cx.cloned());
        blocking(move || {
            let mut seen: BTreeMap<String, Files> = BTreeMap::new();
            let mut written: BTreeMap<String, Files> = BTreeMap::new();
            let mut results = Vec::new();
            for call in &calls {
                if call.name == "generate_questionnaire" {
                    results.push(run::questionnaire(&call.arguments));
                    continue;
                }
                let id = cartridge_of(call)?;
                let files = match seen.entry(id.clone()) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(fresh) => fresh.insert(session.campaigns().cartridge_files(&id)?),
                };
                let (answer, write) = run::author(files, call, &id)?;
                if let Some((path, text)) = write {
                    files.insert(path.clone(), text.clone());
                    written.entry(id).or_default().insert(path, text);
                }
                results.push(answer);
            }
            let told = tool_results(&calls, results);
            if !written.is_empty() {
                let changed: Vec<String> = written.keys().cloned().collect();
                let by = ends_with_value(cx.as_ref(), &told);
                session.campaigns().write_cartridges(&by, written, &ActResult::default())?;
                changed.iter().for_each(|id| session.show_cartridge(id));
            }
            Ok(told)
        })
        .await
    }
}

impl GameSession {
    /// Changes the map of a cartridge: a version more, with its reason. Campaigns note the version with their next move.
    pub(super) async fn change_map(
        self: &Arc<Self>,
        cx: Option<&Cx>,
        cartridge: String,
        change: MapChange,
        reason: String,
    ) -> Result<Value> {
        let (session, cx) = (self.clone(), cx.cloned());
        blocking(move || {
            let world = session.campaigns().cartridge(&cartridge)?;
            let known = |at: &str| world.object(at).is_some_and(|object| object.kind == ObjectKind::Loc);
            let map = world.map.change(&change, &reason, known)?;
            let path = load::map_path(&world.files);
            let path = path.ok_or_else(|| Error::not_found(format!("cartridge {cartridge} has no map")))?;
            let text = serde_json::to_string_pretty(&map).map_err(|fault| Error::internal(fault.to_string()))?;
            let changed = json!({"version": map.version, "reason": map.reason});
            let by = ends_with_value(cx.as_ref(), &changed);
            let written = Files::from([(path.to_owned(), format!("{text}\n"))]);
            session.campaigns().write_cartridges(&by, BTreeMap::from([(cartridge, written)]), &ActResult::default())?;
            Ok(changed)
        })
        .await
    }
}

/// Whether an author or a builder must have settled the questions before this call.
fn writes(call: &Call) -> bool {
    matches!(
        call.name.as_str(),
        "write_patch" | "register_handle" | "copy_template" | "bind_campaign" | "init_campaign" | "set_active"
    )
}

/// The cartridge that an author's call names.
fn cartridge_of(call: &Call) -> Result<String> {
    let named = ["cartridge_path", "path", "index_path"].iter().find_map(|key| call.arguments[*key].as_str());
    let own = named.and_then(|path| path.strip_prefix("cartridges/")).and_then(|path| path.split('/').next());
    own.map(str::to_owned)
        .ok_or_else(|| Error::invalid(format!("{}: the path must begin with cartridges/<id>/", call.name)))
}

/// A change of the call that `cx` belongs to, which ends with `result`.
fn ends_with(cx: Option<&Cx>, result: impl Fn(&ActResult) -> Value + Send + Sync + 'static) -> ChangedBy {
    cx.map_or_else(ChangedBy::no_call, |cx| ChangedBy::call(cx, result))
}

fn ends_with_value(cx: Option<&Cx>, told: &Value) -> ChangedBy {
    let told = told.clone();
    ends_with(cx, move |_| told.clone())
}

/// The results with those of the calls that changed the campaign, which the act tells.
fn with_changes(mut results: Vec<Value>, own: &[usize], told: &str) -> Vec<Value> {
    let done: Value = serde_json::from_str(told).unwrap_or_default();
    for (n, at) in own.iter().enumerate() {
        results[*at] = done["tool_results"][n]["result"].clone();
    }
    results
}

fn tool_results(calls: &[Call], results: Vec<Value>) -> Value {
    let named = calls.iter().zip(results).map(|(call, result)| json!({"name": call.name, "result": result}));
    json!({ "tool_results": named.collect::<Vec<_>>() })
}
