use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::kinds::{self, SessionState};
use super::*;
use crate::services::prompts::test_prompts::read;
use acheron_base::{ConfinedDir, Error};
use acheron_prompts::manifest::{Need, Scope};
use acheron_prompts::prompt::Session;

type Calls = Arc<Mutex<Vec<String>>>;

/// A number that says what happens to it.
struct Thing {
    name: String,
    calls: Calls,
    number: Mutex<i64>,
    fails: &'static str,
}

impl Thing {
    fn say(&self, what: &str) -> Result<()> {
        self.calls.lock().push(format!("{what} {}", self.name));
        match self.fails.contains(what) {
            true => Err(Error::failed(format!("{what} went wrong"))),
            false => Ok(()),
        }
    }
}

impl Resource for Thing {
    fn ready(&self) -> Result<()> {
        self.say("ready")
    }
    fn close(&self) -> Result<()> {
        self.say("close")
    }
    fn snapshot(&self) -> Result<Option<Value>> {
        Ok(Some(json!(*self.number.lock())))
    }
    fn prepare(&self, snapshot: &Value) -> Result<()> {
        snapshot.as_i64().map(drop).ok_or_else(|| Error::invalid("no number"))?;
        if self.fails.contains("prepare") { Err(Error::failed("prepare went wrong")) } else { Ok(()) }
    }
    fn restore(&self, snapshot: &Value) -> Result<()> {
        *self.number.lock() = snapshot.as_i64().unwrap();
        if self.fails.contains("restore") && snapshot.as_i64() == Some(0) {
            return Err(Error::failed("restore went wrong"));
        }
        Ok(())
    }
}

fn thing(
    name: &'static str,
    scope: Scope,
    calls: &Calls,
    fails: &'static str,
    needs: &'static [&'static str],
) -> ResourceBinding {
    let calls = calls.clone();
    ResourceBinding::new(name, scope, move |resolver| {
        for need in needs {
            resolver.get(need)?;
        }
        if fails.contains("make") {
            return Err(Error::failed("make went wrong"));
        }
        Ok(Arc::new(Thing { name: name.to_owned(), calls: calls.clone(), number: Mutex::new(0), fails }))
    })
}

fn number(resource: &Arc<dyn Resource>) -> i64 {
    *(&**resource as &dyn std::any::Any).downcast_ref::<Thing>().unwrap().number.lock()
}

fn set(resources: &Resources, name: &str, to: i64) {
    let resource = resources.get(name).unwrap();
    *(&*resource as &dyn std::any::Any).downcast_ref::<Thing>().unwrap().number.lock() = to;
}

fn opened(bindings: Vec<ResourceBinding>) -> Arc<Resources> {
    let resources = Arc::new(Resources::new(ResourceRegistry::of(bindings).unwrap()));
    resources.enter().unwrap();
    resources
}

fn told(calls: &Calls) -> String {
    std::mem::take(&mut *calls.lock()).join(", ")
}

#[test]
fn row_114_each_scope_lives_as_long_as_it_says() {
    let calls = Calls::default();
    let resources = opened(vec![
        thing("one", Scope::Singleton, &calls, "", &[]),
        thing("call", Scope::ToolCall, &calls, "", &["one"]),
        thing("each", Scope::Prototype, &calls, "", &[]),
    ]);
    assert_eq!(told(&calls), "", "nothing is made before it is asked for");
    assert!(resources.get("call").is_err(), "no call is under way");
    resources.enter_call().unwrap();
    let outer = resources.get("call").unwrap();
    assert!(Arc::ptr_eq(&outer, &resources.get("call").unwrap()));
    assert!(!Arc::ptr_eq(&resources.get("each").unwrap(), &resources.get("each").unwrap()));
    let one = resources.get("one").unwrap();
    resources.enter_call().unwrap();
    assert!(!Arc::ptr_eq(&outer, &resources.get("call").unwrap()));
    assert!(Arc::ptr_eq(&one, &resources.get("one").unwrap()));
    assert_eq!(told(&calls), "ready one, ready call, ready each, ready each, ready call");
    resources.leave_call();
    assert!(Arc::ptr_eq(&outer, &resources.get("call").unwrap()));
    resources.leave_call();
    assert_eq!(told(&calls), "close call, close call");
    assert_eq!(resources.exit().len(), 0);
    assert_eq!(told(&calls), "close one");
}

#[test]
fn row_115_what_cannot_be_made_says_why() {
    let calls = Calls::default();
    let resources = opened(vec![
        thing("a", Scope::Singleton, &calls, "", &["b"]),
        thing("b", Scope::Singleton, &calls, "", &["c"]),
        thing("c", Scope::Singleton, &calls, "", &["a"]),
        thing("self", Scope::Singleton, &calls, "", &["self"]),
        thing("broken", Scope::Singleton, &calls, "make", &[]),
        thing("needs", Scope::Singleton, &calls, "", &["broken"]),
        thing("unready", Scope::Singleton, &calls, "ready close", &[]),
    ]);
    let rows = [
        ("nothing", "resources: no binding for `nothing`"),
        ("self", "resources: resources need each other in a circle: self -> self"),
        ("a", "resources: resources need each other in a circle: a -> b -> c -> a"),
        ("broken", "resources: provider for `broken` failed: make went wrong"),
        ("needs", "resources: provider for `broken` failed: make went wrong"),
        ("unready", "resources: `unready` could not be made ready: ready went wrong"),
    ];
    for (name, expected) in rows {
        assert_eq!(resources.get(name).err().unwrap().message, expected);
    }
    assert_eq!(told(&calls), "ready unready, close unready");
}

#[test]
fn rows_116_122_closing_goes_backwards_and_a_failed_opening_closes_what_was_made() {
    let calls = Calls::default();
    let three = |last: &'static str| {
        vec![
            thing("a", Scope::Singleton, &calls, "", &[]).eager(),
            thing("b", Scope::Singleton, &calls, "close", &[]).eager(),
            thing("c", Scope::Singleton, &calls, last, &[]).eager(),
        ]
    };
    let resources = opened(three(""));
    assert_eq!(told(&calls), "ready a, ready b, ready c");
    assert_eq!(resources.enter().unwrap_err().message, "resources: resources are entered already");
    assert_eq!(resources.exit().len(), 1, "one would not close, the others did");
    assert_eq!(told(&calls), "close c, close b, close a");
    assert_eq!(resources.exit().len(), 0, "closing twice is nothing");
    assert!(resources.get("a").err().unwrap().message.contains("outside of their prompt"));
    let failing = Resources::new(ResourceRegistry::of(three("make")).unwrap());
    assert!(failing.enter().is_err());
    assert_eq!(told(&calls), "ready a, ready b, close b, close a");
    drop(opened(three("")));
    assert_eq!(told(&calls), "ready a, ready b, ready c, close c, close b, close a");
}

#[test]
fn row_117_registries_merge_and_stay_what_they_were() {
    let calls = Calls::default();
    let one = |name| ResourceRegistry::of([thing(name, Scope::Singleton, &calls, "", &[])]).unwrap();
    let (a, b) = (one("a"), one("b"));
    let both = a.merged(&b).unwrap();
    assert_eq!(both.names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(a.names().count(), 1);
    assert!(both.merged(&b).is_err());
    assert_eq!(both.conflicts(&b), ["b"]);
    let eager = ResourceRegistry::of([thing("b", Scope::Singleton, &calls, "", &[]).eager()]).unwrap();
    assert!(both.under(&eager).binding("b").unwrap().eager);
    let twice = [thing("a", Scope::Singleton, &calls, "", &[]), thing("a", Scope::Singleton, &calls, "", &[])];
    assert!(ResourceRegistry::of(twice).is_err());
    let template = read(
        json!({"resources": {"x": {"kind": "session"}, "y": {"kind": "session"}}, "sections": [
            {"key": "a", "title": "A", "resources": {"x": {"kind": "memory"}}, "children": [
                {"key": "b", "title": "B", "kind": "workspace", "project": "here", "resources": {"x": {"kind": "odd"}}}]}]}),
        &[],
    );
    let bound = [("y".to_owned(), Need { kind: "bound".to_owned(), ..Need::default() })].into();
    let needs = kinds::needs(&template.unwrap(), &bound);
    let kinds: Vec<(&str, &str)> = needs.iter().map(|(name, need)| (name.as_str(), need.kind.as_str())).collect();
    assert_eq!(kinds, [("filesystem", "filesystem"), ("x", "odd"), ("y", "bound")]);
    assert!(kinds::registry(&needs, &kinds::ResourceKinds::new()).is_err());
}

#[test]
fn row_119_a_transaction_goes_back_unless_it_is_committed() {
    let calls = Calls::default();
    let resources = opened(vec![
        thing("n", Scope::Singleton, &calls, "", &[]).eager(),
        thing("late", Scope::Singleton, &calls, "", &[]),
    ]);
    let value = || number(&resources.get("n").unwrap());
    let transaction = resources.begin("1", 0, Some("t"), "x.y").unwrap();
    set(&resources, "n", 1);
    transaction.commit().unwrap();
    assert_eq!(value(), 1);
    let transaction = resources.begin("2", 0, None, "x.y").unwrap();
    set(&resources, "n", 2);
    set(&resources, "late", 5);
    {
        let inner = resources.begin("3", 0, None, "x.z").unwrap();
        set(&resources, "n", 3);
        inner.roll_back().unwrap();
        assert_eq!((value(), number(&resources.get("late").unwrap())), (2, 5));
        let kept = resources.begin("4", 0, None, "x.z").unwrap();
        set(&resources, "n", 4);
        kept.commit().unwrap();
    }
    assert_eq!(value(), 4);
    told(&calls);
    drop(transaction);
    assert_eq!(value(), 1, "the outer one takes the inner ones along");
    assert_eq!(told(&calls), "close late", "what was made inside is gone");
    assert_eq!(number(&resources.get("late").unwrap()), 0);
}

#[test]
fn row_120_a_restore_is_all_or_nothing_and_a_snapshot_is_json() {
    let calls = Calls::default();
    let resources = opened(vec![
        thing("a", Scope::Singleton, &calls, "", &[]).eager(),
        thing("z", Scope::Singleton, &calls, "restore", &[]).eager(),
    ]);
    let snapshot = resources.snapshot("s1", 7, Some("before"), None).unwrap();
    let written = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(Snapshot::read(&written).unwrap(), snapshot);
    assert_eq!(snapshot.phase, SnapshotPhase::Manual);
    set(&resources, "a", 5);
    set(&resources, "z", 6);
    assert!(resources.restore(&snapshot).unwrap_err().message.contains("restore failed at `z`: restore went wrong"));
    assert_eq!((number(&resources.get("a").unwrap()), number(&resources.get("z").unwrap())), (5, 6));
    let missing = Snapshot { resources: [("gone".to_owned(), json!(1))].into(), ..snapshot.clone() };
    assert!(resources.restore(&missing).is_ok(), "what is not there is skipped");
    let unprepared = Snapshot { resources: [("a".to_owned(), json!("x"))].into(), ..snapshot };
    assert!(resources.restore(&unprepared).is_err());
    for (name, value) in
        [("version", json!("2")), ("id", json!("")), ("created_at_ms", json!("x")), ("phase", json!("x"))]
    {
        let mut odd: Value = serde_json::from_str(&written).unwrap();
        odd[name] = value;
        assert!(Snapshot::read(&odd.to_string()).is_err(), "{name}");
    }
    assert!(Snapshot::read("{").is_err());
}

#[test]
fn row_121_a_tool_in_two_calls_goes_back_if_it_failed() {
    let calls = Calls::default();
    let resources = opened(vec![thing("n", Scope::Singleton, &calls, "", &[]).eager()]);
    let (pending, value) = (PendingTransactions::default(), || number(&resources.get("n").unwrap()));
    for (id, success, expected) in [("1", true, (false, 9)), ("2", false, (true, 9))] {
        pending.begin(&resources, id, 0, "x.y").unwrap();
        set(&resources, "n", if success { 9 } else { 10 });
        assert_eq!((pending.end(&resources, id, success).unwrap(), value()), expected);
    }
    assert!(!pending.end(&resources, "unknown", false).unwrap());
    pending.begin(&resources, "3", 0, "x.y").unwrap();
    set(&resources, "n", 1);
    assert!(pending.abort(&resources, "3").unwrap());
    assert_eq!(value(), 9);
}

#[test]
fn the_files_of_a_project_go_back_to_what_they_were() {
    let (project, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let put = |name: &str, text: &str| {
        let path = project.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("keep/a.txt", "a");
    put("keep/b.txt", "b");
    put("keep/fixed", "before");
    std::fs::create_dir(project.path().join("empty")).unwrap();
    let (folder, closed) = (project.path().to_owned(), Arc::new(AtomicBool::new(false)));
    let asked = closed.clone();
    let open = move || match asked.load(Ordering::Relaxed) {
        true => Err(Error::forbidden("not any more")),
        false => {
            let kept = vec!["hooks".to_owned(), "keep/fixed".to_owned(), "late/fixed".to_owned()];
            Ok(OpenedProject { directory: ConfinedDir::open(&folder)?, kept })
        }
    };
    let files = ProjectFiles::new(open, ConfinedDir::open(copies.path()).unwrap(), || "c1".to_owned());
    let before = files.snapshot().unwrap().unwrap();
    put("keep/a.txt", "changed");
    put("new/deep/x.txt", "x");
    for protected in ["keep/fixed", "hooks/new", "late/fixed"] {
        put(protected, "the operator's");
    }
    std::fs::remove_file(project.path().join("keep/b.txt")).unwrap();
    std::fs::remove_dir(project.path().join("empty")).unwrap();
    std::os::unix::fs::symlink("/etc", project.path().join("out")).unwrap();
    files.prepare(&before).unwrap();
    files.restore(&before).unwrap();
    let place = ConfinedDir::open(project.path()).unwrap();
    let names: Vec<String> = place.walk("").unwrap().into_iter().map(|entry| entry.name).collect();
    let kept = ["hooks", "hooks/new", "keep", "keep/a.txt", "keep/b.txt", "keep/fixed", "late", "late/fixed"];
    assert_eq!(names, [&["empty"], kept.as_slice()].concat());
    assert_eq!(place.read("keep/fixed").unwrap(), b"the operator's", "what is protected is not taken back");
    assert_eq!(place.read("keep/a.txt").unwrap(), b"a");
    assert_eq!(place.read("keep/b.txt").unwrap(), b"b");
    put("keep/a.txt", "the operator's");
    closed.store(true, Ordering::Relaxed);
    assert!(files.prepare(&before).is_err() && files.restore(&before).is_err() && files.snapshot().is_err());
    assert_eq!(place.read("keep/a.txt").unwrap(), b"the operator's", "rights are asked for each time");
    closed.store(false, Ordering::Relaxed);
    files.forget(&before);
    assert!(files.prepare(&before).is_err());
    assert!(files.prepare(&json!({"copy": "../../etc/passwd"})).is_err());
}

#[test]
fn the_session_goes_back_too() {
    let session = Arc::new(Mutex::new(Session::default()));
    let state = SessionState::new(session.clone(), Some(&json!({"mode": "calm"})));
    let before = state.snapshot().unwrap().unwrap();
    session.lock().values.insert("mode".to_owned(), json!("wild"));
    state.restore(&before).unwrap();
    assert_eq!(session.lock().values["mode"], "calm");
    assert!(state.prepare(&json!(3)).is_err());
}
