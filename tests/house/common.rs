//! Running programs in a mounted tree, and comparing all that they say.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use expect_test::Expect;

/// Far more than anything here takes, on any machine.
pub const GUARD: Duration = Duration::from_secs(60);

/// A program in the mount: killed when it takes too long, with few variables around it.
pub fn command(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &GUARD.as_secs().to_string()]).args(words).current_dir(root);
    command.env_clear().envs(std::env::vars().filter(|(name, _)| name == "PATH" || name == "HOME" || name == "TMPDIR"));
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// Runs a bash session in `root`; returns what it printed, then the lines of its errors after `! `.
pub fn session(root: &Path, script: &str) -> String {
    said(command(root, &["bash", "-c", script]))
}

/// Runs a Python program in `root`.
pub fn python(root: &Path, script: &str) -> String {
    said(command(root, &["python3", "-c", script]))
}

fn said(mut command: Command) -> String {
    let output = command.output().unwrap();
    let mut printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !printed.is_empty() && !printed.ends_with('\n') {
        printed.push_str("\\\n");
    }
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        printed.push_str(&format!("! {line}\n"));
    }
    if output.status.code() == Some(124) || output.status.code().is_none() {
        printed.push_str("! it took too long\n");
    }
    printed
}

/// Runs a bash session in `root` and compares everything it says.
#[track_caller]
pub fn check(root: &Path, script: &str, expect: Expect) {
    expect.assert_eq(&session(root, script));
}

/// Waits until `so` is true.
#[track_caller]
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < GUARD, "{what}: not after {GUARD:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The state of a thread or process, such as `S`; nothing if it is gone.
pub fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim().chars().next()
}

/// Every source file of the crate, by its path from the top.
pub fn sources() -> Vec<(PathBuf, String)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open = vec![top.join("src"), top.join("crates")];
    let mut found = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(top).unwrap().to_owned(), text));
            }
        }
    }
    found
}

/// Every page of documentation in the repository, by its path from the top: those at the top and those under `docs/`.
pub fn documents() -> Vec<(String, String)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open = vec![top.join("docs")];
    let mut found: Vec<PathBuf> = std::fs::read_dir(top).unwrap().map(|entry| entry.unwrap().path()).collect();
    while let Some(dir) = open.pop() {
        let (dirs, files): (Vec<_>, Vec<_>) =
            std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).partition(|path| path.is_dir());
        open.extend(dirs);
        found.extend(files);
    }
    found.retain(|path| path.extension().is_some_and(|it| it == "md"));
    found.sort();
    let page = |path: &PathBuf| {
        let name = path.strip_prefix(top).unwrap().display().to_string();
        (name, std::fs::read_to_string(path).unwrap())
    };
    found.iter().map(page).collect()
}
