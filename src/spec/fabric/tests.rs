use super::*;
use crate::policy::{Action, Policy, Principal, authorize};
use serde_json::json;

fn checked(fabric: serde_json::Value) -> Result<Spec, Vec<String>> {
    let text = json!({ "agents": { "charon": {} }, "fabric": fabric }).to_string();
    Spec::check(&text).map_err(|faults| faults.iter().map(ToString::to_string).collect())
}

#[test]
fn an_offer_allows_what_it_names_and_nothing_else() {
    let offer = json!({ "search_code": { "agent": "charon", "operations": ["search"], "to": ["styx/*"] },
        "mail": { "to": ["lethe/ada"] } });
    let spec = checked(json!({ "url": "nats://127.0.0.1:4222", "node": "acheron", "offer": offer })).unwrap();
    let policy = spec.fabric.unwrap().rules().into_iter();
    let policy = policy.fold(Policy::default(), |policy, (to, path, lender)| policy.offer(to, path, lender).unwrap());
    let policy = policy.agent("charon", &["here".to_owned()], &[]).unwrap();
    let may = |who: &str, action, path: &str| authorize(&policy, &Principal::Far(who.to_owned()), action, path).allowed;
    let search = "/agents/charon/search_code/control/search.json";
    assert!(may("styx/charon", Action::Invoke, search));
    assert!(!may("styx/charon", Action::Write, "/projects/here/x"), "a call reads what charon may read, and no more");
    assert!(
        may("styx/charon", Action::Read, "/projects/here/x") && !may("lethe/ada", Action::Read, "/projects/here/x")
    );
    assert!(!may("styx/charon", Action::Read, "/agents/ada/x"));
    assert!(!may("lethe/charon", Action::Invoke, search));
    assert!(!may("styx/charon", Action::Invoke, "/agents/charon/search_code/control/other.json"));
    assert!(may("lethe/ada", Action::Invoke, "/agents/charon/mail/inbox"));
    assert!(!may("lethe/bob", Action::Invoke, "/agents/charon/mail/inbox"));
    assert!(!may("nonsense", Action::Invoke, search));
}

#[test]
fn every_fault_is_told_with_its_place() {
    let offer = json!({ "dm": { "agent": "nobody", "to": ["everybody"] }, "terminal": { "to": ["*"] } });
    let faults =
        checked(json!({ "url": "http://x", "node": "local", "monitor": "x", "queues": ["A"], "offer": offer }));
    let faults = faults.unwrap_err().join("\n");
    for place in [
        "fabric.node",
        "fabric.url",
        "fabric.monitor",
        "fabric.queues[0]",
        "offer.dm.to[0]",
        "offer.dm.agent",
        "offer.terminal",
    ] {
        assert!(faults.contains(place), "{place} in {faults}");
    }
}
