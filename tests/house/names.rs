//! Names never block: what takes long is computed on other threads than the one that serves everybody.

use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use expect_test::expect;
use parking_lot::Mutex;
use serde_json::Value;

use crate::common::check;
use crate::test_host::TestHost;
use crate::workshop::Workshop;
use acheron_vfs::{Item, Listing, Node, STARTED, Stat, VersionStore, VirtualDir, text};

/// A computation that says when it begins, and then waits until it is let go.
struct Gate {
    begun: Sender<()>,
    let_go: Mutex<Receiver<()>>,
}

impl Gate {
    /// The gate, its announcements, and the key.
    fn new() -> (Gate, Receiver<()>, Sender<()>) {
        let ((begun, announced), (key, let_go)) = (channel(), channel());
        (Gate { begun, let_go: Mutex::new(let_go) }, announced, key)
    }

    fn pass(&self) {
        self.begun.send(()).unwrap();
        // The key is gone when the test has failed.
        _ = self.let_go.lock().recv();
    }
}

/// Everything that another client does is answered.
fn others_work(shop: &Workshop) {
    check(
        shop.root(),
        "cat text.md slow; ls many | head -1; ls computed; echo words > item; cat item; stat -c %F box",
        expect![[r#"
            first
            fetched
            000
            one
            two
            words
            directory
        "#]],
    );
}

#[test]
fn a_list_that_is_being_computed_keeps_nobody_else() {
    for words in [["ls", "gated"], ["stat", "gated/a"], ["mkdir", "gated/b"]] {
        let shop = Workshop::open();
        let (gate, announced, key) = Gate::new();
        let gate = std::sync::Arc::new(gate);
        let (names, find) = (gate.clone(), gate);
        let list = words[0] == "ls";
        let dir = VirtualDir::new(
            move || {
                names.pass();
                vec!["a".to_owned()]
            },
            move |name| {
                if !list {
                    find.pass();
                }
                (name == "a").then(|| Node::file(text("here\n")))
            },
        );
        shop.knobs.root.put("gated", Node::dir(dir.slow()));
        let mut client = Command::new(words[0]);
        let client = client.args(&words[1..]).current_dir(shop.root()).stdout(Stdio::piped()).stderr(Stdio::null());
        let client = client.spawn().unwrap();
        announced.recv().unwrap();
        others_work(&shop);
        // Now everything passes.
        drop(key);
        let said = String::from_utf8(client.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(said == "a\n", list, "{words:?}: {said}");
    }
}

/// An item whose size is found out slowly.
struct SlowSize(Gate);

impl VersionStore for SlowSize {
    fn stat(&self) -> Stat {
        self.0.pass();
        Stat { size: 5, modified: STARTED }
    }

    fn has_quick_stat(&self) -> bool {
        false
    }

    fn latest(&self) -> acheron_vfs::Answer<bytes::Bytes> {
        acheron_vfs::Answer::ok("here\n".into())
    }

    fn save(&self, _caller: &acheron_vfs::Caller, _bytes: bytes::Bytes) -> acheron_vfs::Answer<()> {
        acheron_vfs::Answer::ok(())
    }
}

#[test]
fn a_size_that_is_being_found_out_keeps_nobody_else() {
    let shop = Workshop::open();
    let (gate, announced, key) = Gate::new();
    // In a directory of its own: the kernel makes no name in a directory that is being listed.
    let sized = Node::file(Item::new(std::sync::Arc::new(SlowSize(gate))));
    shop.knobs.root.put("dir", Node::dir(Listing::default().with("sized", sized)));
    let mut client = Command::new("ls");
    let client = client.args(["-l", "dir"]).current_dir(shop.root()).stdout(Stdio::piped()).spawn().unwrap();
    announced.recv().unwrap();
    others_work(&shop);
    drop(key);
    let said = String::from_utf8(client.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("sized"), "{said}");
}

#[test]
fn the_time_that_requests_keep_the_session_is_counted() {
    let house = TestHost::new();
    house.says("ls -l agents/self/recall/ agents/self/recall/by/* agents/self/jobs; cat agents/self/README.md");
    let session: Value = serde_json::from_str(&house.says("jq .session meta/metrics.json")).unwrap();
    for kind in ["lookup", "getattr", "opendir", "readlink"] {
        let below = session["requests"][kind]["below_us"].as_object().unwrap_or_else(|| panic!("no {kind}: {session}"));
        assert!(below.values().all(|count| count.as_u64() > Some(0)), "{session}");
    }
    let worst = &session["worst"];
    assert!(worst["kind"].is_string() && worst["took_us"].is_u64(), "{session}");
    assert!(!worst["place"].as_str().unwrap().contains("charon"), "{session}");
}
