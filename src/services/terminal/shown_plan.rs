//! `sandbox.json`: what a program will find around it. The operator reads the plan itself, from which `acheron exec` starts
//! programs; an agent reads it in the names that are valid inside, without those of the host.

use serde_json::{Value, json};

use super::surroundings::Surroundings;
use crate::policy::{Principal, PrincipalCaller};
use acheron_sandbox::{Level, Plan, Visibility};
use acheron_vfs::Caller;

/// The plan as a caller may read it.
pub(super) fn shown(around: &Surroundings, caller: &Caller) -> Value {
    let plan = &around.plan(vec!["sh".to_owned()]);
    let mut shown = match caller.principal() {
        Principal::Operator => json!(plan),
        _ => inside(plan),
    };
    if !around.hosts.is_empty() {
        shown["hosts"] = json!(around.hosts);
    }
    shown["not_held"] = json!(plan.level.not_held());
    shown
}

fn inside(plan: &Plan) -> Value {
    let binds: Vec<Value> = plan
        .binds
        .iter()
        .map(|bind| {
            let mut shown = json!({ "target": bind.target, "read_only": bind.read_only });
            if plan.level == Level::Landlock {
                // There its programs must use this name.
                shown["source"] = json!(bind.source);
            }
            shown
        })
        .collect();
    let rules: Vec<_> = plan.path_rules.iter().filter(|rule| rule.show != Visibility::Hidden).collect();
    json!({
        "agent": plan.agent,
        "cwd": plan.cwd,
        "level": plan.level,
        "binds": binds,
        "links": plan.links,
        "path_rules": rules,
        "system": plan.system,
        "network": plan.network,
        "limits": plan.limits,
        "agent_limits": plan.together.as_ref().map(|shared| &shared.limits),
    })
}
