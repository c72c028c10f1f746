//! Disks that disappoint while the host lives on them: full, read-only, locked, damaged.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::life::Life;
use super::load::put;
use acheron_store::Connection;

/// A file system of its own where the state of the host on `place` is kept.
struct Disk(PathBuf);

impl Disk {
    fn new(place: &Path, words: &[&str]) -> Disk {
        let state = place.join("state");
        fs::create_dir_all(&state).unwrap();
        let disk = Disk(state);
        disk.mount(words);
        disk
    }

    fn mount(&self, words: &[&str]) {
        let done = Command::new("mount").args(words).arg(&self.0).status().unwrap();
        assert!(done.success(), "mount {words:?} needs root");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        _ = nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH);
    }
}

fn errno(written: io::Result<()>) -> i32 {
    written.err().and_then(|error| error.raw_os_error()).unwrap_or(0)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// What must answer however the disk is: names, pages, what is remembered, how the host is.
fn still_serves(life: &Life, remembered: &str) {
    let agent = life.agent();
    assert!(fs::read_to_string(life.root().join("README.md")).unwrap().starts_with("# Acheron"));
    assert!(json(&life.root().join("meta/health.json"))["ok"].is_boolean());
    assert!(fs::read_dir(agent.join("memory/items")).unwrap().count() >= 1);
    assert_eq!(fs::read_to_string(agent.join("memory/items/plan/content")).unwrap(), remembered);
    assert!(!fs::read(agent.join("memory/active.json")).unwrap().is_empty());
    assert!(!fs::read(agent.join("services/SERVICES.json")).unwrap().is_empty());
}

/// The host on `place` with a memory in it that says `cross`.
fn with_a_plan(place: &Path) -> (Life, PathBuf) {
    let life = Life::begin(place, &[]);
    let plan = life.agent().join("memory/items/plan");
    fs::create_dir(&plan).unwrap();
    put(&plan.join("content"), "cross").unwrap();
    (life, plan)
}

/// The log of a daemon is on the same disk: a task that logged its failure there used to die of that.
#[test]
fn a_job_that_ends_while_the_disk_is_full_ends() {
    let place = tempfile::tempdir().unwrap();
    let disk = Disk::new(place.path(), &["-t", "tmpfs", "-o", "size=12m,mode=0700", "state"]);
    let (root, go) = (place.path().join("mnt"), place.path().join("go"));
    fs::create_dir(&root).unwrap();
    let acheron = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acheron"));
        let done = command.args(words).arg(&root).current_dir(place.path()).status().unwrap();
        assert!(done.success(), "{words:?}");
    };
    acheron(&["mount", "--daemon", "--state", disk.0.to_str().unwrap()]);
    let agent = root.join("agents/charon");
    let ended = std::panic::catch_unwind(|| {
        let command = "until [ -e /projects/here/fs/go ]; do sleep 0.01; done";
        put(&agent.join("terminal/control/exec.json"), &serde_json::json!({ "command": command }).to_string()).unwrap();
        let job = fs::canonicalize(agent.join("jobs/last")).unwrap();
        let ballast = fs::File::create(disk.0.join("ballast")).unwrap();
        let mut at = 0;
        while ballast.write_at(&[1; 4096], at).is_ok() {
            at += 4096;
        }
        fs::write(&go, "").unwrap();
        let status = Command::new("timeout").arg("60").arg("cat").arg(job.join("status.json")).output().unwrap();
        String::from_utf8(status.stdout).unwrap()
    });
    acheron(&["unmount"]);
    let ended = ended.unwrap();
    assert!(ended.contains("\"failed\"") && ended.contains("no_space"), "{ended}");
}

#[test]
fn a_full_disk_is_said_to_the_writer_and_everybody_else_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let disk = Disk::new(place.path(), &["-t", "tmpfs", "-o", "size=12m,mode=0700", "state"]);
    let (life, plan) = with_a_plan(place.path());
    let ballast = disk.0.join("ballast");
    let file = fs::File::create(&ballast).unwrap();
    let mut at = 0;
    while file.write_at(&[1; 4096], at).is_ok() {
        at += 4096;
    }

    // what was reserved before may still take something
    let text = |n: usize| format!("{n} {}", "x".repeat(200_000));
    let mut kept = 0;
    let refused = loop {
        match put(&plan.join("content"), &text(kept + 1)) {
            Ok(()) => kept += 1,
            refused => break refused,
        }
        assert!(kept < 200, "the disk never was full");
    };
    assert_eq!(errno(refused), libc::ENOSPC);
    let remembered = if kept == 0 { "cross".to_owned() } else { text(kept) };
    still_serves(&life, &remembered);
    assert_eq!(fs::read_dir(plan.join("versions")).unwrap().count(), kept + 2, "nothing is half-written");
    let create = life.agent().join("memory/control/create.json");
    let command = format!(r#"{{"kind":"note","content":"{}"}}"#, "y".repeat(300_000));
    assert_eq!(errno(put(&create, &command)), libc::ENOSPC);
    let status = json(&life.agent().join("memory/status.json"));
    assert_eq!(status["error"]["code"], "no_space", "{status}");
    assert!(status["error"]["message"].as_str().unwrap().contains("make room"), "{status}");
    let health = || json(&life.root().join("meta/health.json"));
    assert_eq!(health()["ok"], false, "{}", health());
    assert!(health()["faults"].to_string().contains("the disk that holds the state is full"), "{}", health());

    drop(file);
    fs::remove_file(ballast).unwrap();
    put(&plan.join("content"), "room again").unwrap();
    assert_eq!(health()["ok"], true, "{}", health());
    life.kill();
    let life = Life::begin(place.path(), &[]);
    still_serves(&life, "room again");
    life.kill();
}

#[test]
fn a_message_for_which_there_is_no_room_is_reported_by_the_chat() {
    let place = tempfile::tempdir().unwrap();
    let disk = Disk::new(place.path(), &["-t", "tmpfs", "-o", "size=12m,mode=0700", "state"]);
    let (life, plan) = with_a_plan(place.path());
    let file = fs::File::create(disk.0.join("ballast")).unwrap();
    let mut at = 0;
    while file.write_at(&[1; 4096], at).is_ok() {
        at += 4096;
    }
    // what was reserved before may still take something
    for n in 0.. {
        assert!(n < 200, "the disk never was full");
        if put(&plan.join("content"), &format!("{n} {}", "x".repeat(200_000))).is_err() {
            break;
        }
    }
    let said = Command::new(env!("CARGO_BIN_EXE_acheron"))
        .args(["chat", "-m", &"x".repeat(100_000), "--root"])
        .arg(life.root())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = format!("{:?} {}", said.status.code(), String::from_utf8_lossy(&said.stderr));
    assert!(said.starts_with("Some(1)") && said.contains("No space left"), "{said}");
    let status = json(&life.agent().join("chat/status.json"));
    assert_eq!(status["error"]["code"], "no_space", "{status}");
    life.kill();
}

#[test]
fn a_disk_that_becomes_read_only_is_said_to_the_writer_and_everybody_else_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let image = place.path().join("image");
    fs::File::create(&image).unwrap().set_len(32 << 20).unwrap();
    assert!(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).status().unwrap().success());
    let disk = Disk::new(place.path(), &["-o", "loop", image.to_str().unwrap()]);
    let (life, plan) = with_a_plan(place.path());
    // what the kernel does by itself when a disk fails under it
    disk.mount(&["-o", "remount,abort"]);

    assert_eq!(errno(put(&plan.join("content"), "another way")), libc::EROFS);
    still_serves(&life, "cross");
    let signal = life.agent().join("events/control/signal.json");
    assert_eq!(errno(put(&signal, r#"{"event_type":"user"}"#)), libc::EROFS);
    let status = json(&life.agent().join("events/status.json"));
    assert_eq!(status["error"]["code"], "read_only", "{status}");
    life.kill();

    drop(disk);
    let disk = Disk::new(place.path(), &["-o", "loop", image.to_str().unwrap()]);
    let life = Life::begin(place.path(), &[]);
    put(&life.agent().join("memory/items/plan/content"), "writable again").unwrap();
    life.kill();
    drop(disk);
}

#[test]
fn a_locked_database_is_said_to_the_writer_and_everybody_else_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let (life, plan) = with_a_plan(place.path());
    let other = Connection::open(place.path().join("state/acheron.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(errno(put(&plan.join("content"), "another way")), libc::EAGAIN);
    still_serves(&life, "cross");
    other.execute_batch("ROLLBACK").unwrap();
    put(&plan.join("content"), "after it").unwrap();
    still_serves(&life, "after it");
    life.kill();
}

#[test]
fn a_damaged_database_takes_nothing_else_with_it_and_is_refused_at_the_next_start() {
    let place = tempfile::tempdir().unwrap();
    let (life, plan) = with_a_plan(place.path());
    let state = place.path().join("state");
    for name in ["acheron.db", "acheron.db-wal"] {
        let file = fs::OpenOptions::new().write(true).open(state.join(name)).unwrap();
        let length = file.metadata().unwrap().len();
        file.write_at(&vec![0xA5; length as usize], 0).unwrap();
    }
    // what is in somebody's memory may still be told; what is not is an error, and never a panic
    for name in ["content", "versions/1", "meta.json"] {
        if let Err(error) = fs::read(plan.join(name)) {
            assert_eq!(error.raw_os_error(), Some(libc::EIO), "{name}: {error}");
        }
    }
    _ = put(&plan.join("content"), "lost or not");
    assert!(fs::read_to_string(life.root().join("README.md")).unwrap().starts_with("# Acheron"));
    assert!(json(&life.root().join("meta/health.json"))["ok"].is_boolean());
    life.kill();

    let said = Command::new(env!("CARGO_BIN_EXE_acheron"))
        .args(["mount", "mnt", "--state", "state"])
        .current_dir(place.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = format!("{:?} {}", said.status.code(), String::from_utf8_lossy(&said.stderr));
    assert!(said.starts_with("Some(1)") && said.contains("damaged") && said.contains("backup"), "{said}");
}

#[test]
fn a_host_does_not_start_on_a_read_only_disk_and_says_so() {
    let place = tempfile::tempdir().unwrap();
    let disk = Disk::new(place.path(), &["-t", "tmpfs", "-o", "size=4m,mode=0700,ro", "state"]);
    fs::create_dir(place.path().join("mnt")).unwrap();
    for words in [&["mount", "mnt"][..], &["mount", "mnt", "--daemon"]] {
        let said = Command::new(env!("CARGO_BIN_EXE_acheron"))
            .args(words)
            .arg("--state")
            .arg(&disk.0)
            .current_dir(place.path())
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let said = format!("{:?} {}", said.status.code(), String::from_utf8_lossy(&said.stderr));
        assert!(said.starts_with("Some(1)") && said.to_lowercase().contains("read-only"), "{words:?}: {said}");
        assert!(said.contains(disk.0.to_str().unwrap()), "{words:?}: {said}");
    }
}
