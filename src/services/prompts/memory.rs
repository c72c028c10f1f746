//! The agent's memory as a resource: a snapshot is which version each item had; a restore brings that version back as
//! a new one, so that nothing is lost, and deletes what is new.
//!
//! Uses the memory service as every other caller does. Its methods wait, so they are called from a thread that may.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::resources::Resource;
use crate::policy::PrincipalCaller;
use crate::service::ServiceContext;
use acheron_base::{Error, Result, if_exists};
use acheron_vfs::Caller;

pub struct MemoryState {
    context: Arc<ServiceContext>,
    agent: String,
}

impl MemoryState {
    pub fn new(context: Arc<ServiceContext>, agent: &str) -> MemoryState {
        MemoryState { context, agent: agent.to_owned() }
    }

    async fn versions(&self) -> Result<BTreeMap<String, u64>> {
        let (tree, caller) = (self.context.tree()?, Caller::agent(&self.agent));
        let items = tree.list(&caller, &format!("/agents/{}/memory/items", self.agent));
        let items = if_exists(items)?.unwrap_or_default();
        let mut versions = BTreeMap::new();
        for item in items {
            let meta = tree.read(&caller, &format!("{}/meta.json", item.path)).await?;
            let meta: Value = serde_json::from_slice(&meta).map_err(|error| Error::internal(error.to_string()))?;
            let version = meta.get("version").and_then(Value::as_u64).unwrap_or_default();
            versions.insert(item.path.rsplit('/').next().unwrap_or_default().to_owned(), version);
        }
        Ok(versions)
    }

    async fn call(&self, op: &str, arguments: Value) -> Result<()> {
        let caller = Caller::agent(&self.agent);
        let job = self.context.call(&caller, &self.agent, "memory", op, arguments).await?;
        match job.end().await.outcome.as_deref() {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    async fn back(&self, was: BTreeMap<String, u64>) -> Result<()> {
        for (name, version) in self.versions().await? {
            let path = format!("/agents/{}/memory/items/{name}", self.agent);
            match was.get(&name) {
                Some(before) if *before == version => {}
                Some(before) => self.call("restore", json!({"memory_path": path, "version": before})).await?,
                None => self.call("delete", json!({"memory_path": path})).await?,
            }
        }
        Ok(())
    }
}

fn read(snapshot: &Value) -> Result<BTreeMap<String, u64>> {
    serde_json::from_value(snapshot.clone()).map_err(|_| Error::invalid("this is no snapshot of a memory"))
}

impl Resource for MemoryState {
    fn snapshot(&self) -> Result<Option<Value>> {
        let versions = self.context.runtime.block_on(self.versions())?;
        Ok(Some(json!(versions)))
    }

    fn prepare(&self, snapshot: &Value) -> Result<()> {
        read(snapshot).map(drop)
    }

    fn restore(&self, snapshot: &Value) -> Result<()> {
        self.context.runtime.block_on(self.back(read(snapshot)?))
    }
}
