//! A change of documents as one transaction: WATCH, look, MULTI, EXEC.

use std::collections::{BTreeMap, BTreeSet};

use redis::aio::MultiplexedConnection;
use redis::{RedisError, cmd, pipe};
use serde_json::Value;

use super::{CHANGED, LEDGER, Redis, parse};
use crate::services::symbols::backend::conflict;
use crate::services::symbols::change::{DocumentKind, Edit, LedgerAction, LedgerEntry, places, version_of};
use acheron_base::{Code, Error, Result};

/// Commands with their arguments, to be run together.
#[derive(Default)]
pub(super) struct Commands(pub Vec<Vec<String>>);

impl Commands {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.push(words.map(str::to_owned).to_vec());
    }
}

impl Redis {
    /// One try of a transaction. `None` when another client changed a watched key meanwhile.
    pub(super) async fn attempt(&self, connection: &mut MultiplexedConnection, edits: &[Edit]) -> Result<Option<()>> {
        let fault = |fault: RedisError| self.fault(&fault);
        let of = |edit: &Edit| self.document(edit.change.kind, &edit.change.id);
        let keys: Vec<String> = edits.iter().map(of).collect::<BTreeSet<_>>().into_iter().collect();
        let epoch = self.key("epoch");
        cmd("WATCH").arg(&keys).arg(&epoch).query_async::<()>(connection).await.map_err(fault)?;
        let mut bodies: Vec<Option<String>> =
            cmd("MGET").arg(&keys).arg(&epoch).query_async(connection).await.map_err(fault)?;
        let known = bodies.pop().flatten();
        let parsed = bodies.iter().map(|body| body.as_deref().and_then(parse));
        let mut now: BTreeMap<String, Option<Value>> = keys.iter().cloned().zip(parsed).collect();
        let mut work = Commands::default();
        let mut moves: BTreeMap<String, i64> = BTreeMap::new();
        if known.is_none() {
            // The first change of a history names it by the server's clock: no other one on it begins at that moment.
            let now: (String, String) = cmd("TIME").query_async(connection).await.map_err(fault)?;
            work.add(["SET", &epoch, &format!("{}.{}", now.0, now.1)]);
        }
        for edit in edits {
            let slot = now.entry(of(edit)).or_default();
            let found = slot.as_ref().map_or(0, version_of);
            if edit.change.act != LedgerAction::Feedback {
                if found != edit.expected {
                    cmd("UNWATCH").query_async::<()>(connection).await.map_err(fault)?;
                    return Err(conflict(edit, found));
                }
                self.replace(&mut work, &edit.change, slot.as_ref(), &mut moves);
                slot.clone_from(&edit.change.body);
            }
            self.log(&mut work, &edit.change);
        }
        for (domain, by) in moves {
            if by >= 0 {
                work.add(["SADD", &self.key("domains"), &domain]);
                continue;
            }
            // Whether this empties the domain is decided here, so no other client may add to it meanwhile.
            let list = self.listed(DocumentKind::Symbol, "domain", &domain);
            cmd("WATCH").arg(&list).query_async::<()>(connection).await.map_err(fault)?;
            let left: i64 = cmd("ZCARD").arg(&list).query_async(connection).await.map_err(fault)?;
            if left + by <= 0 {
                work.add(["SREM", &self.key("domains"), &domain]);
            }
        }
        work.add(["INCRBY", &self.key("changes"), &edits.len().to_string()]);
        work.add(["LTRIM", &self.key("changed"), &(-CHANGED).to_string(), "-1"]);
        work.add(["PUBLISH", &self.key("changes"), "1"]);
        match self.run(connection, &work).await {
            // Taking away needs room for its entry in the ledger, and makes more.
            Err(full) if full.code == Code::NoSpace && edits.iter().all(|edit| edit.change.body.is_none()) => {
                let told = |error: Error| Error::new(full.code, format!("{}; {}", full.message, error.message));
                self.run_though_full(connection, &keys, &bodies, &work).await.map_err(told)
            }
            outcome => outcome,
        }
    }

    async fn run(&self, connection: &mut MultiplexedConnection, work: &Commands) -> Result<Option<()>> {
        let mut together = pipe();
        together.atomic();
        for words in &work.0 {
            let mut command = cmd(&words[0]);
            words[1..].iter().for_each(|word| _ = command.arg(word));
            together.add_command(command);
        }
        let done: Option<redis::Value> =
            together.query_async(connection).await.map_err(|fault: RedisError| self.fault(&fault))?;
        // Redis goes on after a command that fails inside EXEC: its error stands among the answers.
        let done = done.map(redis::Value::extract_error).transpose().map_err(|fault| self.fault(&fault))?;
        Ok(done.map(drop))
    }

    /// Puts the new body in the place of the old one, in every list.
    fn replace(
        &self,
        work: &mut Commands,
        change: &LedgerEntry,
        old: Option<&Value>,
        moves: &mut BTreeMap<String, i64>,
    ) {
        let LedgerEntry { kind, id, body, .. } = change;
        for (body, arrives) in [(old, false), (body.as_ref(), true)] {
            let Some((domain, tag)) = body.map(places) else { continue };
            let lists = [("domain", domain), ("tag", tag)].into_iter().filter(|(_, value)| !value.is_empty());
            for list in lists.map(|(by, value)| self.listed(*kind, by, value)).chain([self.ids(*kind)]) {
                if arrives {
                    work.add(["ZADD", &list, "0", id]);
                } else {
                    work.add(["ZREM", &list, id]);
                }
            }
            if *kind == DocumentKind::Symbol && !domain.is_empty() {
                *moves.entry(domain.to_owned()).or_default() += if arrives { 1 } else { -1 };
            }
        }
        let key = self.document(*kind, id);
        match body {
            Some(body) => work.add(["SET", &key, &body.to_string()]),
            None => work.add(["DEL", &key]),
        }
    }

    fn log(&self, work: &mut Commands, change: &LedgerEntry) {
        let name = format!("{}:{}", change.kind.name(), change.id);
        let line = serde_json::to_string(change).unwrap_or_default(); // cannot fail: plain data
        let ledger = self.key(&format!("ledger:{name}"));
        work.add(["RPUSH", &ledger, &line]);
        work.add(["LTRIM", &ledger, &(-LEDGER).to_string(), "-1"]);
        work.add(["RPUSH", &self.key("changed"), &name]);
    }
}
