use super::*;

fn spec(about: &str) -> Spec {
    let entry = serde_json::json!({ "about": about });
    Spec::check(&serde_json::json!({ "agents": { "ada": entry } }).to_string()).unwrap()
}

/// What is said of ada at a start with that entry in the mountspec.
fn starts(state: &Path, entry: &str) -> String {
    let ada = AgentProfiles::open(&spec(entry), state).unwrap().get("ada").unwrap();
    format!("{} {}{}", ada.name, ada.spec.about, if ada.paused { " paused" } else { "" })
}

#[test]
fn a_change_holds_over_the_entry_for_which_it_was_made_and_over_no_other() {
    let state = tempfile::tempdir().unwrap();
    let profiles = AgentProfiles::open(&spec("old"), state.path()).unwrap();
    let mut ada = profiles.get("ada").unwrap();
    ada.over = Some(Box::new(ada.spec.clone()));
    (ada.spec.about, ada.name, ada.paused) = ("new".into(), "Ada".into(), true);
    profiles.put("ada", ada).unwrap();
    for (entry, wanted) in [
        ("old", "Ada new paused"),
        ("old", "Ada new paused"),
        ("edited", "ada edited paused"),
        ("old", "ada old paused"), // edited back: what was dropped stays so
    ] {
        assert_eq!(starts(state.path(), entry), wanted);
    }
}

#[test]
fn a_change_that_does_not_fit_the_mountspec_any_more_is_dropped() {
    let state = tempfile::tempdir().unwrap();
    let profiles = AgentProfiles::open(&spec("old"), state.path()).unwrap();
    let mut ada = profiles.get("ada").unwrap();
    ada.over = Some(Box::new(ada.spec.clone()));
    ada.spec.projects = vec!["a project that is gone".into()];
    profiles.put("ada", ada).unwrap();
    assert_eq!(starts(state.path(), "old"), "ada old");
}
