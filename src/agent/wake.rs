//! Wake-ups: what happens starts a turn, so that an agent can pursue a goal while nobody speaks to it.
//!
//! Each rule waits for its selector, starts a turn, and waits again when that turn has ended. The agent's budget bounds
//! it: an agent that has nothing left is not woken.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::budget::{Standing, standing};
use super::chat::{Chat, Message};
use super::transcript::Source;
use crate::error::Result;
use crate::events::wait::{Armed, Wait};
use crate::events::{Selector, Watching};
use crate::policy::Principal;

/// One rule, as it stands in the mountspec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wake {
    /// What to wait for: a path as in `events/control/wait.json`.
    pub on: String,
    /// What to say to the agent then.
    pub say: String,
}

/// The rules of an agent at work; they rest when this is dropped.
pub struct Alarms(Vec<tokio::task::AbortHandle>);

impl Drop for Alarms {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

/// Sets the rules of an agent to work. All are checked before any is.
pub fn set(chat: &Chat, rules: &[Wake]) -> Result<Alarms> {
    let mind = chat.mind();
    let diary = mind.office.diaries.of(&mind.agent)?;
    let mut parsed = Vec::new();
    for rule in rules {
        let wait = Wait { paths: vec![rule.on.clone()], timeout_ms: 0, since: None };
        parsed.push((rule.clone(), crate::events::selectors(&diary, &mind.office.book, &wait)?));
    }
    let tasks = parsed.into_iter().map(|(rule, selectors)| {
        // From this moment, not from when the task first runs.
        let (chat, cursor) = (chat.clone(), diary.last());
        mind.office.runtime.spawn(async move { watch(&chat, &rule, &selectors, cursor).await }).abort_handle()
    });
    Ok(Alarms(tasks.collect()))
}

async fn watch(chat: &Chat, rule: &Wake, selectors: &[Selector], mut cursor: u64) {
    let mind = chat.mind().clone();
    let Ok(diary) = mind.office.diaries.of(&mind.agent) else { return };
    loop {
        let armed = Armed {
            selectors: selectors.to_vec(),
            cursor,
            armed_at_ms: mind.office.clock.now_ms(),
            fired: BTreeSet::new(),
            turn: 0,
        };
        let once = !selectors.iter().all(repeats);
        let Ok((Some(found), body)) = Watching::new(&diary, &mind.office.book, armed, None).next().await else {
            return;
        };
        cursor = found.seq.unwrap_or_else(|| diary.last());
        if let Standing::Over(what) = standing(&mind.settings().total, &mind.history.total()) {
            mind.note_budget(json!({"budget": what, "of": "agent", "not_woken_by": rule.on}));
            return;
        }
        let text = format!("{}\n\n{body}", rule.say);
        let message =
            Message { source: Source::Wake(rule.on.clone()), text, from: Principal::Agent(mind.agent.clone()) };
        match chat.say(message).wait().await {
            Ok(job) => _ = job.end().await,
            Err(error) => tracing::warn!(agent = mind.agent, %error, "an agent could not be woken"),
        }
        if once {
            return;
        }
    }
}

/// Whether it can happen again: a moment and the end of a job come once.
fn repeats(selector: &Selector) -> bool {
    !matches!(selector, Selector::At(_) | Selector::Job(_))
}
