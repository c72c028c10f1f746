//! Named steps at which a test kills this process, to see what a crash there leaves behind, or makes a thread hang. Any
//! crate may name a step; only builds for tests look at it.

/// The environment variable with the path of a file. While the file contains the name of a step, the process dies there;
/// after `hang `, the thread adds a line to the file `.hung` beside it, and waits there for ever.
pub const VARIABLE: &str = "ACHERON_FAILPOINT";

/// Dies with `SIGKILL` if a test asked for it, as nothing else can: no destructor runs, no buffer is written.
#[cfg(any(debug_assertions, feature = "failpoints"))]
pub fn step(name: &str) {
    use std::path::PathBuf;
    use std::sync::OnceLock;

    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let Some(file) = FILE.get_or_init(|| std::env::var_os(VARIABLE).map(PathBuf::from)) else { return };
    let Ok(wanted) = std::fs::read_to_string(file) else { return };
    let (hang, wanted) = match wanted.trim().strip_prefix("hang ") {
        Some(wanted) => (true, wanted),
        None => (false, wanted.trim()),
    };
    if wanted != name {
        return;
    }
    if hang {
        use std::io::Write as _;
        let told = std::fs::OpenOptions::new().create(true).append(true).open(file.with_extension("hung"));
        _ = told.and_then(|mut told| writeln!(told, "{name}"));
    } else {
        _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    loop {
        std::thread::park(); // until the signal arrives, if any does
    }
}

/// The step `name.number`: one of several of the same kind.
#[cfg(any(debug_assertions, feature = "failpoints"))]
pub fn numbered(name: &str, number: usize) {
    step(&format!("{name}.{number}"));
}

/// Does nothing.
#[cfg(not(any(debug_assertions, feature = "failpoints")))]
#[inline(always)]
pub fn numbered(_name: &str, _number: usize) {}

/// Does nothing.
#[cfg(not(any(debug_assertions, feature = "failpoints")))]
#[inline(always)]
pub fn step(_name: &str) {}
