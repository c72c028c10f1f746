use proptest::prelude::*;

use super::Action::{Invoke, Read, Write};
use super::*;

fn policy() -> Policy {
    let own = [
        Rule::deny(&[Invoke], "/agents/self/terminal/**"),
        Rule::allow(&[Invoke], "/agents/self/terminal/control/list.json"),
        Rule::allow(&[Read], "/agents/*/thoughts/latest.txt"),
        Rule::deny(&[Read, Write], "/projects/here/fs/secret/**"),
        Rule::deny(&[Read], "/global/library/private/**"),
        Rule::deny(&[Read], "/projects/here/fs/unread/**"),
        Rule::deny(&[Read], "/projects/here/fs/one"),
    ];
    let policy = Policy::default().agent("charon", &["here".to_owned()], &own).unwrap();
    policy.agent("ada", &[], &[]).unwrap()
}

fn charon() -> Principal {
    Principal::Agent("charon".to_owned())
}

#[test]
fn an_agent_may_what_its_rules_say() {
    let table = [
        (Read, "/", true),
        (Read, "/README.md", true),
        (Write, "/README.md", false),
        (Read, "/meta/protocol.json", true),
        (Read, "/meta/metrics.json", false),
        (Read, "/global", true),
        (Read, "/global/library/Index.md", true),
        // A player reads no secret of a game, and has no tools of a game master.
        (Read, "/global/library/cartridges/brinewick/quests/QUEST_LOG.md", false),
        (Read, "/global/library/cartridges/_template/CARTRIDGE.md", true),
        (Read, "/agents/charon/dm/cartridges/brinewick/CARTRIDGE.md", false),
        (Invoke, "/agents/charon/dm/control/tools.json", false),
        (Invoke, "/agents/charon/dm/control/change_map.json", false),
        (Invoke, "/agents/charon/dm/control/play.json", true),
        (Read, "/agents/charon/dm/campaigns/c1/output", true),
        (Read, "/global/library/private/x", false),
        (Write, "/global/library/Index.md", false),
        (Invoke, "/agents/charon/chat/control/reply", true),
        (Invoke, "agents/charon/chat/control/reply", true),
        (Invoke, "/agents/self/chat/control/reply", true),
        (Read, "/agents/charon", true),
        (Read, "/agents/charonx", false),
        (Read, "/agents/charonx/chat", false),
        (Read, "/agents", false),
        (Read, "/agents/ada/chat/latest.txt", false),
        (Read, "/agents/ada/thoughts/latest.txt", true),
        (Read, "/agents/ada/thoughts/history.ndjson", false),
        (Read, "/agents/a/b/thoughts/latest.txt", false),
        (Invoke, "/agents/charon/terminal/control/exec.json", false),
        (Invoke, "/agents/charon/terminal/control/list.json", true),
        (Read, "/agents/charon/terminal/status.json", true),
        (Read, "/projects/here/fs/a", true),
        (Write, "/projects/here/fs/a", true),
        (Invoke, "/projects/here/fs/a", false),
        (Read, "/projects/here/fs/secret", false),
        (Write, "/projects/here/fs/secret/x", false),
        (Write, "/projects/here/fs/unread/x", false),
        (Write, "/projects/here/fs/one", false),
        (Write, "/projects/here/fs/one/x", true),
        (Read, "/projects/there/fs/a", false),
        (Read, "/nodes/local", false),
        // Odd ways to write a path change nothing.
        (Read, "/agents/charon/../ada/chat/latest.txt", false),
        (Read, "/agents//charon/./chat/", true),
        (Read, "/../../agents/charon", true),
        (Read, "//global//library//private//x", false),
        (Read, "/agents/charon\0", false),
        (Read, "/agents/self/../self/chat", true),
    ];
    for (action, path, allowed) in table {
        let decision = authorize(&policy(), &charon(), action, path);
        assert_eq!(decision.allowed, allowed, "{action:?} {path:?}: {}", decision.reason);
    }
}

#[test]
fn a_stranger_may_do_nothing_and_the_operator_everything() {
    for action in [Read, Write, Invoke] {
        for path in ["/", "/README.md", "/agents/charon/chat/control/input", "/agents/self", ""] {
            let may = |principal: Principal| authorize(&policy(), &principal, action, path).allowed;
            assert!(may(Principal::Operator));
            assert!(!may(Principal::Nobody));
            assert!(!may(Principal::Agent("gone".to_owned())));
            assert!(!may(Principal::Agent(String::new())));
            assert!(!sees(&policy(), &Principal::Nobody, path));
        }
    }
}

#[test]
fn what_may_not_be_seen_is_absent_but_the_way_to_the_rest_is_there() {
    let table = [
        ("/", true),
        ("/agents", true),
        ("/agents/charon", true),
        ("/agents/ada", true), // its latest thoughts may be read
        ("/agents/ada/thoughts", true),
        ("/agents/ada/thoughts/latest.txt", true),
        ("/agents/ada/chat", false),
        ("/projects", true),
        ("/projects/here/fs", true),
        ("/projects/here/fs/secret", false),
        ("/projects/here/fs/one", true), // as a directory
        ("/projects/there", false),
        ("/meta", true),
        ("/meta/protocol.json", true),
        ("/meta/health.json", false),
        ("/nodes", false),
        ("/global/library/private", false),
    ];
    for (path, seen) in table {
        assert_eq!(sees(&policy(), &charon(), path), seen, "{path}");
    }
    assert!(!sees(&policy(), &Principal::Agent("ada".to_owned()), "/agents/charon"));
    for (path, seen) in [
        ("/projects/here/fs/one", false),
        ("/projects/here/fs/a", true),
        ("/agents/charon/terminal/control/list.json", true),
        ("/agents/ada/thoughts/latest.txt", true),
        ("/agents/ada/thoughts", false),
    ] {
        assert_eq!(sees_file(&policy(), &charon(), path), seen, "{path}");
    }
}

#[test]
fn what_no_agent_may_write_is_known() {
    let own = [Rule::deny(&[Write], "/projects/p/fs/kept/**"), Rule::deny(&[Write], "/projects/p/fs/open")];
    let policy = Policy::default().agent("a", &["p".to_owned()], &own).unwrap().agent("b", &[], &[]).unwrap();
    for (path, expected) in [
        ("/projects/p/fs", true),
        ("/projects/p/fs/kept", false),
        ("/projects/p/fs/kept/deep/x", false),
        ("/projects/p/fs/open", true), // what lies in it may be
        ("/projects/q/fs", false),
    ] {
        assert_eq!(any_agent_reaches(&policy, Write, path), expected, "{path}");
    }
}

#[test]
fn a_reader_is_told_what_it_may_and_why() {
    let operations = [("exec", "execute"), ("list", "read")];
    let page = permissions(&policy(), &charon(), "/agents/charon/terminal", operations);
    expect_test::expect![[r#"
            {
              "principal": "agent charon",
              "default": "deny",
              "read": {
                "allowed": true,
                "reason": "a rule allows read on /agents/self/**"
              },
              "operations": {
                "exec": {
                  "allowed": false,
                  "reason": "a rule denies invoke on /agents/self/terminal/**",
                  "effect": "execute"
                },
                "list": {
                  "allowed": true,
                  "reason": "a rule allows invoke on /agents/self/terminal/control/list.json",
                  "effect": "read"
                }
              }
            }"#]]
    .assert_eq(&serde_json::to_string_pretty(&page).unwrap());
    let reason = authorize(&policy(), &charon(), Read, "/agents/ada/./chat").reason;
    assert_eq!(reason, "no rule allows agent charon to read /agents/ada/chat");
}

#[test]
fn a_rule_that_cannot_be_understood_is_refused() {
    let fault = Policy::default().agent("a", &[], &[Rule::allow(&[Read], "agents")]).unwrap_err();
    assert_eq!(fault, "agents: must begin with /");
}

#[test]
fn a_rule_that_asks_neither_allows_nor_hides_and_the_last_one_wins() {
    let own = [
        Rule::ask(&[Invoke], "/agents/self/terminal/**"),
        Rule::allow(&[Invoke], "/agents/self/terminal/control/list.json"),
        Rule::deny(&[Invoke], "/agents/self/terminal/control/close.json"),
        Rule::ask(&[Write], "/projects/here/fs/deploy/**"),
        Rule { allow: vec![Invoke], ask: vec![Invoke], ..Rule::ask(&[], "/agents/self/memory/**") },
        Rule { deny: vec![Invoke], ask: vec![Invoke], ..Rule::ask(&[], "/agents/self/dm/**") },
    ];
    let policy = Policy::default().agent("charon", &["here".to_owned()], &own).unwrap();
    for (action, path, allowed, asks) in [
        (Invoke, "/agents/self/terminal/control/exec.json", false, true),
        (Invoke, "/agents/self/terminal/control/list.json", true, false),
        (Invoke, "/agents/self/terminal/control/close.json", false, false),
        (Invoke, "/agents/self/memory/control/create.json", false, true),
        (Invoke, "/agents/self/dm/control/play.json", false, false),
        (Read, "/agents/self/terminal/control/exec.json", true, false),
        (Write, "/projects/here/fs/deploy/x", false, true),
        (Read, "/projects/here/fs/deploy/x", true, false),
        (Write, "/projects/here/fs/x", true, false),
    ] {
        let decision = authorize(&policy, &charon(), action, path);
        assert_eq!(
            (decision.allowed, decision.asks.is_some()),
            (allowed, asks),
            "{action:?} {path}: {}",
            decision.reason
        );
        assert!(authorize(&policy, &Principal::Operator, action, path).asks.is_none());
    }
    assert!(sees_file(&policy, &charon(), "/agents/charon/terminal/control/exec.json"));
    let shown = permissions(&policy, &charon(), "/agents/charon/terminal", [("exec", "execute")]);
    assert_eq!(
        shown["operations"]["exec"],
        json!({"allowed": true, "asks": true, "effect": "execute",
            "reason": "a rule asks the operator before invoke on /agents/self/terminal/**"})
    );
    let bounds = bounds::bounds(&policy, "charon", "/projects/here/fs").unwrap();
    assert_eq!(
        bounds.iter().map(|it| (&*it.path, it.write)).collect::<Vec<_>>(),
        [("/projects/here/fs", true), ("/projects/here/fs/deploy", false)]
    );
}

#[test]
fn no_rule_gives_an_agent_what_the_operator_decides_with() {
    let own = [Rule::allow(&[Read, Write, Invoke], "/**"), Rule::allow(&[Read], "/agents/*/permissions/always.json")];
    let policy = Policy::default().agent("charon", &[], &own).unwrap();
    for path in [
        "/approvals",
        "/approvals/next.json",
        "/approvals/apr-1/decision",
        "/agents/../approvals/x",
        "/agents/self/permissions",
        "/agents/self/permissions/always.json",
        "/agents/ada/permissions/always.json",
    ] {
        for action in [Read, Write, Invoke] {
            assert!(!authorize(&policy, &charon(), action, path).allowed, "{action:?} {path}");
        }
        assert!(!sees(&policy, &charon(), path) && !sees_file(&policy, &charon(), path), "{path}");
    }
    assert!(authorize(&policy, &charon(), Read, "/approvalsx").allowed);
    assert!(authorize(&policy, &charon(), Read, "/agents/permissions/x").allowed);
}

#[test]
fn a_rule_that_is_changed_is_another_rule_and_its_examples_do_not_count() {
    let rule = Rule::ask(&[Invoke], "/agents/self/terminal/**");
    let examples = Some(RuleExamples { matching: vec!["/agents/self/terminal/x".to_owned()], no_match: vec![] });
    assert_eq!(rule.asking().hash, Rule { examples, ..rule.clone() }.asking().hash);
    assert_ne!(rule.asking().hash, Rule { always: Some(false), ..rule.clone() }.asking().hash);
    assert_ne!(rule.asking().hash, Rule::ask(&[Invoke], "/agents/self/terminal/*").asking().hash);
    let list = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    let examples = RuleExamples {
        matching: list(&["/agents/self/terminal/control/exec.json", "/agents/ada/terminal/x", "terminal"]),
        no_match: list(&["/agents/self/memory", "/agents/charon/terminal/x"]),
    };
    assert_eq!(
        example_faults(&Rule { examples: Some(examples), ..rule }, "charon"),
        [
            ("examples.match[1]", "/agents/ada/terminal/x is not matched by /agents/self/terminal/**"),
            ("examples.match[2]", "terminal is not matched by /agents/self/terminal/**"),
            ("examples.no_match[1]", "/agents/charon/terminal/x is matched by /agents/self/terminal/**"),
        ]
        .map(|(at, why)| (at.to_owned(), why.to_owned()))
    );
}

proptest! {
    /// However a path is written, an agent gets nowhere but where its rules lead.
    #[test]
    fn another_agents_chat_stays_closed(path in "(/|\\.|\\.\\.|agents|ada|self|charon|chat|\\*|global){0,12}") {
        let landed = names(&path, "charon").unwrap().join("/");
        let decision = authorize(&policy(), &charon(), Write, &path);
        prop_assert_eq!(decision.allowed, landed == "agents/charon" || landed.starts_with("agents/charon/"));
    }
}
