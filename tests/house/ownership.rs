//! Ownership goes one way: a host that is dropped is gone, with its tree, its services and its lock.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::common;
use acheron::host::{Host, Options};
use acheron::policy::PrincipalCaller;
use acheron::spec::Spec;
use acheron_base::{Clock, Random};
use acheron_vfs::Caller;

/// How long threads of the kernel's side may need to end.
const GUARD: Duration = Duration::from_secs(60);

const SPEC: &str = r#"{
    "agents": { "charon": { "projects": ["here"], "wake": [{ "on": "/projects/here/fs/**", "say": "look" }] } },
    "projects": { "here": { "binds": { "/": { "path": ".", "read_only": false } } } },
    "services": { "almanac": { "command": ["true"], "about": "a program", "operations": { "day": {} } },
                  "shared": { "command": ["true"], "about": "of the node", "scope": "node", "operations": { "day": {} } } }
}"#;

/// One call of each kind of service that keeps something: of its own, of the host, of a process.
const SESSION: &str = r#"
    cd agents/self
    echo '{"kind":"note","content":"kept"}' > memory/control/create.json; jq -c .ok memory/result.json
    echo '{"query":"note"}' > search_code/control/search.json; jq -c .ok search_code/result.json
    echo '{"session_id":"s"}' > terminal/control/create.json; jq -c .ok terminal/result.json
    echo '{"agent_id":"scribe"}' > agents/control/create.json; jq -c .ok agents/result.json
    echo hello > chat/control/input; cat chat/latest.txt > /dev/null; jq -r .state chat/status.json
    ls prompts/templates recall symbols phases dm/campaigns mounts sub_brains > /dev/null; echo listed
"#;

fn alive<T>(weak: &Weak<T>) -> bool {
    weak.strong_count() > 0
}

#[test]
fn a_host_that_is_dropped_is_gone_with_everything_in_it() {
    acheron_sandbox::use_program(env!("CARGO_BIN_EXE_acheron"));
    let dir = tempfile::TempDir::new().unwrap();
    let [here, state, root] = ["here", "state", "ns"].map(|name| dir.path().join(name));
    [&here, &root].into_iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
    std::fs::write(here.join("notes.txt"), "a note\n").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let spec = Spec::check(SPEC).unwrap_or_else(|faults| panic!("{faults:?}"));
    let options = Options {
        spec,
        here,
        state: state.clone(),
        mountpoint: Some(root.clone()),
        clock: Clock::real(),
        random: Random::real(),
    };
    let host = runtime.block_on(async {
        let mut host = Host::start(options).unwrap();
        host.mount(&root).unwrap();
        host
    });
    assert_eq!(common::session(&root, SESSION), "true\ntrue\ntrue\ntrue\nidle\nlisted\n");
    let whole = Arc::downgrade(&host.state);
    let (context, tree) = (Arc::downgrade(&host.state.context), host.tree().downgrade());
    let instance = Arc::downgrade(&host.state.context.instance("charon", "memory").unwrap());
    let runtimes = Arc::downgrade(&host.state.shared.runtimes);
    runtime.block_on(async {
        host.tree().read(&Caller::operator(), "agents/charon/memory/status.json").await.unwrap();
        drop(host);
    });

    // At once: another host may begin on the same state.
    drop(acheron::state::open(&state, &acheron_base::Clock::real(), &acheron_base::Random::real()).unwrap());

    // When the threads that were in the middle of something have ended, nothing keeps the rest.
    let end = Instant::now() + GUARD;
    let left = || {
        let all = [
            ("the state", alive(&whole)),
            ("the tree", tree.upgrade().is_some()),
            ("the context", alive(&context)),
            ("an instance", alive(&instance)),
            ("the runtimes", alive(&runtimes)),
        ];
        all.into_iter().filter(|(_, alive)| *alive).map(|(name, _)| name).collect::<Vec<_>>()
    };
    while !left().is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(left(), Vec::<&str>::new());
    runtime.shutdown_background();
}
