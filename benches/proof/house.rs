//! A house in a process of its own, and how its mount is used: by plain system calls, so that the client costs nothing.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than anything here takes.
pub const GUARD: Duration = Duration::from_secs(300);

/// A directory that goes with its holder.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Scratch {
        Scratch(tempfile::Builder::new().prefix("acheron-bench-").tempdir().expect("a temporary directory"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn make(&self, name: &str) -> PathBuf {
        let dir = self.path().join(name);
        std::fs::create_dir_all(&dir).expect("a directory");
        dir
    }
}

/// A daemon's side: tells that it answers.
pub fn ready() {
    println!("ready");
    std::io::stdout().flush().expect("somebody listens");
}

/// This program once more, as a daemon; returns when it is ready.
pub fn again(words: &[&str]) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args(words);
    started(command)
}

/// Starts a daemon and waits for the first line that it says.
pub fn started(mut command: Command) -> Child {
    let mut daemon = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a daemon");
    let mut line = String::new();
    BufReader::new(daemon.stdout.as_mut().expect("its output")).read_line(&mut line).expect("a line");
    assert!(!line.is_empty(), "the daemon ended before it was ready");
    daemon
}

/// `acheron`, mounted.
pub struct TestHost {
    daemon: Child,
    root: PathBuf,
    metrics: File,
    scratch: Scratch,
}

/// The namespace that is measured unless a row needs another.
pub fn plain() -> Value {
    serde_json::json!({
        "layout": "acheron-1",
        "default_agent": "charon",
        "model": { "kind": "script" },
        "agents": { "charon": { "about": "measured" } },
    })
}

impl TestHost {
    pub fn start(spec: &Value) -> TestHost {
        TestHost::in_scratch(Scratch::new(), spec)
    }

    pub fn in_scratch(scratch: Scratch, spec: &Value) -> TestHost {
        let daemon = started(TestHost::command(&scratch, spec));
        let root = scratch.path().join("mnt");
        let metrics = File::open(root.join("meta/metrics.json")).expect("the metrics");
        TestHost { daemon, root, metrics, scratch }
    }

    pub fn command(scratch: &Scratch, spec: &Value) -> Command {
        let file = scratch.path().join("spec.json");
        std::fs::write(&file, spec.to_string()).expect("a mountspec");
        let mut command = Command::new(env!("CARGO_BIN_EXE_acheron"));
        command.arg("mount").arg(scratch.make("mnt")).arg("--spec").arg(file);
        command.arg("--state").arg(scratch.path().join("state")).current_dir(scratch.path());
        command
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The directory in which it was started.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A path of the first agent.
    pub fn own(&self, name: &str) -> PathBuf {
        self.root.join("agents/charon").join(name)
    }

    pub fn pid(&self) -> u32 {
        self.daemon.id()
    }

    pub fn metrics(&self) -> Value {
        let mut bytes = vec![0; 1 << 16];
        let length = self.metrics.read_at(&mut bytes, 0).expect("the metrics");
        serde_json::from_slice(&bytes[..length]).expect("JSON")
    }

    /// Which requests `work` costs, beside this asking itself.
    pub fn requests(&self, work: impl FnOnce()) -> BTreeMap<String, u64> {
        let counted = || -> BTreeMap<String, u64> {
            serde_json::from_value(self.metrics()["requests"].clone()).expect("the requests")
        };
        let before = counted();
        work();
        let mut after = counted();
        after.retain(|what, count| {
            *count -= before.get(what).unwrap_or(&0) + u64::from(what == "read");
            *count > 0
        });
        after
    }

    /// The round trips of one operation, by doing it `times` times: `OPEN 1, READ 1, RELEASE 1`.
    pub fn round_trips(&self, times: usize, mut work: impl FnMut(usize)) -> String {
        work(0); // names that the kernel has not seen yet are looked up once
        let found = self.requests(|| (0..times).for_each(&mut work));
        let order = |what: &str| ["lookup", "getattr", "open", "read", "write"].iter().position(|it| *it == what);
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(what, _)| order(what).unwrap_or(usize::MAX));
        let each = |(what, count): &(String, u64)| {
            let each = *count as f64 / times as f64;
            let shown = if each.fract() == 0.0 { format!("{each:.0}") } else { format!("{each:.3}") };
            format!("{} {shown}", what.to_uppercase())
        };
        match found.is_empty() {
            true => "none".to_owned(),
            false => found.iter().map(each).collect::<Vec<_>>().join(", "),
        }
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.daemon.id() as i32);
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = self.daemon.wait();
    }
}

/// Opens, reads once and closes; returns how many bytes there were.
pub fn read_once(path: &Path, buffer: &mut [u8]) -> usize {
    File::open(path).and_then(|mut file| file.read(buffer)).expect("a read")
}

/// One read at the start of an open file.
pub fn pread(file: &File) {
    assert!(file.read_at(&mut [0; 4096], 0).expect("a read") > 0);
}

/// Opens, reads once and closes.
pub fn glance(path: &Path) {
    assert!(read_once(path, &mut [0; 4096]) > 0);
}

/// Opens with truncation, writes and closes, as a shell does.
pub fn write_once(path: &Path, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).truncate(true).open(path);
    file.and_then(|mut file| file.write_all(bytes)).expect("a write");
}

/// Asks on a private handle, and returns the answer.
pub fn ask(path: &Path, command: &Value) -> Value {
    let mut file = OpenOptions::new().read(true).write(true).open(path).expect("a control file");
    file.write_all(command.to_string().as_bytes()).expect("a command");
    let mut said = String::new();
    file.read_to_string(&mut said).expect("an answer");
    serde_json::from_str(&said).expect("JSON")
}

/// Waits until `so`.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < GUARD, "{what}: not after {GUARD:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A number of `/proc/PID/status`, such as `VmRSS` in KiB.
pub fn status(pid: u32, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).expect("a field");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}
