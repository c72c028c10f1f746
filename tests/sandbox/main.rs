//! Ways out of a sandbox, each tried, none open. Needs no mount of ours, only a kernel with the isolation mechanisms.

mod descriptors;
mod disk_limits;
mod escapes;
mod foreign_owner;
mod guards;
mod landlock_only;
mod lives;
mod plain_user;
mod reserved_names;
mod runs;
mod sessions;
mod system;
mod together;
mod yardstick;

use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use acheron_sandbox::{ExitStatus, Plan, Running, Streams, start};

/// Far longer than anything here takes; only a hang is cut off by it.
const GUARD: Duration = Duration::from_secs(120);

pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_acheron"))
}

pub fn shell(script: &str) -> Plan {
    Plan::new("charon", ["sh", "-c", script])
}

pub fn python(script: &str) -> Plan {
    Plan::new("charon", ["/usr/bin/python3", "-c", script])
}

/// What a program said and how it ended.
#[derive(Debug)]
pub struct Seen {
    pub ended: ExitStatus,
    pub out: String,
    pub err: String,
}

/// Runs a plan to its end.
pub async fn run(plan: &Plan) -> acheron_base::Result<Seen> {
    let mut running = start(program(), plan, Streams::Piped).await?;
    finish(&mut running).await
}

pub async fn finish(running: &mut Running) -> acheron_base::Result<Seen> {
    drop(running.stdin.take());
    let (out, err) = (running.stdout.take(), running.stderr.take());
    let all = async {
        let (out, err, ended) = tokio::join!(text(out), text(err), running.wait());
        Ok(Seen { ended: ended?, out, err })
    };
    tokio::time::timeout(GUARD, all).await.expect("the sandbox hangs")
}

async fn text(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    stream.expect("piped").read_to_end(&mut bytes).await.expect("readable");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs a plan and compares all that it said, errors after a `!`.
pub fn check(plan: &Plan, expected: &str) {
    let seen = block(run(plan)).unwrap_or_else(|err| panic!("{err}"));
    let said = if seen.err.is_empty() { seen.out.clone() } else { format!("{}! {}", seen.out, seen.err) };
    assert_eq!(said.trim_end(), expected, "{seen:?}");
}

pub fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// A directory of the host with a secret in it.
pub fn secret() -> (tempfile::TempDir, std::path::PathBuf) {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("id_ed25519");
    std::fs::write(&file, "the operator's key\n").expect("writable");
    (home, file)
}
