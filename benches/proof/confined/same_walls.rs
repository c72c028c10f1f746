//! bubblewrap with the walls of ours, as far as it can build them: the same mounts, read from inside of ours, and control
//! groups of the same kinds with the same limits. It has no Landlock rules; the filter of system calls is left out.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::super::house::{Scratch, TestHost};
use super::timed;

/// A control group to be made, the limits in it, and the file by which a process enters it.
struct Group {
    path: PathBuf,
    limits: Vec<(&'static str, &'static str)>,
    door: &'static str,
}

pub struct SameWalls {
    words: Vec<String>,
    groups: Vec<Group>,
    _masks: Scratch,
}

impl SameWalls {
    pub fn of(house: &TestHost) -> SameWalls {
        let masks = Scratch::new();
        fs::write(masks.path().join("file"), "").expect("a mask");
        masks.make("directory");
        let words = words(&inside(house), masks.path(), &house.path(""));
        SameWalls { words, groups: groups(), _masks: masks }
    }

    /// Makes the groups, runs `/bin/true` in them, and removes them again.
    pub fn bubblewrap(&self) -> Duration {
        let began = Instant::now();
        for group in &self.groups {
            fs::create_dir(&group.path).expect("a control group");
            for (name, value) in &group.limits {
                fs::write(group.path.join(name), value).expect("a limit");
            }
        }
        // As ours: one group of the sandbox in one of the agent; only the inner ones are entered.
        let inner = self
            .groups
            .iter()
            .filter(|group| !self.groups.iter().any(|other| other.path.parent() == Some(&group.path)));
        let doors: Vec<fs::File> = inner
            .map(|group| {
                fs::OpenOptions::new().write(true).open(group.path.join(group.door)).expect("a group to enter")
            })
            .collect();
        let mut command = Command::new("bwrap");
        command.args(&self.words);
        let enter = move || doors.iter().try_for_each(|mut door| std::io::Write::write_all(&mut door, b"0"));
        // SAFETY: between fork and exec the child only writes to descriptors that are open.
        unsafe { command.pre_exec(enter) };
        timed(&mut command);
        for group in self.groups.iter().rev() {
            fs::remove_dir(&group.path).expect("the group is empty");
        }
        began.elapsed()
    }
}

/// The mounts that a program in ours sees.
fn inside(house: &TestHost) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acheron"));
    command.args(["exec", "--root"]).arg(house.path("")).args([
        "--agent",
        "charon",
        "--",
        "cat",
        "/proc/self/mountinfo",
    ]);
    let output = command.output().expect("a program in a sandbox");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a list of mounts")
}

/// The options by which bubblewrap mounts the same.
fn words(mounts: &str, masks: &Path, root: &Path) -> Vec<String> {
    let mut words: Vec<String> =
        "--unshare-all --die-with-parent --cap-drop ALL --proc /proc --dev /dev --tmpfs /dev/shm --tmpfs /tmp --tmpfs /home \
         --symlink usr/bin /bin --symlink usr/sbin /sbin --symlink usr/lib /lib --symlink usr/lib64 /lib64"
            .split_whitespace()
            .map(str::to_owned)
            .collect();
    for line in mounts.lines() {
        let (left, right) = line.split_once(" - ").expect("a mount");
        let left: Vec<&str> = left.split(' ').collect();
        let (inner, point, kind) = (left[3], left[4], right.split(' ').next().unwrap_or_default());
        let own = ["/", "/tmp", "/home", "/proc", "/dev"].contains(&point) || point.starts_with("/dev/");
        let source = match kind {
            _ if own => continue,
            "tmpfs" if is_directory(point) => masks.join("directory"),
            "tmpfs" => masks.join("file"),
            kind if kind.starts_with("fuse") => root.join(inner.trim_start_matches('/')),
            _ => PathBuf::from(inner),
        };
        assert!(source.exists(), "{line}: not found outside as {}", source.display());
        words.extend(["--ro-bind".to_owned(), source.display().to_string(), point.to_owned()]);
    }
    words.extend(["--chdir", "/home", "/bin/true"].map(str::to_owned));
    words
}

fn is_directory(point: &str) -> bool {
    Path::new(point).is_dir()
}

/// The groups that ours makes on a machine with the first version of control groups; on another there are none to compare
/// with, and the baseline is cheaper.
fn groups() -> Vec<Group> {
    let mut groups = Vec::new();
    for (controller, limits) in [
        ("memory", vec![("memory.limit_in_bytes", "4294967296")]),
        ("pids", vec![("pids.max", "512")]),
        ("cpu", Vec::new()),
    ] {
        let parent = Path::new("/sys/fs/cgroup").join(controller);
        if !parent.join("tasks").exists() {
            continue;
        }
        let agent = parent.join(format!("bench-{}", std::process::id()));
        let own = agent.join("own");
        groups.push(Group { path: agent, limits: limits.clone(), door: "tasks" });
        groups.push(Group { path: own, limits, door: "tasks" });
    }
    groups
}
