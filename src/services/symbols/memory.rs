//! Documents in memory: the backend as one would say it aloud. The suite holds the real ones against it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;

use super::backend::{Backend, Filter, conflict};
use super::change::{Act, Change, Edit, Kind, Record, places};
use crate::error::Result;

#[derive(Default)]
pub struct Memory {
    kept: Mutex<Kept>,
}

#[derive(Clone, Default)]
struct Kept {
    now: BTreeMap<(Kind, String), Record>,
    changes: Vec<Change>,
}

#[async_trait]
impl Backend for Memory {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    async fn get(&self, kind: Kind, ids: &[String]) -> Result<Vec<Option<Record>>> {
        let kept = self.kept.lock().unwrap();
        Ok(ids.iter().map(|id| kept.now.get(&(kind, id.clone())).cloned()).collect())
    }

    async fn page(&self, kind: Kind, filter: &Filter, after: Option<&str>, limit: usize) -> Result<Vec<Record>> {
        let kept = self.kept.lock().unwrap();
        let fits = |record: &&Record| {
            let (domain, tag) = places(&record.body);
            after.is_none_or(|after| record.id.as_str() > after)
                && filter.domain.as_deref().is_none_or(|asked| asked == domain)
                && filter.tag.as_deref().is_none_or(|asked| asked == tag)
        };
        let all = kept.now.iter().filter(|((other, _), _)| *other == kind).map(|(_, record)| record);
        Ok(all.filter(fits).take(limit).cloned().collect())
    }

    async fn commit(&self, edits: &[Edit]) -> Result<()> {
        let mut kept = self.kept.lock().unwrap();
        let mut next = kept.clone();
        for edit in edits {
            let change = &edit.change;
            let key = (change.kind, change.id.clone());
            if change.act != Act::Feedback {
                let found = next.now.get(&key).map_or(0, |record| record.version);
                if found != edit.expected {
                    return Err(conflict(edit, found));
                }
                match &change.body {
                    Some(body) => next.now.insert(key, Record::of(&change.id, body.clone())),
                    None => next.now.remove(&key),
                };
            }
            next.changes.push(change.clone());
        }
        *kept = next;
        Ok(())
    }

    async fn ledger(&self, kind: Kind, id: &str) -> Result<Vec<Change>> {
        let kept = self.kept.lock().unwrap();
        Ok(kept.changes.iter().filter(|change| change.kind == kind && change.id == id).cloned().collect())
    }

    async fn domains(&self) -> Result<Vec<String>> {
        let kept = self.kept.lock().unwrap();
        let symbols = kept.now.iter().filter(|((kind, _), _)| *kind == Kind::Symbol);
        let domains: std::collections::BTreeSet<String> =
            symbols.map(|(_, record)| places(&record.body).0.to_owned()).filter(|domain| !domain.is_empty()).collect();
        Ok(domains.into_iter().collect())
    }

    async fn count(&self, kind: Kind) -> Result<usize> {
        Ok(self.kept.lock().unwrap().now.keys().filter(|(other, _)| *other == kind).count())
    }

    async fn since(&self, seen: u64) -> Result<(u64, Vec<(Kind, String)>)> {
        let kept = self.kept.lock().unwrap();
        let later = kept.changes.iter().skip(seen as usize).map(|change| (change.kind, change.id.clone())).collect();
        Ok((kept.changes.len() as u64, later))
    }
}
