//! Reads a batch of control tools as one change of one campaign: created, bound, initialised, selected.

use super::Call;
use crate::init::Answers;
use acheron_base::{Error, Result};

/// The combined effect of a batch.
#[derive(Debug, Default)]
pub struct Plan {
    pub id: String,
    /// It is made, and must not be there yet.
    pub made: bool,
    /// The cartridge, and the lock on its version; the newest of its line if none is given.
    pub bound: Option<(String, Option<String>)>,
    pub answers: Option<Box<Answers>>,
    /// It becomes the one that is played.
    pub active: bool,
}

/// Whether a call creates, binds, initialises or selects a campaign.
pub fn is_control(call: &Call) -> bool {
    matches!(call.name.as_str(), "copy_template" | "bind_campaign" | "init_campaign" | "set_active")
}

/// Reads the batch. Nothing is looked up: whether it can be done is found out before anything is.
pub fn plan(calls: &[&Call]) -> Result<Plan> {
    let mut plan = Plan::default();
    for (at, call) in calls.iter().enumerate() {
        let text = |key: &str| call.arguments[key].as_str().unwrap_or_default().to_owned();
        let path = text(if call.name == "copy_template" { "dst" } else { "campaign_path" });
        let id = path.trim_start_matches("campaigns/");
        match at {
            0 => plan.id = id.to_owned(),
            _ if plan.id == id => (),
            _ => return Err(Error::invalid(format!("one batch is about one campaign, not {} and {id}", plan.id))),
        }
        let begun = plan.answers.is_some() || plan.active;
        match call.name.as_str() {
            "copy_template" if at == 0 => plan.made = true,
            "bind_campaign" if !begun => plan.bound = Some((text("cartridge_id"), Some(text("version_lock")))),
            "init_campaign" if !plan.active => {
                let answers = serde_json::from_value(call.arguments["answers"].clone());
                let answers = answers.map_err(|fault| Error::invalid(format!("answers: {fault}")))?;
                plan.answers = Some(Box::new(answers));
            }
            "set_active" => plan.active = true,
            other => return Err(Error::invalid(format!("{other} comes too late in the batch"))),
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn call(name: &str, arguments: Value) -> Call {
        Call { name: name.into(), arguments }
    }

    #[test]
    fn a_batch_is_one_campaign_in_the_order_of_its_life() {
        let copy = |id: &str| call("copy_template", json!({"dst": format!("campaigns/{id}")}));
        let bind = call(
            "bind_campaign",
            json!({"campaign_path": "campaigns/a", "cartridge_id": "brinewick", "version_lock": "1.0.x"}),
        );
        let active = call("set_active", json!({"campaign_path": "campaigns/a"}));
        let init = call("init_campaign", json!({"campaign_path": "campaigns/a", "answers": {"pc_name": "Ann"}}));
        let whole = plan(&[&copy("a"), &bind, &init, &active]).unwrap();
        assert_eq!((whole.id.as_str(), whole.made, whole.active, whole.answers.is_some()), ("a", true, true, true));
        assert_eq!(whole.bound, Some(("brinewick".into(), Some("1.0.x".into()))));
        for (calls, why) in [
            (vec![&active, &bind], "bind_campaign comes too late in the batch"),
            (vec![&bind, &copy("a")], "copy_template comes too late in the batch"),
            (vec![&active, &init], "init_campaign comes too late in the batch"),
            (vec![&copy("b"), &active], "one batch is about one campaign, not b and a"),
        ] {
            assert_eq!(plan(&calls).unwrap_err().message, why);
        }
    }
}
