//! `acheron fabric`.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{CommandResult, Failure, say};
use crate::host::fabric::monitor;
use acheron_base::{Error, Result};
use acheron_fabric::engine::{self, EngineFacts};
use acheron_fabric::names::{OPERATOR, check_node};
use acheron_fabric::rights;
use acheron_nats::{Link, LinkOptions, new_seed, public_key};

/// Prepare a NATS server for many hosts: keys, streams, and what it must be able to do.
///
/// Hosts join by `fabric` in their mountspecs. A server without users needs none of this: the first host sets it up.
#[derive(Args)]
pub struct FabricArgs {
    #[command(subcommand)]
    command: FabricCommand,
}

#[derive(Subcommand)]
enum FabricCommand {
    Credentials(CredentialsArgs),
    Init(FabricInitArgs),
    Check(FabricCheckArgs),
}

/// Make the keys of hosts, and print the `authorization` for the server's configuration.
///
/// Each host gets a key in its own file, which `credentials` in its mountspec names; the operator gets one for `init` and `check`.
/// Keys that are there are kept. The server's part lets each host speak in its own name only.
#[derive(Args)]
struct CredentialsArgs {
    /// The names of hosts; those whose keys are in the directory are there without being named
    nodes: Vec<String>,
    /// Where the keys are kept, one file each, which only you can read
    #[arg(long, value_name = "DIR", default_value = "fabric-keys")]
    dir: PathBuf,
}

#[derive(Args)]
struct FabricServerArgs {
    /// The server: nats://host:4222, or several with commas between them
    #[arg(long, value_name = "URL", default_value = "nats://127.0.0.1:4222")]
    url: String,
    /// The file with the operator's key
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// The certificates of who vouches for the server; the connection is then encrypted
    #[arg(long, value_name = "FILE")]
    roots: Option<PathBuf>,
}

/// Make the streams and buckets, and what each host reads its mail by. Again is the same.
#[derive(Args)]
struct FabricInitArgs {
    /// The names of hosts
    nodes: Vec<String>,
    /// The copies of everything: 3 on a cluster
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=5))]
    replicas: u64,
    #[command(flatten)]
    server: FabricServerArgs,
}

/// Try whether a server can carry the fabric, and whether what it acknowledges is safe.
#[derive(Args)]
struct FabricCheckArgs {
    /// The monitoring address of the server, which tells whether it writes to its disk at once
    #[arg(long, value_name = "URL")]
    monitor: Option<String>,
    #[command(flatten)]
    server: FabricServerArgs,
}

impl FabricServerArgs {
    async fn connect(&self) -> Result<Link> {
        let seed = self.credentials.as_deref().map(read_key).transpose()?;
        let (url, roots) = (self.url.clone(), self.roots.clone());
        Link::connect(&LinkOptions { url, node: OPERATOR.to_owned(), seed, roots }).await
    }
}

impl FabricArgs {
    pub fn run(self) -> CommandResult {
        match self.command {
            FabricCommand::Credentials(it) => it.run(),
            FabricCommand::Init(it) => wait(it.run()),
            FabricCommand::Check(it) => wait(it.run()),
        }
    }
}

fn wait(work: impl Future<Output = CommandResult>) -> CommandResult {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?.block_on(work)
}

fn read_key(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|err| Error::from(err).about(file.display()))
}

/// The key of a host: the one that is there, or a new one.
fn key(dir: &Path, node: &str) -> Result<String> {
    let file = dir.join(format!("{node}.nk"));
    if !file.exists() {
        let new = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
        let mut new = new.map_err(|err| Error::from(err).about(file.display()))?;
        new.write_all(format!("{}\n", new_seed()?).as_bytes())?;
        new.sync_all()?;
        eprintln!("made {}", file.display());
    }
    public_key(&read_key(&file)?).map_err(|error| error.about(file.display()))
}

impl CredentialsArgs {
    fn run(mut self) -> CommandResult {
        for node in &self.nodes {
            check_node(node)?;
        }
        std::fs::create_dir_all(&self.dir).map_err(|err| Error::from(err).about(self.dir.display()))?;
        for entry in std::fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let known = name.to_str().and_then(|name| name.strip_suffix(".nk")).filter(|name| check_node(name).is_ok());
            self.nodes.extend(known.map(str::to_owned));
        }
        self.nodes.retain(|node| node != OPERATOR);
        self.nodes.sort();
        self.nodes.dedup();
        let operator = key(&self.dir, OPERATOR)?;
        let hosts =
            self.nodes.iter().map(|node| Ok((node.clone(), key(&self.dir, node)?))).collect::<Result<Vec<_>>>()?;
        say(&rights::authorization(Some(&operator), &hosts));
        Ok(ExitCode::SUCCESS)
    }
}

impl FabricInitArgs {
    async fn run(self) -> CommandResult {
        for node in &self.nodes {
            check_node(node)?;
        }
        let link = self.server.connect().await?;
        link.set_up(self.replicas, &self.nodes).await?;
        say(&format!("the fabric is set up, with {} of everything\n", copies(self.replicas)));
        for node in &self.nodes {
            say(&format!("{node} can join\n"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn copies(replicas: u64) -> String {
    if replicas == 1 { "one copy".to_owned() } else { format!("{replicas} copies") }
}

impl FabricCheckArgs {
    async fn run(self) -> CommandResult {
        let link = self.server.connect().await?;
        say(&format!("version {}: fine\n", link.version()));
        link.probe_fencing().await.map_err(|error| Failure::hint(error, "`check` needs the operator's credentials"))?;
        say("a write of a host that was overtaken is refused: fine\n");
        let replicas = link.replicas().await.map_err(|error| {
            Failure::hint(
                error,
                "`acheron fabric init` makes what is missing; on a server without users the first host does",
            )
        })?;
        say(&format!("streams and buckets are there, with {} of everything: fine\n", copies(replicas)));
        let sync_always = match &self.monitor {
            Some(address) => monitor::writes_at_once(address).await.ok(),
            None => None,
        };
        let facts = EngineFacts { version: link.version(), jetstream: true, sync_always, replicas };
        match engine::degraded(&facts) {
            None => say("what it acknowledges survives a power failure: fine\n"),
            Some(why) => {
                say(&format!("degraded: {why}\n"));
                return Ok(ExitCode::FAILURE);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
