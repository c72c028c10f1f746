//! Runs the example of the crate documentation on a real mount.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use acheron_fuse::{force_unmount, mounts_of};

/// The program of the example. A test that fails must not leave it or its mount behind.
struct Example {
    child: Child,
    mountpoint: PathBuf,
}

impl Drop for Example {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        for mount in mounts_of("acheron").unwrap_or_default().iter().filter(|it| it.path == self.mountpoint) {
            _ = force_unmount(mount);
        }
    }
}

/// Cargo builds the examples before it runs the tests of a package, next to the directory of the test programs.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples/waiting")
}

#[test]
fn the_example_waits_wakes_and_unmounts() {
    let scratch = tempfile::tempdir().unwrap();
    let mountpoint = scratch.path().canonicalize().unwrap();
    let mut command = Command::new(program());
    command.arg(&mountpoint).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut example = Example { child: command.spawn().unwrap(), mountpoint: mountpoint.clone() };
    let mut input = example.child.stdin.take().unwrap();
    let mut lines = BufReader::new(example.child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("mounted on "));

    let names: Vec<_> = std::fs::read_dir(&mountpoint).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["door"]);
    let refused = Command::new("dd").arg("iflag=nonblock").arg(format!("if={}/door", mountpoint.display())).output();
    let refused = String::from_utf8_lossy(&refused.unwrap().stderr).into_owned();
    assert!(refused.contains("Resource temporarily unavailable"), "{refused}");

    let door = mountpoint.join("door");
    let reader = std::thread::spawn(move || std::fs::read_to_string(door).unwrap());
    input.write_all(b"\n").unwrap();
    assert_eq!(reader.join().unwrap(), "open\n");
    assert_eq!(lines.next().unwrap(), "open; press Enter to unmount");

    input.write_all(b"\n").unwrap();
    assert!(example.child.wait().unwrap().success());
    assert!(!mounts_of("acheron").unwrap().iter().any(|it| it.path == mountpoint));
}
