//! Access control for tests that allows everything.

use serde_json::{Value, json};

use super::ServiceAccess;
use crate::contract::Effect;
use acheron_base::Result;
use acheron_vfs::{AccessControl, Caller};

pub struct AllowAll;

impl AccessControl for AllowAll {
    fn check(&self, _caller: &Caller, _action: acheron_vfs::Access, _path: &str) -> Result<()> {
        Ok(())
    }

    fn sees(&self, _caller: &Caller, _path: &str) -> bool {
        true
    }
}

impl ServiceAccess for AllowAll {
    fn permissions(&self, _caller: &Caller, _path: &str, operations: &[(String, Effect)]) -> Value {
        json!(operations.len())
    }
}
