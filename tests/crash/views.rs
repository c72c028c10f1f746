//! A kill at every step of a promote, of its undo, and of the way back to a snapshot: the project is as before or as wanted, and
//! the job says which. A disk that is full when a promote is staged.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::life::{AGENT, Life, write_spec};
use super::load::put;
use super::steps::begin;

/// A place with a project and an agent that works in a view of it. Dropping it takes the views away that a killed host left.
struct ViewPlace(tempfile::TempDir);

impl ViewPlace {
    fn new() -> ViewPlace {
        let place = ViewPlace(tempfile::tempdir().unwrap());
        let spec = json!({"layout": "acheron-1", "agents": {AGENT: {"projects": ["here"], "view": "own"}},
            "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}}});
        write_spec(place.path(), &spec);
        fs::create_dir_all(place.project().join("gone")).unwrap();
        for name in ["a", "b", "gone/x", "moved"] {
            fs::write(place.project().join(name), format!("old {name}\n")).unwrap();
        }
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn project(&self) -> PathBuf {
        self.path().join("here")
    }

    fn picture(&self) -> String {
        picture(&self.project())
    }
}

impl Drop for ViewPlace {
    fn drop(&mut self) {
        for view in fs::read_dir(self.path().join("state/views")).into_iter().flatten().flatten() {
            _ = nix::mount::umount2(&view.path().join("fs"), nix::mount::MntFlags::MNT_DETACH);
        }
    }
}

fn picture(dir: &Path) -> String {
    let list = "find . -mindepth 1 -printf '%P %y %m ' \\( -type f -exec cat {} \\; -o -printf '\\n' \\) | sort";
    let said = Command::new("sh").args(["-c", list]).current_dir(dir).output().unwrap();
    String::from_utf8_lossy(&said.stdout).into_owned()
}

fn view(life: &Life) -> PathBuf {
    life.root().join("projects/here/views").join(AGENT)
}

fn work(life: &Life) {
    let script = "echo new a > a; rm b; rm -r gone; mkdir -p n/m; echo n > n/m/n; mv moved elsewhere; chmod 600 a";
    assert!(Command::new("sh").args(["-ec", script]).current_dir(view(life).join("fs")).status().unwrap().success());
}

fn call(life: &Life, op: &str, name: &str, arguments: Value) {
    let mut arguments = arguments;
    arguments["_meta"] = json!({ "correlation_id": name });
    _ = put(&view(life).join(format!("control/{op}.json")), &arguments.to_string());
}

fn ended(life: &Life, name: &str) -> Value {
    let status = life.agent().join("jobs/by").join(name).join("status.json");
    serde_json::from_slice(&fs::read(status).unwrap()).unwrap()
}

const STEPS: [(&str, bool); 12] = [
    ("run.begins", false),
    ("promote.staged", false),
    ("promote.decided", true),
    ("promote.step.0", true),
    ("promote.step.1", true),
    ("promote.step.2", true),
    ("promote.step.3", true),
    ("promote.step.5", true),
    ("promote.step.7", true),
    ("promote.made", true),
    ("run.worked", true),
    ("run.ended", true),
];

#[test]
fn a_promote_that_is_killed_at_any_step_has_happened_whole_or_not_at_all() {
    for (step, happens) in STEPS {
        let place = ViewPlace::new();
        let (arm, before) = (place.path().join("step"), place.picture());
        let life = begin(place.path());
        work(&life);
        let wanted = picture(&view(&life).join("fs"));
        fs::write(&arm, step).unwrap();
        call(&life, "promote", "p", json!({"paths": ["a", "b", "gone", "n", "elsewhere"]}));
        life.wait_for_death();
        life.kill();
        fs::remove_file(&arm).unwrap();
        let life = begin(place.path());
        let state = if happens { "done" } else { "interrupted" };
        assert_eq!(ended(&life, "p")["state"], state, "{step}");
        assert_eq!(place.picture(), if happens { wanted.clone() } else { before.clone() }, "{step}");
        assert_eq!(picture(&view(&life).join("fs")), wanted, "{step}: the view is as it was");
        if !happens {
            call(&life, "promote", "again", json!({}));
            assert_eq!(ended(&life, "again")["state"], "done", "{step}");
            assert_eq!(place.picture(), wanted, "{step}");
        }
        call(&life, "undo", "u", json!({}));
        assert_eq!(ended(&life, "u")["state"], "done", "{step}: {}", ended(&life, "u"));
        assert_eq!(place.picture(), before, "{step}: undone");
        let stages: Vec<_> = fs::read_dir(place.path().join("state/views")).unwrap().flatten().collect();
        assert_eq!(stages.len(), 1, "{step}");
        let stage = stages[0].path().join("stage");
        assert_eq!(fs::read_dir(stage).map_or(0, Iterator::count), 0, "{step}: nothing is left in the stage");
        life.leave();
    }
}

#[test]
fn an_undo_that_is_killed_at_any_step_is_finished_at_the_next_start() {
    for step in ["undo.step.7", "undo.step.5", "undo.step.3", "undo.step.0"] {
        let place = ViewPlace::new();
        let (arm, before) = (place.path().join("step"), place.picture());
        let life = begin(place.path());
        work(&life);
        call(&life, "promote", "p", json!({}));
        assert_eq!(ended(&life, "p")["state"], "done");
        fs::write(&arm, step).unwrap();
        call(&life, "undo", "u", json!({}));
        life.wait_for_death();
        life.kill();
        fs::remove_file(&arm).unwrap();
        let life = begin(place.path());
        assert_eq!(ended(&life, "u")["state"], "done", "{step}");
        assert_eq!(place.picture(), before, "{step}");
        life.leave();
    }
}

#[test]
fn the_way_back_to_a_snapshot_that_is_killed_is_made_or_not() {
    for (step, happens) in [("snapshot.copied", false), ("restore.copied", false), ("restore.decided", true)] {
        let place = ViewPlace::new();
        let arm = place.path().join("step");
        let life = begin(place.path());
        let fs_of = |life: &Life| picture(&view(life).join("fs"));
        let first = fs_of(&life);
        call(&life, "snapshot", "s", json!({"name": "first"}));
        assert_eq!(ended(&life, "s")["state"], "done");
        work(&life);
        let worked = fs_of(&life);
        fs::write(&arm, step).unwrap();
        match step.starts_with("snapshot") {
            true => call(&life, "snapshot", "k", json!({"name": "second"})),
            false => call(&life, "restore", "k", json!({"name": "first"})),
        }
        life.wait_for_death();
        life.kill();
        fs::remove_file(&arm).unwrap();
        let life = begin(place.path());
        assert_eq!(fs_of(&life), if happens { first } else { worked.clone() }, "{step}");
        let back = if happens { "before" } else { "first" };
        call(&life, "restore", "b", json!({"name": back}));
        assert_eq!(ended(&life, "b")["state"], "done", "{step}");
        call(&life, "restore", "c", json!({"name": "before"}));
        assert_eq!(ended(&life, "c")["state"], "done", "{step}");
        life.leave();
    }
}

/// The state on a small disk of its own, which is full when the promote is staged: nothing of the project is changed.
#[test]
fn a_promote_on_a_full_disk_changes_nothing_and_works_when_there_is_room() {
    let place = ViewPlace::new();
    let state = place.path().join("state");
    fs::create_dir_all(&state).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=24m,mode=0700", "state"]).arg(&state).status();
    assert!(mounted.unwrap().success(), "mount needs root");
    let unmount = |_| _ = nix::mount::umount2(&state, nix::mount::MntFlags::MNT_DETACH);
    let result = std::panic::catch_unwind(|| {
        let small = place.project().join("small");
        fs::create_dir(&small).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "small"]).arg(&small).status();
        assert!(mounted.unwrap().success());
        let spec = json!({"layout": "acheron-1", "agents": {AGENT: {"projects": ["here"], "view": "own"}},
            "projects": {"here": {"binds": {"/": {"path": "small", "read_only": false}}}}});
        write_spec(place.path(), &spec);
        fs::write(small.join("a"), "old").unwrap();
        let life = begin(place.path());
        fs::write(view(&life).join("fs/a"), vec![7; 1 << 20]).unwrap();
        // The project is on a mount of its own, so that it is staged there; that disk is full.
        let ballast = fs::File::create(small.join("ballast")).unwrap();
        let mut at = 0;
        while ballast.write_at(&[1; 4096], at).is_ok() {
            at += 4096;
        }
        call(&life, "promote", "full", json!({"paths": ["a"]}));
        let said = ended(&life, "full");
        assert_eq!(
            (said["state"].as_str(), said["error"]["code"].as_str()),
            (Some("failed"), Some("no_space")),
            "{said}"
        );
        assert_eq!(fs::read_to_string(small.join("a")).unwrap(), "old");
        drop(ballast); // a file that is open keeps its room
        fs::remove_file(small.join("ballast")).unwrap();
        call(&life, "promote", "room", json!({"paths": ["a"]}));
        assert_eq!(ended(&life, "room")["state"], "done", "{}", ended(&life, "room"));
        assert_eq!(fs::metadata(small.join("a")).unwrap().len(), 1 << 20);
        life.leave();
        _ = nix::mount::umount2(&small, nix::mount::MntFlags::MNT_DETACH);
    });
    unmount(());
    _ = nix::mount::umount2(&place.project().join("small"), nix::mount::MntFlags::MNT_DETACH);
    result.unwrap();
}
