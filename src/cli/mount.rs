//! `acheron mount`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::here::{absolute, here};
use super::mount_report::{tell_faults, tell_who_sees};
use super::{CommandResult, Failure, daemon, deadline, log, log_rotation, say};
use crate::host::trusted_defaults::TrustedDefaults;
use crate::host::{Host, Options};
use crate::spec::{self, ModelKind, ModelProtocol, Spec};
use acheron_base::{Clock, Error, Random, Result};

/// Mount a namespace; Ctrl-C unmounts it.
#[derive(Args)]
pub struct MountArgs {
    /// An empty directory
    pub dir: PathBuf,
    /// Mountspec [default: ./mountspec/default.json, else the built-in one]
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// State directory [default: $XDG_STATE_HOME/acheron]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Model: script[:FILE], replay:FILE, external, or SERVER:MODEL (openai, anthropic, openrouter, ollama, vllm, llamacpp)
    #[arg(long, value_name = "KIND[:NAME]")]
    pub model: Option<String>,
    /// How the model calls tools: json, or native (the provider's own tool calls)
    #[arg(long, value_name = "json|native")]
    pub protocol: Option<String>,
    /// Record every answer of every model to FILE, for --model replay:FILE
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Return when the mount is ready and keep it running in the background
    #[arg(long)]
    pub daemon: bool,
    /// Unmount when the last command that came by the socket has gone
    #[arg(long, hide = true)]
    pub leased: bool,
    /// The daemon itself: tells on standard output when it is ready
    #[arg(long, hide = true)]
    pub child: bool,
}

impl MountArgs {
    pub fn run(self) -> CommandResult {
        acheron_fuse::allocator::begin();
        // Only descriptors left by the starter are open yet; programs of this host would inherit them.
        acheron_sandbox::close_others(None);
        allow_more_descriptors();
        let here = here()?;
        if self.spec.is_none() {
            let hint = "acheron mount DIR --spec mountspec/default.json";
            let before = state(self.state.as_deref(), None, &here)?;
            TrustedDefaults::open(&before)?.mountspec(&here).map_err(|error| Failure::hint(error, hint))?;
        }
        let spec = self.chosen_spec(&here)?;
        if let Some(why) = unbound(self.spec.as_deref(), &here).filter(|_| !self.child) {
            eprintln!("note: {why}");
        }
        let state = settled(state(self.state.as_deref(), Some(&spec), &here)?);
        let dir = absolute(&self.dir)?;
        if state.starts_with(&dir) {
            let said = format!("the state directory {} is inside the mount point", state.display());
            return Err(Failure::hint(Error::invalid(said), "choose another with --state DIR"));
        }
        if self.daemon {
            // Checked here, because the log of a daemon that does not start has nothing to add.
            acheron_fuse::prepare_mountpoint(&dir, &acheron_fuse::Options::default())?;
            return daemon::start(&self, &state, &spec);
        }
        if self.child {
            log_rotation::begin(daemon::log_file(&state));
        }
        log(if self.child { "info" } else { "warn" });
        let followed = spec_file(self.spec.as_deref(), &here).map(std::path::absolute).transpose()?;
        let options =
            Options { spec, here, state, mountpoint: Some(dir.clone()), clock: Clock::real(), random: Random::real() };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let served = runtime.block_on(serve(options, &dir, &self, followed.as_deref()));
        // A thread that still blocks must not keep the program alive.
        runtime.shutdown_background();
        served?;
        Ok(ExitCode::SUCCESS)
    }

    fn chosen_spec(&self, here: &Path) -> Result<Spec, Failure> {
        let mut spec = spec(self.spec.as_deref(), here)?;
        let mut chosen = Vec::new();
        if let Some(word) = &self.model {
            let (kind, name) = word.split_once(':').map_or((word.as_str(), None), |(kind, name)| (kind, Some(name)));
            let known = serde_json::from_value::<ModelKind>(kind.into());
            spec.model.kind = known.map_err(|_| {
                Failure::hint(
                    Error::invalid(format!("unknown model kind `{kind}`")),
                    "script[:FILE], replay:FILE, external, or SERVER:MODEL (openai, anthropic, openrouter, ollama, vllm, llamacpp)",
                )
            })?;
            spec.model.name = name.map(str::to_owned);
            chosen.push(format!("--model {word}"));
        }
        if let Some(word) = &self.protocol {
            let known = serde_json::from_value::<ModelProtocol>(word.as_str().into());
            spec.model.protocol = known
                .map_err(|_| Failure::hint(Error::invalid(format!("unknown protocol `{word}`")), "json or native"))?;
            chosen.push(format!("--protocol {word}"));
        }
        if !chosen.is_empty() {
            // Faults that appear only with another model: a missing name, a money limit without prices.
            let text = serde_json::to_string(&spec).map_err(|err| Error::internal(err.to_string()))?;
            spec = Spec::check(&text).map_err(|faults| {
                let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
                Error::invalid(format!("{}: {}", chosen.join(" "), said.join("; ")))
            })?;
        }
        Ok(spec)
    }
}

#[cfg(any(feature = "door-mcp", feature = "door-acp"))]
/// The options of a host that is not mounted.
pub fn unmounted(named: Option<&Path>, state: &Path) -> Result<Options, Failure> {
    let here = here()?;
    if named.is_none() {
        let hint = "name the mountspec: --spec mountspec/default.json";
        TrustedDefaults::open(state)?.mountspec(&here).map_err(|error| Failure::hint(error, hint))?;
    }
    let (spec, state) = (spec(named, &here)?, settled(state.to_owned()));
    Ok(Options { spec, here, state, mountpoint: None, clock: Clock::real(), random: Random::real() })
}

/// Raises the limit of descriptors as far as a user may: each waiting caller and each known thread costs one. Programs in
/// sandboxes have a limit of their own.
fn allow_more_descriptors() {
    const WANTED: u64 = 65_536;
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(WANTED, |most| most.min(WANTED));
    if limit.current.is_some_and(|current| current < wanted) {
        // Without it, fewer callers are remembered; nothing else changes.
        _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    }
}

/// The given mountspec, or the one in this directory.
fn spec_file(named: Option<&Path>, here: &Path) -> Option<PathBuf> {
    let beside = || Some(here.join("mountspec/default.json")).filter(|file| file.is_file());
    named.map(Path::to_owned).or_else(beside)
}

/// The given mountspec, or the one in this directory, or the built-in one.
pub fn spec(named: Option<&Path>, here: &Path) -> Result<Spec> {
    match spec_file(named, here) {
        Some(file) => Spec::load(&file),
        None => {
            let mut spec = Spec::check(spec::DEFAULT)
                .map_err(|faults| Error::internal(format!("the spec in the program has {} faults", faults.len())))?;
            if unbound(named, here).is_some() {
                spec.projects.clear();
                spec.agents.values_mut().for_each(|agent| agent.projects.clear());
            }
            Ok(spec)
        }
    }
}

/// Why the built-in mountspec does not bind this directory: a home directory, or one above it, was hardly meant to be a
/// project, and has keys in it.
fn unbound(named: Option<&Path>, here: &Path) -> Option<String> {
    if spec_file(named, here).is_some() {
        return None;
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let here = real(here);
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| real(Path::new(&home)));
    let what = match home {
        Some(home) if home == here => "your home directory",
        Some(home) if home.starts_with(&here) => "above your home directory",
        _ if here.parent().is_none() => "the root of the machine",
        _ => return None,
    };
    Some(format!(
        "no directory is bound, because {} is {what}: mount from the directory of a project, or name one in a mountspec",
        here.display()
    ))
}

/// The state directory: from the command line, from the mountspec, or the default.
pub fn state(named: Option<&Path>, spec: Option<&Spec>, here: &Path) -> Result<PathBuf> {
    let told = spec.and_then(|spec| spec.state.as_ref());
    match (named, told) {
        (Some(named), _) => Ok(std::path::absolute(named)?),
        (None, Some(told)) => Ok(std::path::absolute(here.join(told))?),
        (None, None) => default_state(),
    }
}

/// Without `..` and links, because it is shown to people and compared.
fn settled(path: PathBuf) -> PathBuf {
    match (path.parent().and_then(|parent| parent.canonicalize().ok()), path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path,
    }
}

/// `$XDG_STATE_HOME/acheron`.
pub fn default_state() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let base = base.or_else(|| set("HOME").map(|home| home.join(".local/state")));
    base.map(|base| base.join("acheron")).ok_or_else(|| {
        Error::invalid("neither XDG_STATE_HOME nor HOME is set; choose a state directory with --state DIR")
    })
}

/// Serves until a signal or an unmount.
async fn serve(options: Options, dir: &Path, said: &MountArgs, followed: Option<&Path>) -> Result<()> {
    let child = said.child;
    let mut ends = deadline::signals()?;
    // Checked first, so that a second mount is reported as such, and not as a state directory in use.
    let mountpoint = acheron_fuse::prepare_mountpoint(dir, &acheron_fuse::Options::default())
        .inspect_err(|error| daemon::tell(child, Some(error)))?;
    deadline::watch(&mountpoint).inspect_err(|error| daemon::tell(child, Some(error)))?;
    let spec = options.spec.clone();
    let mut host = Host::start(options).inspect_err(|error| daemon::tell(child, Some(error)))?;
    if let Some(file) = &said.record {
        host.state.shared.runtimes.record(file).inspect_err(|error| daemon::tell(child, Some(error)))?;
    }
    let mount = host.mount(dir).inspect_err(|error| daemon::tell(child, Some(error)))?;
    if let Some(file) = followed {
        host.follow(file);
    }
    host.listen().inspect_err(|error| daemon::tell(child, Some(error)))?;
    match child {
        true => daemon::tell(true, None),
        false => {
            say(&format!("mounted on {}; Ctrl-C unmounts it\n", dir.display()));
            tell_who_sees(&spec);
            let faults = host.state.health.faults();
            tell_faults(faults.iter().map(String::as_str));
        }
    }
    acheron_fuse::allocator::settle();
    let ended = tokio::select! {
        ended = mount.ended() => ended,
        () = host.unused(), if said.leased => Ok(()),
        () = deadline::heard(&mut ends) => Ok(()),
    };
    drop(mount);
    host.down().await;
    ended
}
