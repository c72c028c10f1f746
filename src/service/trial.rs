//! For tests: a warden who lets everybody do everything.

use serde_json::{Value, json};

use super::Warden;
use crate::contract::Effect;
use crate::error::Result;
use crate::policy::Action;
use crate::vfs::{Caller, Gate};

pub struct Anyone;

impl Gate for Anyone {
    fn check(&self, _caller: &Caller, _action: Action, _path: &str) -> Result<()> {
        Ok(())
    }

    fn sees(&self, _caller: &Caller, _path: &str) -> bool {
        true
    }
}

impl Warden for Anyone {
    fn permissions(&self, _caller: &Caller, _path: &str, operations: &[(String, Effect)]) -> Value {
        json!(operations.len())
    }
}
