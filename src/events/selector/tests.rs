use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn parse(path: &str) -> Result<Selector> {
    Selector::parse(path, "charon", |id| ["mine", "job-1", "last"].contains(&id).then(|| "job-1".to_owned()))
}

#[test]
fn paths_become_selectors_or_are_refused_with_the_reason() {
    let said: Vec<String> = [
        "/agents/self/jobs/job-1/status.json",
        "agents/self/jobs/by/mine/result.txt",
        "/agents/charon/jobs/by/mine",
        "/agents/self/jobs/job-2/status.json",
        "/agents/self/chat/control/input",
        "/agents/self/events/sources/user.json",
        "/agents/self/events/sources/user/go.json",
        "/agents/self/events/sources/time/after/1000.json",
        "/agents/self/events/sources/time/at/5.json",
        "/agents/self/events/sources/time/after/soon.json",
        "/agents/self/events/sources/time/5.json",
        "/agents/self/events/sources/dog.json",
        "/agents/self/events/sources/dog/bark.json",
        "/agents/self/events/sources/user/go",
        "/agents/self/events/sources/user/a/b.json",
        "/agents/self/memory/items/x",
        "/agents/selfish/x",
        "/projects/here/fs/../fs/a",
        "/agents/styx/chat/control/input",
        "/etc/passwd",
        "../../etc/passwd",
        "/",
        "",
    ]
    .into_iter()
    .map(|path| match parse(path) {
        Ok(selector) => format!("{path}: {selector:?}"),
        Err(error) => format!("{path}: {error}"),
    })
    .collect();
    expect![[r#"
        /agents/self/jobs/job-1/status.json: Job("job-1")
        agents/self/jobs/by/mine/result.txt: Job("job-1")
        /agents/charon/jobs/by/mine: Job("job-1")
        /agents/self/jobs/job-2/status.json: there is no job `job-2` to wait for
        /agents/self/chat/control/input: Chat
        /agents/self/events/sources/user.json: Signal(User, None)
        /agents/self/events/sources/user/go.json: Signal(User, Some("go"))
        /agents/self/events/sources/time/after/1000.json: After(1000)
        /agents/self/events/sources/time/at/5.json: At(5)
        /agents/self/events/sources/time/after/soon.json: sources/time/after/soon.json is not a source: it is a number of milliseconds followed by .json
        /agents/self/events/sources/time/5.json: sources/time/5.json is not a source: a time is time/after/<ms>.json or time/at/<unix_ms>.json
        /agents/self/events/sources/dog.json: sources/dog.json is not a source: it is agent.json, hook.json, user.json, mail.json, or a file below agent, hook, user or time
        /agents/self/events/sources/dog/bark.json: sources/dog/bark.json is not a source: its kind is agent, hook, user or time
        /agents/self/events/sources/user/go: sources/user/go is not a source: its file name ends in .json
        /agents/self/events/sources/user/a/b.json: sources/user/a/b.json is not a source: the path is too deep
        /agents/self/memory/items/x: Path("/agents/charon/memory/items/x")
        /agents/selfish/x: /agents/selfish/x belongs to another agent; wait in its own events, or have it send a signal
        /projects/here/fs/../fs/a: Path("/projects/here/fs/a")
        /agents/styx/chat/control/input: /agents/styx/chat/control/input belongs to another agent; wait in its own events, or have it send a signal
        /etc/passwd: /etc/passwd is not in the tree: a path begins with /agents, /projects, /global, /nodes, /mail, /meta, /README.md, /AGENTS.md, /.ignore
        ../../etc/passwd: /etc/passwd is not in the tree: a path begins with /agents, /projects, /global, /nodes, /mail, /meta, /README.md, /AGENTS.md, /.ignore
        /: Path("/")
        : a path to wait for is empty"#]]
    .assert_eq(&said.join("\n"));
}

proptest! {
    #[test]
    fn a_selector_leads_back_to_itself(path in "/agents/self/(events/sources/(user|hook|agent|time/at|time/after)?/?[a-z0-9]{0,4}(\\.json)?|[a-z]{1,8})") {
        if let Ok(selector) = parse(&path) {
            prop_assert_eq!(parse(&selector.path("charon")).unwrap(), selector);
        }
    }

    #[test]
    fn any_path_is_taken_or_refused(path in ".{0,60}") {
        let _ = parse(&path);
    }
}
