//! What one agent may do to the symbols that all agents share: it changes the documents that it made itself, and writes as
//! many bytes as `limits.symbols_bytes` allows. The operator changes all of them, and so does the host when it puts in the
//! catalogue.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::change::{LedgerAction, LedgerEntry};
use super::store::Author;
use crate::policy::Principal;
use crate::state::quota::{QuotaKind, Quotas};
use acheron_base::{Error, Result};

/// The agent behind an author, as the ledger names it; `None` for the operator and the host.
fn agent(author: &Author) -> Option<&str> {
    let who = author.by.who.as_str();
    matches!(Principal::named(who), Principal::Agent(_)).then_some(who)
}

/// Refuses a change of a document that another one made. `about` names the document.
pub fn may_change(about: &str, ledger: &[LedgerEntry], author: &Author) -> Result<()> {
    let Some(agent) = agent(author) else { return Ok(()) };
    let maker = ledger.iter().find(|change| change.act != LedgerAction::Feedback).map(|change| &change.by.who);
    match maker {
        Some(maker) if maker != agent => Err(Error::forbidden(format!(
            "{about} was made by {maker}, and symbols are shared by all agents: only its maker and the operator change it; \
             put one of your own under another id"
        ))),
        _ => Ok(()),
    }
}

/// Counts the bytes that each agent has written to the ledgers.
#[derive(Default)]
pub struct WrittenBytes {
    pub quotas: Arc<Quotas>,
    by_author: Mutex<HashMap<String, u64>>,
}

impl WrittenBytes {
    pub fn new(quotas: Arc<Quotas>) -> WrittenBytes {
        WrittenBytes { quotas, by_author: Mutex::default() }
    }

    /// Takes over what was counted in the store.
    pub fn set(&self, counted: Vec<(String, u64)>) {
        self.by_author.lock().extend(counted);
    }

    /// Refuses changes that are more than the author may write.
    pub fn check<'a>(&self, author: &Author, changes: impl IntoIterator<Item = &'a LedgerEntry>) -> Result<u64> {
        let more = changes.into_iter().map(size).sum();
        if let Some(agent) = agent(author) {
            let used = self.by_author.lock().get(agent).copied().unwrap_or(0);
            self.quotas.check(QuotaKind::Symbols, used, more)?;
        }
        Ok(more)
    }

    pub fn add(&self, author: &Author, bytes: u64) {
        if let Some(agent) = agent(author) {
            *self.by_author.lock().entry(agent.to_owned()).or_default() += bytes;
        }
    }
}

/// The bytes that a change takes in the store.
fn size(change: &LedgerEntry) -> u64 {
    serde_json::to_string(change).map_or(0, |text| text.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::change::{By, DocumentKind};
    use super::super::store::entry;
    use super::*;

    #[test]
    fn an_agent_changes_what_it_made_and_the_operator_everything() {
        let by = |who: &str| Author::new(By::who(who), 0);
        let put = |who: &str| entry(DocumentKind::Symbol, "a", 1, LedgerAction::Put, &by(who), None);
        let remark = entry(DocumentKind::Symbol, "a", 0, LedgerAction::Feedback, &by("agent mal"), None);
        let ledger = [remark, put("agent ada"), put("operator")];
        let may = |ledger: &[LedgerEntry], who: &str| may_change("symbol a", ledger, &by(who)).is_ok();
        assert!(may(&ledger, "agent ada") && may(&ledger, "operator") && !may(&ledger, "agent mal"));
        assert!(may(&[], "agent mal"), "a new one");
        assert!(!may(&[put("catalogue")], "agent mal") && may(&[put("catalogue")], "catalogue"));
        let written = WrittenBytes::default();
        written.quotas.set(crate::state::quota::ByteLimits { symbols_bytes: 400, ..Default::default() });
        let more = written.check(&by("agent mal"), &ledger[1..2]).unwrap();
        written.add(&by("agent mal"), 400 - more + 1);
        assert_eq!(written.check(&by("agent mal"), &ledger[1..2]).unwrap_err().errno(), libc::EDQUOT);
        assert!(
            written.check(&by("agent ada"), &ledger[1..2]).is_ok() && written.check(&by("operator"), &ledger).is_ok()
        );
    }
}
