use proptest::prelude::*;

use super::*;

#[test]
fn paths_are_understood_as_what_they_wait_for() {
    let me = || "self".to_owned();
    let signal =
        |kind, parameter: Option<&str>| Selector::Signal { agent: me(), kind, parameter: parameter.map(str::to_owned) };
    let change = |path: &str| Selector::Change { path: path.to_owned() };
    let job = |agent: &str, job, file| Selector::Job { agent: agent.to_owned(), job, file };
    let table = [
        ("/agents/self/events/sources/user.json", signal(SignalKind::User, None)),
        ("agents/self/events/sources/user/go.json", signal(SignalKind::User, Some("go"))),
        ("/agents/self/events/sources/hook/a.b c.json", signal(SignalKind::Hook, Some("a.b c"))),
        ("/agents/self/events/sources/agent/é.json", signal(SignalKind::Agent, Some("é"))),
        ("/agents/self/events/sources/time/after/0.json", Selector::After { agent: me(), ms: 0 }),
        (
            "/agents/self/events/sources/time/at/1700000000000.json",
            Selector::At { agent: me(), unix_ms: 1_700_000_000_000 },
        ),
        ("/agents/ada/chat/control/input", Selector::Chat { agent: "ada".to_owned() }),
        ("/agents/self/jobs/job-1/status.json", job("self", Job::Id("job-1".to_owned()), JobFile::Status)),
        ("/agents/ada/jobs/job-1/result.txt", job("ada", Job::Id("job-1".to_owned()), JobFile::ResultText)),
        ("/agents/self/jobs/by/mine/result.json", job("self", Job::By("mine".to_owned()), JobFile::ResultJson)),
        ("/agents/self/jobs/last/", job("self", Job::Last, JobFile::Status)),
        ("/agents/self/jobs", change("/agents/self/jobs")),
        ("/agents/self/jobs/job-1/log.txt", change("/agents/self/jobs/job-1/log.txt")),
        ("//agents/./self//memory/items", change("/agents/self/memory/items")),
        ("/projects/here/fs/src", change("/projects/here/fs/src")),
        ("/README.md", change("/README.md")),
    ];
    for (path, expected) in table {
        assert_eq!(Selector::parse(path), Ok(expected), "{path}");
    }
}

#[test]
fn what_can_never_happen_is_refused_with_the_reason() {
    let table = [
        ("", "\"\": name a path below the root"),
        ("/", "\"/\": name a path below the root"),
        ("/agent/self/x", "\"/agent/self/x\": there is no /agent; did you mean agents?"),
        (
            "/etc/passwd",
            "\"/etc/passwd\": there is no /etc; names at the root are agents, nodes, projects, global, meta, README.md, AGENTS.md",
        ),
        ("/agents/self/../x", "\"/agents/self/../x\" climbs by ..; name the path from the root"),
        ("/agents/\0", "\"/agents/\\0\" holds a NUL, which no path can"),
        (
            "/agents/self/events/sources",
            "\"/agents/self/events/sources\": name a source, such as user.json or time/after/1000.json",
        ),
        (
            "/agents/self/events/sources/usr.json",
            "\"/agents/self/events/sources/usr.json\": there is no source \"usr\"; did you mean user?",
        ),
        ("/agents/self/events/sources/user", "\"/agents/self/events/sources/user\": \"user\" must end in .json"),
        (
            "/agents/self/events/sources/user/.json",
            "\"/agents/self/events/sources/user/.json\": a parameter must not be empty",
        ),
        (
            "/agents/self/events/sources/user/a/b.json",
            "\"/agents/self/events/sources/user/a/b.json\": a source is <kind>.json or <kind>/<parameter>.json",
        ),
        (
            "/agents/self/events/sources/time.json",
            "\"/agents/self/events/sources/time.json\": time is waited for as time/after/<ms>.json or time/at/<unix_ms>.json",
        ),
        (
            "/agents/self/events/sources/time/after/-1.json",
            "\"/agents/self/events/sources/time/after/-1.json\": \"-1\" is no number of milliseconds",
        ),
        (
            "/agents/self/events/sources/time/after/007.json",
            "\"/agents/self/events/sources/time/after/007.json\": \"007\" is no number of milliseconds",
        ),
        (
            "/agents/self/events/sources/time/after/1e3.json",
            "\"/agents/self/events/sources/time/after/1e3.json\": \"1e3\" is no number of milliseconds",
        ),
        (
            "/agents/self/jobs/7/status.json",
            "\"/agents/self/jobs/7/status.json\": \"7\" is no job; ids begin with job-",
        ),
        (
            "/agents/self/jobs/last/stauts.json",
            "\"/agents/self/jobs/last/stauts.json\": a job cannot be waited for by \"stauts.json\"; did you mean status.json?",
        ),
        (
            "/agents/self/jobs/last/control/cancel",
            "\"/agents/self/jobs/last/control/cancel\": a job is waited for by status.json, result.txt, result.json",
        ),
    ];
    for (path, reason) in table {
        assert_eq!(Selector::parse(path).unwrap_err(), reason, "{path}");
    }
    let far = Selector::parse("/agents/self/events/sources/time/after/99999999999999999999.json").unwrap_err();
    assert!(far.ends_with("is more than 315360000000 milliseconds"), "{far}");
}

#[test]
fn self_is_whoever_waits() {
    let path = |text: &str| Selector::parse(text).unwrap().owned_by("ada").to_path();
    assert_eq!(path("/agents/self/chat/control/input"), "/agents/ada/chat/control/input");
    assert_eq!(path("/agents/self/memory"), "/agents/ada/memory");
    assert_eq!(path("/agents/selfish/memory"), "/agents/selfish/memory");
    assert_eq!(path("/agents/bob/jobs/last/status.json"), "/agents/bob/jobs/last/status.json");
}

proptest! {
    #[test]
    fn nothing_panics_and_what_is_understood_comes_back(path in "(/|agents|self|events|sources|time|after|at|user|jobs|by|job-1|\\.json|[a-z0-9. é]{0,4}){0,14}") {
        if let Ok(selector) = Selector::parse(&path) {
            prop_assert_eq!(Selector::parse(&selector.to_path()), Ok(selector));
        }
    }

    #[test]
    fn any_text_is_answered(path in any::<String>()) {
        let _ = Selector::parse(&path);
    }
}
