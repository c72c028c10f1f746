//! Wake rules: an event starts a turn, so that an agent can work without being spoken to, or a call of one of its services.
//!
//! Each rule waits for its selector, starts its turn or call, and waits again when that has ended. An agent whose budget is
//! used up is not woken; a call that asks a model finds out by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;

use super::budget::{Standing, standing};
use super::chat::{Chat, ChatMessage};
use super::runtime::AgentRuntime;
use super::transcript::TurnSource;
use crate::events::wait::{Armed, Wait};
use crate::events::{EventLog, Selector, Waiter};
use crate::jobs::Jobs;
use crate::policy::{Principal, PrincipalCaller as _};
use crate::spec::{Wake, WakeCall};
use acheron_base::{ConfinedDir, Result, blocking};
use acheron_vfs::{Caller, line};

const FILE: &str = "woken.json";

/// The active wake rules of an agent; dropping this stops them.
pub struct WakeRules(Vec<tokio::task::AbortHandle>);

impl Drop for WakeRules {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

/// The selectors of the rules of `agent`; an error if one is invalid.
pub fn parsed(jobs: &Jobs, agent: &str, rules: &[Wake]) -> Result<Vec<Vec<Selector>>> {
    let wait = |rule: &Wake| Wait { paths: vec![rule.on.clone()], timeout_ms: 0, since: None };
    rules.iter().map(|rule| crate::events::selectors(agent, jobs, &wait(rule))).collect()
}

/// Starts the rules of an agent, after all of them are checked. A rule that was active before continues at its cursor;
/// a new one starts at the current event.
pub fn set(chat: &Chat, rules: &[Wake]) -> Result<WakeRules> {
    let agent_runtime = chat.agent_runtime();
    let event_log = agent_runtime.context.event_logs.of(&agent_runtime.agent)?;
    let parsed = parsed(&agent_runtime.context.jobs, &agent_runtime.agent, rules)?;
    let heard = Arc::new(WakeCursors::open(agent_runtime.dir.clone(), rules, event_log.last())?);
    let tasks = rules.iter().cloned().zip(parsed).map(|(rule, selectors)| {
        let (chat, heard) = (chat.clone(), heard.clone());
        agent_runtime.context.runtime.spawn(async move { watch(&chat, &rule, &selectors, &heard).await }).abort_handle()
    });
    Ok(WakeRules(tasks.collect()))
}

/// The event up to which each rule has been handled, stored across restarts.
struct WakeCursors {
    dir: Arc<ConfinedDir>,
    cursors: Mutex<BTreeMap<String, u64>>,
}

impl WakeCursors {
    fn open(dir: Arc<ConfinedDir>, rules: &[Wake], last: u64) -> Result<WakeCursors> {
        let known: Option<BTreeMap<String, u64>> =
            dir.read_if_exists(FILE)?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let known = known.unwrap_or_default();
        // What was taken out of the rules is forgotten: put in again, it begins anew.
        let cursor = |rule: &Wake| (rule.on.clone(), known.get(&rule.on).copied().unwrap_or(last).min(last));
        let cursors: BTreeMap<_, _> = rules.iter().map(cursor).collect();
        if cursors != known {
            dir.write(FILE, &line(&cursors))?;
        }
        Ok(WakeCursors { dir, cursors: Mutex::new(cursors) })
    }

    fn cursor(&self, on: &str) -> u64 {
        self.cursors.lock().get(on).copied().unwrap_or_default()
    }

    /// Stores that `on` has been handled up to `cursor`.
    async fn note(self: &Arc<Self>, on: &str, cursor: u64) {
        let (heard, on) = (self.clone(), on.to_owned());
        let written = blocking(move || {
            // Under the lock, so that the last write has all cursors.
            let mut cursors = heard.cursors.lock();
            cursors.insert(on, cursor);
            heard.dir.write(FILE, &line(&*cursors))
        });
        if let Err(error) = written.await {
            tracing::warn!(%error, "the cursor of a wake rule could not be stored");
        }
    }
}

async fn watch(chat: &Chat, rule: &Wake, selectors: &[Selector], heard: &Arc<WakeCursors>) {
    let agent_runtime = chat.agent_runtime().clone();
    let Ok(event_log) = agent_runtime.context.event_logs.of(&agent_runtime.agent) else { return };
    let mut cursor = heard.cursor(&rule.on);
    let caller = Caller::of(Principal::Agent(agent_runtime.agent.clone()));
    // Rules begin while the tree is being built.
    while selectors.iter().any(|it| matches!(it, Selector::Path(_))) && !event_log.has_tree() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let watched = match event_log.watch(&caller, selectors).await {
        Ok(watched) => watched,
        Err(error) => {
            let path = format!("/agents/{}/events/status.json", agent_runtime.agent);
            return event_log.note("wake", &path, json!({"on": rule.on, "error": error.message}));
        }
    };
    loop {
        let armed = Armed {
            selectors: selectors.into(),
            cursor,
            armed_at_ms: agent_runtime.context.clock.now_ms(),
            fired: BTreeSet::new(),
            turn: 0,
            watched: watched.clone(),
        };
        let once = !selectors.iter().all(repeats);
        let Ok((Some(found), body)) = Waiter::new(&event_log, &agent_runtime.context.jobs, armed, None).next().await
        else {
            return;
        };
        cursor = found.seq.unwrap_or_else(|| event_log.last());
        // Mail that the model saw in the turn before is no reason for another one.
        if let Some(id) = body.pointer("/mail/id").and_then(|id| id.as_str())
            && rule.call.is_none()
            && agent_runtime.mail.is_unseen(id).await.is_ok_and(|unseen| !unseen)
        {
            heard.note(&rule.on, cursor).await;
            continue;
        }
        if let Some(call) = &rule.call {
            begin_call(&agent_runtime, rule, call, &event_log).await;
            heard.note(&rule.on, cursor).await;
            if once {
                return;
            }
            continue;
        }
        if let Standing::Over(what) = standing(&agent_runtime.settings().total, &agent_runtime.spent()) {
            agent_runtime.note_budget(json!({"budget": what, "of": "agent", "not_woken_by": rule.on}));
            return heard.note(&rule.on, cursor).await;
        }
        let text = format!("{}\n\n{body}", rule.say);
        let message = ChatMessage {
            source: TurnSource::Wake(rule.on.clone()),
            text,
            from: Principal::Agent(agent_runtime.agent.clone()),
        };
        match chat.say(message).wait().await {
            Ok(job) => {
                heard.note(&rule.on, cursor).await;
                job.end().await;
            }
            Err(error) => tracing::warn!(agent = agent_runtime.agent, %error, "an agent could not be woken"),
        }
        if once {
            return;
        }
    }
}

/// Makes the call of a rule and waits for its end. One that is refused is an event: nobody waits for its answer.
async fn begin_call(runtime: &AgentRuntime, rule: &Wake, call: &WakeCall, log: &Arc<EventLog>) {
    let (agent, arguments) = (&runtime.agent, call.arguments.clone().into());
    let caller = Caller::of(Principal::Agent(agent.clone()));
    match runtime.context.call(&caller, agent, &call.service, &call.op, arguments).await {
        Ok(job) => _ = job.end().await,
        Err(error) => {
            let path = format!("/agents/{agent}/{}/control/{}.json", call.service, call.op);
            log.note("wake", &path, json!({"on": rule.on, "error": error.message}));
        }
    }
}

/// Whether a selector can fire again: a time and the end of a job fire once.
fn repeats(selector: &Selector) -> bool {
    !matches!(selector, Selector::At(_) | Selector::Job(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_rule_goes_on_where_it_stopped_and_a_new_one_begins_now() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Arc::new(ConfinedDir::open(dir.path()).unwrap());
        let rules = ["/a", "/b"].map(|on| Wake { on: on.to_owned(), say: "up".to_owned(), call: None });
        let open = |rules: &[Wake], last| Arc::new(WakeCursors::open(dir.clone(), rules, last).unwrap());
        let heard = open(&rules[..1], 3);
        assert_eq!(heard.cursor("/a"), 3);
        heard.note("/a", 5).await;
        let heard = open(&rules, 9);
        assert_eq!((heard.cursor("/a"), heard.cursor("/b")), (5, 9));
        open(&rules[1..], 9);
        assert_eq!(open(&rules, 12).cursor("/a"), 12, "it was taken out in between");
    }
}
