//! Tool calls of a role: reads, changes of one campaign, control tools, an author's writes. Only `service` uses it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::GameSession;
use acheron_base::{Error, Result, blocking};
use acheron_dm::act::Act;
use acheron_dm::tools::control::{self, Plan, is_control};
use acheron_dm::tools::{self, Call, Role, run};

impl GameSession {
    /// Runs tool calls of a role. Calls that only read run first. The changes of a campaign are one transaction, and so are
    /// the control tools of a batch: if one call fails, nothing has been changed. An author's writes are made one by one.
    pub async fn tools(
        self: &Arc<Self>,
        role: &str,
        id: Option<String>,
        calls: Vec<Call>,
        scope_confirmed: bool,
    ) -> Result<Value> {
        let named = Role::named(role)?;
        for call in &calls {
            tools::admit(named, call)?;
        }
        let writes = |call: &Call| {
            matches!(
                call.name.as_str(),
                "write_patch" | "register_handle" | "copy_template" | "bind_campaign" | "init_campaign" | "set_active"
            )
        };
        if matches!(named, Role::Author | Role::Builder) && !scope_confirmed && calls.iter().any(writes) {
            let asked = run::questionnaire(&json!({"role": role, "scope": "pending", "count": 10}));
            return Err(Error::forbidden(format!(
                "pending scope: {role} writes after these are settled (scope_confirmed): {}",
                asked["questions"]
            )));
        }
        let changes = |call: &Call| tools::changes_campaign(named, call);
        if calls.iter().any(is_control) && calls.iter().any(changes) {
            return Err(Error::invalid("control tools and changes of a campaign do not go into one batch"));
        }
        let mut results = vec![json!({"status": "ok"}); calls.len()];
        for (at, call) in calls.iter().enumerate().filter(|(_, call)| !is_control(call) && !changes(call)) {
            results[at] = self.look(named, id.clone(), call).await?;
        }
        let own: Vec<usize> = (0..calls.len()).filter(|at| changes(&calls[*at])).collect();
        if !own.is_empty() {
            let batch: Vec<Call> = own.iter().map(|at| calls[*at].clone()).collect();
            let id = self.meant(tools::one_campaign(&batch, id)?).await?;
            let done = self.act(&id, Act::Tools { role: role.to_owned(), calls: batch }).await?;
            let done: Value = serde_json::from_str(&done.output).map_err(|fault| Error::internal(fault.to_string()))?;
            for (n, at) in own.into_iter().enumerate() {
                results[at] = done["tool_results"][n]["result"].clone();
            }
        }
        let control: Vec<&Call> = calls.iter().filter(|call| is_control(call)).collect();
        if !control.is_empty() {
            self.carry_out(control::plan(&control)?).await?;
        }
        let named = calls.iter().zip(results).map(|(call, result)| json!({"name": call.name, "result": result}));
        Ok(json!({ "tool_results": named.collect::<Vec<_>>() }))
    }

    async fn carry_out(self: &Arc<Self>, plan: Plan) -> Result<()> {
        let (session, seed) = (self.clone(), self.now_ms());
        blocking(move || {
            session.campaigns().carry_out(&plan, seed, &session.now())?;
            if plan.made {
                session.show(&plan.id);
            }
            Ok(())
        })
        .await
    }

    /// Runs a call that changes no campaign.
    async fn look(self: &Arc<Self>, role: Role, id: Option<String>, call: &Call) -> Result<Value> {
        if role == Role::Author || call.name == "generate_questionnaire" {
            return self.author(call).await;
        }
        let named = tools::one_campaign(std::slice::from_ref(call), id)?;
        let (session, id, call) = (self.clone(), self.meant(named).await?, call.clone());
        blocking(move || {
            let (save, world) = session.campaigns().play(&id)?;
            run::look(save.context(&world, &session.now()), &call)
        })
        .await
    }

    async fn author(self: &Arc<Self>, call: &Call) -> Result<Value> {
        let (session, call) = (self.clone(), call.clone());
        blocking(move || {
            if call.name == "generate_questionnaire" {
                return Ok(run::questionnaire(&call.arguments));
            }
            let named = ["cartridge_path", "path", "index_path"].iter().find_map(|key| call.arguments[*key].as_str());
            let own = named.and_then(|path| path.strip_prefix("cartridges/")).and_then(|path| path.split('/').next());
            let own =
                own.ok_or_else(|| Error::invalid(format!("{}: the path must begin with cartridges/<id>/", call.name)))?;
            let files = session.campaigns().cartridge_files(own)?;
            let (answer, write) = run::author(&files, &call, own)?;
            if let Some((path, text)) = write {
                session.campaigns().write_cartridge(own, &path, &text)?;
                session.show_cartridge(own);
            }
            Ok(answer)
        })
        .await
    }
}
