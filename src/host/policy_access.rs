//! Access control by the policy: decides, counts refusals and writes them down.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::RwLock;
use serde_json::Value;

use super::refusal_rate::{Noted, RefusalRate};
use crate::contract::Effect;
use crate::doors::RefusalLog;
use crate::policy::{self, Action, Policy, PrincipalCaller};
use crate::service::{ServiceAccess, ServiceContext};
use crate::state::audit::{self, Record};
use acheron_approvals::AskingRule;
use acheron_base::{Clock, Error, Result};
use acheron_store::Store;
use acheron_vfs::{Access, AccessControl, Caller};

pub struct PolicyAccess {
    policy: RwLock<Arc<Policy>>,
    store: Store,
    clock: Clock,
    refused: AtomicU64,
    rate: RefusalRate,
    /// The services, whose `status.json` shows refusals.
    services: OnceLock<Weak<ServiceContext>>,
}

impl PolicyAccess {
    pub fn new(policy: Policy, store: Store, clock: Clock) -> Self {
        PolicyAccess {
            policy: RwLock::new(Arc::new(policy)),
            store,
            clock,
            refused: AtomicU64::new(0),
            rate: RefusalRate::default(),
            services: OnceLock::new(),
        }
    }

    /// Shows refusals in the `status.json` of these services.
    pub fn tell(&self, services: &Arc<ServiceContext>) {
        _ = self.services.set(Arc::downgrade(services)); // there is only one
    }

    pub fn policy(&self) -> Arc<Policy> {
        self.policy.read().clone()
    }

    /// Decides from now on by the policy that `latest` makes. It is made while nobody else can replace it: of two changes at the
    /// same time, the later one would otherwise be undone by the earlier.
    pub fn follow(&self, latest: impl FnOnce() -> Result<Policy>) -> Result<()> {
        let mut policy = self.policy.write();
        *policy = Arc::new(latest()?);
        Ok(())
    }

    /// Writes a refusal to the log and the audit, unless its principal has had so many that they are only counted.
    fn write_down(&self, principal: String, pid: u32, action: &str, path: &str, reason: &str) {
        let at_ms = self.clock.now_ms();
        let Noted::Written { omitted } = self.rate.note(&principal, at_ms) else { return };
        tracing::warn!(principal, pid, action, path, omitted, "refused");
        let entry = audit::AuditEntry {
            at_ms,
            principal,
            pid,
            action: action.to_owned(),
            path: path.to_owned(),
            allowed: false,
            reason: reason.to_owned(),
        };
        drop(self.store.write(move |tx| {
            if omitted > 0 {
                let more = Record::new(entry.at_ms, "denied").with("principal", entry.principal.as_str());
                audit::note(tx, &more.with("count", omitted));
            }
            audit::insert(tx, &entry)
        }));
    }

    fn refuse<T>(&self, caller: &Caller, action: Action, path: &str, reason: String) -> Result<T> {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.write_down(caller.principal().to_string(), caller.pid, action.name(), path, &reason);
        Err(Error::forbidden(reason))
    }

    /// Whether what is written to `path` can wait for a decision.
    fn can_wait(&self, path: &str) -> bool {
        self.services.get().and_then(Weak::upgrade).is_some_and(|services| services.takes_calls_at(path))
    }

    /// Tells of refusals that were only counted, once their flood has ended.
    pub fn tell_counted(&self) {
        let at_ms = self.clock.now_ms();
        for (principal, omitted) in self.rate.counted(at_ms) {
            let record = Record::new(at_ms, "denied").with("principal", principal).with("count", omitted);
            drop(self.store.write(move |tx| {
                audit::note(tx, &record);
                Ok(())
            }));
        }
    }

    /// How many were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl AccessControl for PolicyAccess {
    fn tell_refusal(&self, caller: &Caller, path: &str, error: &Error) {
        if let Some(services) = self.services.get().and_then(Weak::upgrade) {
            services.refused(caller, path, error);
        }
    }

    fn check(&self, caller: &Caller, access: Access, path: &str) -> Result<()> {
        let action = Action::from(access);
        let decision = policy::authorize(&self.policy(), caller.principal(), action, path);
        match decision.asks.is_some() {
            // The call that is written there waits.
            true if action == Action::Invoke && self.can_wait(path) => Ok(()),
            true => self.refuse(caller, action, path, cannot_wait(action, decision.reason)),
            false if decision.allowed => Ok(()),
            false => self.refuse(caller, action, path, decision.reason),
        }
    }

    fn sees_all(&self, caller: &Caller) -> bool {
        caller.principal() == &policy::Principal::Operator
    }

    fn sees(&self, caller: &Caller, path: &str) -> bool {
        policy::sees(&self.policy(), caller.principal(), path)
    }

    fn sees_file(&self, caller: &Caller, path: &str) -> bool {
        policy::sees_file(&self.policy(), caller.principal(), path)
    }

    fn has_denied_below(&self, caller: &Caller, path: &str) -> bool {
        policy::bounds::divided(&self.policy(), caller.principal(), path)
    }
}

impl RefusalLog for PolicyAccess {
    fn refused(&self, who: &str, action: &str, path: &str, reason: &str) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.write_down(who.to_owned(), 0, action, path, reason);
    }
}

/// Why a rule that asks refuses: what is done there cannot wait.
fn cannot_wait(action: Action, reason: String) -> String {
    match action {
        Action::Write => format!("{reason}; a write does not wait: write in a view, whose promotion is asked about"),
        _ => format!("{reason}, and what is written here cannot wait for a decision"),
    }
}

impl ServiceAccess for PolicyAccess {
    fn admit(&self, caller: &Caller, path: &str) -> Result<Option<AskingRule>> {
        let decision = policy::authorize(&self.policy(), caller.principal(), Action::Invoke, path);
        match decision.asks {
            Some(rule) => Ok(Some(rule.asking())),
            None if decision.allowed => Ok(None),
            None => self.refuse(caller, Action::Invoke, path, decision.reason),
        }
    }

    fn permissions(&self, caller: &Caller, path: &str, operations: &[(String, Effect)]) -> Value {
        let operations = operations.iter().map(|(name, effect)| (name.as_str(), effect.name()));
        policy::permissions(&self.policy(), caller.principal(), path, operations)
    }
}
