//! A contract as one host tells it to another. Pure.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract::{Contract, Effect, Operation};
use acheron_base::Result;

/// The longest call that a host makes of another, whatever that says.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// What a call takes longer because it goes to another host.
const JOURNEY: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToldContract {
    pub about: String,
    pub version: String,
    pub operations: Vec<ToldOperation>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToldOperation {
    pub name: String,
    pub effect: Effect,
    pub deadline_ms: u64,
    pub private: bool,
    pub for_its_reader: bool,
    pub about: String,
    pub example: Option<Value>,
    pub arguments: Value,
    pub result: Value,
}

impl ToldContract {
    /// What a host tells of a service of its own; only these operations.
    pub fn of(contract: &Contract, operations: Option<&[String]>) -> ToldContract {
        let is_told = |operation: &&Operation| operations.is_none_or(|told| told.contains(&operation.name));
        let tell = |operation: &Operation| ToldOperation {
            name: operation.name.clone(),
            effect: operation.effect,
            deadline_ms: operation.deadline.as_millis() as u64,
            private: operation.private,
            for_its_reader: operation.for_its_reader,
            about: operation.about.clone(),
            example: operation.example.clone(),
            arguments: contract.alone(&operation.arguments),
            result: contract.alone(&operation.result),
        };
        let operations = contract.operations.iter().filter(is_told).map(tell).collect();
        ToldContract { about: contract.about.clone(), version: contract.version.clone(), operations }
    }

    /// The contract here. A change over there is more than a change of this host's database; and the id of a call makes it the
    /// same call, so that one that was interrupted here is asked for again.
    pub fn contract(&self, node: &str, service: &str) -> Result<Contract> {
        let heard = |told: &ToldOperation| {
            let effect = match told.effect {
                Effect::Read => Effect::Read,
                Effect::Write | Effect::Execute => Effect::Execute,
            };
            let deadline = (Duration::from_millis(told.deadline_ms) + JOURNEY).min(LONGEST);
            let operation = Operation::new(told.name.as_str(), effect).deadline(deadline).idempotent();
            let operation = operation.about(told.about.as_str()).takes(told.arguments.clone());
            let mut operation = operation.answers(told.result.clone());
            operation.private = told.private;
            operation.for_its_reader = told.for_its_reader;
            operation.example = told.example.clone();
            operation
        };
        let about =
            format!("{}\n\nThis service runs on the host {node}, which decides who may call it.", self.about.trim());
        let contract =
            Contract::told(&format!("{node}/{service}"), &about, self.operations.iter().map(heard).collect())?;
        Ok(contract.flag("network"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contract_survives_the_journey_and_checks_the_same() {
        let operation = Operation::write("put")
            .about("Puts.")
            .takes(serde_json::json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/P"}}, "required": ["p"],
                "$defs": {"P": {"type": "integer"}}}))
            .example(serde_json::json!({"p": 1}));
        let own = Contract::plain("box", "A box.", vec![operation, Operation::read("look").about("Looks.")]).unwrap();
        let text = serde_json::to_string(&ToldContract::of(&own, None)).unwrap();
        let heard = serde_json::from_str::<ToldContract>(&text).unwrap().contract("styx", "box").unwrap();
        assert_eq!(heard.name, "styx/box");
        for (arguments, fine) in [(serde_json::json!({"p": 1}), true), (serde_json::json!({"p": "x"}), false)] {
            assert_eq!(own.check("put", &arguments).is_ok(), fine);
            assert_eq!(heard.check("put", &arguments).is_ok(), fine, "{arguments}");
        }
        let effects: Vec<Effect> = heard.operations.iter().map(|operation| operation.effect).collect();
        assert_eq!(effects, [Effect::Execute, Effect::Read]);
        let told = ToldContract::of(&own, Some(&["look".to_owned()]));
        assert_eq!(told.operations.len(), 1);
    }
}
