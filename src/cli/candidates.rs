//! What the completion of the shells offers: agents, mounts, models and operations of what is mounted now. Used by
//! `acheron completions` and by the scripts that it prints, which call this program again.
//!
//! A mount that does not answer must not keep a shell: it is asked on a thread that is left behind.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use clap::{Arg, Command, CommandFactory};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use serde_json::Value;

use super::host_view::HostView;
use super::{Cli, root};
use crate::host::overview::HostOverview;
use acheron_fuse::mounts_of;

/// The variable by which the scripts of the shells ask for words.
pub const VARIABLE: &str = "ACHERON_COMPLETE";
/// The time for which a shell waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// The kinds of models.
const KINDS: [&str; 9] =
    ["script", "replay:", "openai:", "anthropic:", "ollama:", "openrouter:", "vllm:", "llamacpp:", "external"];

/// Answers a script of a shell, and ends the program then; does nothing if none asks.
pub fn answer() {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// The command line with what its words can be.
pub fn command() -> Command {
    with_candidates(Cli::command())
}

fn with_candidates(command: Command) -> Command {
    let command = command.mut_args(|arg| match candidates(&arg) {
        Some(candidates) => arg.add(candidates),
        None => arg,
    });
    let is_mounted = command.get_name() == "unmount";
    let command = match is_mounted {
        true => command.mut_arg("dir", |arg| arg.add(ArgValueCandidates::new(mounts))),
        false => command,
    };
    command.mut_subcommands(with_candidates)
}

fn candidates(arg: &Arg) -> Option<ArgValueCandidates> {
    match arg.get_id().as_str() {
        "agent" => Some(ArgValueCandidates::new(agents)),
        "root" => Some(ArgValueCandidates::new(mounts)),
        "model" => Some(ArgValueCandidates::new(models)),
        "operation" => Some(ArgValueCandidates::new(operations)),
        _ => None,
    }
}

fn words(all: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let mut all: Vec<String> = all.into_iter().collect();
    all.sort();
    all.dedup();
    all.into_iter().map(CompletionCandidate::new).collect()
}

fn mounted() -> Vec<PathBuf> {
    mounts_of("acheron").unwrap_or_default().into_iter().map(|mount| mount.path).collect()
}

fn mounts() -> Vec<CompletionCandidate> {
    words(mounted().iter().map(|path| path.display().to_string()))
}

fn agents() -> Vec<CompletionCandidate> {
    words(hosts().into_iter().flat_map(|host| host.agents).map(|agent| agent.agent_id))
}

/// The kinds, and the models that agents have now.
fn models() -> Vec<CompletionCandidate> {
    let kinds = KINDS.iter().map(|kind| (*kind).to_owned());
    let used = hosts().into_iter().flat_map(|host| host.agents).map(|agent| agent.model);
    words(kinds.chain(used))
}

/// `service.operation` of everything that the agents of a mount can call.
fn operations() -> Vec<CompletionCandidate> {
    words(
        each_mount(|root| {
            let read = |path: PathBuf| serde_json::from_slice::<Value>(&std::fs::read(path).ok()?).ok();
            let services = read(root.join("agents/self/services/SERVICES.json")).unwrap_or_default();
            let names = services.as_array().into_iter().flatten().filter_map(|service| service["service_id"].as_str());
            let of = |name: &str| {
                let operations = read(root.join("agents/self").join(name).join("OPS.json")).unwrap_or_default();
                let names = operations.as_object().into_iter().flat_map(|all| all.keys());
                names.map(|operation| format!("{name}.{operation}")).collect::<Vec<_>>()
            };
            Some(names.flat_map(of).collect::<Vec<_>>())
        })
        .into_iter()
        .flatten(),
    )
}

fn hosts() -> Vec<HostOverview> {
    each_mount(|root| {
        let health = root::health(root)?;
        HostView::open(Path::new(health["state"].as_str()?))?.look().ok()
    })
}

/// Asks every mount at once, and takes the answers that come in time.
fn each_mount<T: Send + 'static>(ask: impl Fn(&Path) -> Option<T> + Clone + Send + 'static) -> Vec<T> {
    let (tell, told) = mpsc::channel();
    let count = mounted().into_iter().map(|mount| {
        let (tell, ask) = (tell.clone(), ask.clone());
        std::thread::spawn(move || _ = tell.send(ask(&mount)));
    });
    let count = count.count();
    drop(tell);
    (0..count).map_while(|_| told.recv_timeout(PATIENCE).ok()).flatten().collect()
}
