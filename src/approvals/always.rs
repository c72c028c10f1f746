//! `agents/<id>/permissions/always.json`: the answers that hold for longer than one deed. Writing the list without an entry
//! revokes it; nothing can be added or changed here. `policy` shows none of it to agents.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::Approvals;
use crate::policy::PrincipalCaller as _;
use acheron_approvals::Exception;
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller, ChangeNotifier, Item, Listing, STARTED, Stat, VersionStore, pretty, text};

const README: &str = "\
# permissions

`always.json` lists what you have allowed this agent for longer than once (`allow for …`, `allow always`), each as an exception of
the rule that asked: if that rule changes, or a later rule denies, it counts no more. Write the list without an entry to revoke
that entry: `jq 'map(select(.id != \"exc-…\"))' always.json | sponge always.json`, or `echo '[]' > always.json`. Nothing can be
added here.
";

/// Who is told when the exceptions of an agent change.
#[derive(Default)]
pub(super) struct AlwaysNotifiers(Mutex<HashMap<String, Arc<ChangeNotifier>>>);

impl AlwaysNotifiers {
    fn of(&self, agent: &str) -> Arc<ChangeNotifier> {
        self.0.lock().entry(agent.to_owned()).or_default().clone()
    }

    pub fn changed(&self, agent: &str) {
        self.of(agent).bytes();
    }
}

/// `permissions/` of one agent.
pub fn directory(approvals: &Arc<Approvals>, agent: &str) -> Listing {
    let notifier = approvals.always.of(agent);
    let always = AlwaysFile { approvals: approvals.clone(), agent: agent.to_owned(), notifier };
    Listing::default().file("README.md", text(README)).file("always.json", Item::new(Arc::new(always)))
}

struct AlwaysFile {
    approvals: Arc<Approvals>,
    agent: String,
    notifier: Arc<ChangeNotifier>,
}

impl AlwaysFile {
    fn exceptions(&self) -> Vec<Exception> {
        let now_ms = self.approvals.clock().now_ms();
        let all = self.approvals.exceptions.read();
        all.iter().filter(|it| it.agent == self.agent && !it.is_over(now_ms)).cloned().collect()
    }

    /// The entries that a new text leaves out.
    fn left_out(&self, text: &[u8]) -> Result<Vec<String>> {
        let kept: Vec<Exception> = serde_json::from_slice(text).map_err(|error| {
            Error::invalid(format!("always.json is the list of exceptions as it was, without those to revoke: {error}"))
        })?;
        let all = self.exceptions();
        if let Some(strange) = kept.iter().find(|exception| !all.contains(exception)) {
            return Err(Error::forbidden(format!(
                "{} is new or changed; an exception comes from an answer to a request, and can only be revoked here",
                strange.id
            )));
        }
        Ok(all.into_iter().filter(|exception| !kept.contains(exception)).map(|exception| exception.id).collect())
    }
}

impl VersionStore for AlwaysFile {
    fn stat(&self) -> Stat {
        Stat { size: pretty(&self.exceptions()).len() as u64, modified: STARTED }
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        Some(&self.notifier)
    }

    fn latest(&self) -> Answer<Bytes> {
        Answer::ok(pretty(&self.exceptions()))
    }

    fn check(&self, _caller: &Caller, draft: &[u8], _new: std::ops::Range<usize>) -> Result<()> {
        // A list that is complete is refused by the write, whose error even a shell reports.
        match draft.trim_ascii_end().ends_with(b"]") {
            true => self.left_out(draft).map(drop),
            false => Ok(()),
        }
    }

    fn save(&self, caller: &Caller, bytes: Bytes) -> Answer<()> {
        match self.left_out(&bytes) {
            Ok(ids) if ids.is_empty() => Answer::ok(()),
            Ok(ids) => Answer::soon(self.approvals.revoke(&self.agent, ids, &caller.principal().to_string())),
            Err(error) => Answer::refuse(error),
        }
    }
}
