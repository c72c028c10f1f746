//! Tool calls.

use super::*;
use acheron_base::Code;
use acheron_dm::tools::Call;

#[tokio::test]
async fn tools_run_under_their_role() {
    let (_root, session, _files) = begun(Arc::new(NoNarrator)).await;
    let call = |name: &str, arguments: Value| Call { name: name.into(), arguments };
    let bind = || {
        vec![call(
            "bind_campaign",
            json!({"campaign_path": "campaigns/c9", "cartridge_id": "brinewick", "version_lock": "1.0.x"}),
        )]
    };
    let pending = session.tools(None, "BUILDER", None, bind(), false).await.unwrap_err();
    assert!(pending.message.starts_with("pending scope: BUILDER"), "row 129: {pending}");
    assert!(
        session.tools(None, "", None, vec![], false).await.unwrap_err().message.starts_with("no role given"),
        "row 130"
    );
    let made = vec![call("copy_template", json!({"src": "campaigns/_template", "dst": "campaigns/c9"}))];
    let made =
        made.into_iter().chain(bind()).chain([call("set_active", json!({"campaign_path": "campaigns/c9"}))]).collect();
    let results = session.tools(None, "BUILDER", None, made, true).await.unwrap();
    assert_eq!(results["tool_results"].as_array().map(Vec::len), Some(3), "row 24");
    let rolled = session
        .tools(
            None,
            "DM",
            Some("c1".into()),
            vec![call("roll_check", json!({"dc": 12, "advantage": "normal", "stat": "int"}))],
            false,
        )
        .await;
    assert_eq!(rolled.unwrap()["tool_results"][0]["result"]["dc"], 12);
    let routes = vec![call("route_lookup", json!({"routes_path": "ROUTES.md", "command_head": "[LOOK]"}))];
    let routes = session.tools(None, "DM", Some("c1".into()), routes, false).await.unwrap();
    assert_eq!(routes["tool_results"][0]["result"]["routes"][0], "locations/LOCATION_INDEX.md", "row 45");
    let index = "cartridges/brinewick/locations/LOCATION_INDEX.md";
    let add = vec![call(
        "register_handle",
        json!({"cartridge_path": "cartridges/brinewick", "index_path": index, "handle": "@old_mill", "aliases": ["mill"]}),
    )];
    session.tools(None, "AUTHOR", None, add, true).await.unwrap();
    let look = vec![call("validate_index_spec", json!({"path": index}))];
    assert_eq!(
        session.tools(None, "AUTHOR", None, look, false).await.unwrap()["tool_results"][0]["result"]["status"],
        "ok",
        "row 54"
    );
    let secret = vec![call("read_file", json!({"path": ".DM_BLUEPRINT.md"}))];
    assert_eq!(
        session.tools(None, "SAVE_READ", Some("c1".into()), secret, false).await.unwrap_err().code,
        Code::Forbidden,
        "row 49"
    );
}

#[tokio::test]
async fn a_tool_changes_the_campaign_that_it_names() {
    let (root, session, _files) = begun(Arc::new(NoNarrator)).await;
    session.new_campaign(&ChangedBy::no_call(), "c2", "brinewick", Some(8)).await.unwrap();
    let answers = serde_json::from_value(json!({"preset": "Mystery Investigation", "pc_name": "Bo"})).unwrap();
    session.act(&ChangedBy::no_call(), "c2", Act::Init { answers: Box::new(answers) }).await.unwrap();
    let heat = |at: &str| {
        let content = json!({"indicators": {"Heat": 2}}).to_string();
        let arguments = json!({"campaign_path": at, "mode": "patch", "content": content});
        Call { name: "update_state_panel".into(), arguments }
    };
    let read =
        |id: &str| std::fs::read_to_string(root.path().join(format!("campaigns/{id}/STATE_PANEL.json"))).unwrap();
    let active = read("c2");
    session.tools(None, "DM", None, vec![heat("campaigns/c1")], false).await.unwrap();
    assert!(read("c1").contains("\"Heat\": 2"), "the named campaign is changed");
    assert_eq!(read("c2"), active, "the active one is not");
    let both = vec![heat("campaigns/c1"), heat("campaigns/c2")];
    assert!(
        session
            .tools(None, "DM", None, both, false)
            .await
            .unwrap_err()
            .message
            .contains("one batch is about one campaign")
    );
    let other = session.tools(None, "DM", Some("c2".into()), vec![heat("campaigns/c1")], false).await.unwrap_err();
    assert!(other.message.contains("not c2 and c1"), "{other}");
    assert_eq!(read("c2"), active);
}

/// The bytes of every file under the root, by path.
fn bytes(root: &tempfile::TempDir) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let (mut open, mut found) = (vec![root.path().to_owned()], std::collections::BTreeMap::new());
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[tokio::test]
async fn a_batch_of_control_tools_is_one_transaction() {
    let (root, session, files) = begun(Arc::new(NoNarrator)).await;
    let call = |name: &str, arguments: Value| Call { name: name.into(), arguments };
    let copy = || call("copy_template", json!({"src": "campaigns/_template", "dst": "campaigns/c9"}));
    let bind = |lock: &str| {
        let arguments = json!({"campaign_path": "campaigns/c9", "cartridge_id": "brinewick", "version_lock": lock});
        call("bind_campaign", arguments)
    };
    let init = |name: &str| {
        let answers = json!({"preset": "Mystery Investigation", "pc_name": name, "date": "2026-11-16"});
        call("init_campaign", json!({"campaign_path": "campaigns/c9", "answers": answers}))
    };
    let active = || call("set_active", json!({"campaign_path": "campaigns/c9"}));
    let before = bytes(&root);
    for (calls, why) in [
        (vec![copy(), bind("7.x.x"), active()], "version_lock mismatch"),
        (vec![copy(), bind("1.x.x"), init(""), active()], "missing PC fields"),
        (vec![copy(), active(), bind("1.x.x")], "bind_campaign comes too late"),
        (vec![copy(), call("set_active", json!({"campaign_path": "campaigns/c1"}))], "one batch is about one campaign"),
        (vec![bind("1.x.x"), active()], "campaign not found"),
    ] {
        let refused = session.tools(None, "BUILDER", None, calls, true).await.unwrap_err();
        assert!(refused.message.contains(why), "{why}: {refused}");
        assert_eq!(bytes(&root), before, "{why}: something was changed");
    }
    let whole = vec![copy(), bind("1.x.x"), init("Bo"), active()];
    session.tools(None, "BUILDER", None, whole, true).await.unwrap();
    assert!(read(&files, "active.json").await.contains("\"campaign\": \"c9\""));
    say(&files, "c9", "[LOOK]{around}").await.unwrap();
    assert_eq!(session.campaigns().replay("c9").unwrap(), (3, None));
}
