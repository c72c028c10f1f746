//! For tests: a warden who lets everybody do everything.

use serde_json::{Value, json};

use super::ServiceAccess;
use crate::contract::Effect;
use acheron_base::Result;
use acheron_vfs::{AccessControl, Caller};

pub struct Anyone;

impl AccessControl for Anyone {
    fn check(&self, _caller: &Caller, _action: acheron_vfs::Access, _path: &str) -> Result<()> {
        Ok(())
    }

    fn sees(&self, _caller: &Caller, _path: &str) -> bool {
        true
    }
}

impl ServiceAccess for Anyone {
    fn permissions(&self, _caller: &Caller, _path: &str, operations: &[(String, Effect)]) -> Value {
        json!(operations.len())
    }
}
