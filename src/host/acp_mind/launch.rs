//! Where the program of a mind is, and the plan of its sandbox: that of `acheron run`, with the projects of the agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::gateway::{GatewayClient, GatewayGuard};
use crate::host::run_plan::compose::{self, Additions};
use crate::host::run_plan::find;
use crate::host::run_plan::profile::{ProfileValues, ProgramProfile};
use crate::host::run_plan::{GATEWAY_PORT, PLACEHOLDER, own_profiles};
use crate::host::{HostState, runs, upgrade, wiring};
use crate::policy::PrincipalCaller;
use crate::services::terminal::{Look, RunningProgram, Surroundings};
use crate::spec::ModelSpec;
use acheron_base::{Error, Result, blocking};
use acheron_sandbox::{Plan, Running, Streams};
use acheron_vfs::Caller;

/// The home directory of the program, inside.
const HOME: &str = "/home";

/// The last word of a program's path.
pub fn word(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// A program that was started.
pub struct LaunchedMind {
    pub running: Running,
    pub program: Arc<RunningProgram>,
    pub gateway: Option<GatewayGuard>,
    /// The working directory, inside.
    pub directory: String,
}

pub async fn launch(host: &Arc<HostState>, agent: &str, model: &ModelSpec) -> Result<LaunchedMind> {
    let (inner, name) = (Arc::downgrade(host), agent.to_owned());
    let find = move || wiring::surroundings(&*upgrade(&inner)?, &name, Look::Again);
    let (around, program) = host.shared.programs.begin(agent, find).await?;
    let shown = shown_profile(host, model).await?;
    let (inner, name, described) = (host.clone(), agent.to_owned(), model.clone());
    let (plan, directory) = blocking(move || {
        let profile = profile(&described, shown.as_deref())?;
        plan(&inner, &name, &described, profile, &around)
    })
    .await?;
    let mut running = acheron_sandbox::start(&acheron_sandbox::program(), &plan, Streams::Piped).await?;
    let mut gateway = None;
    for (port, listener) in std::mem::take(&mut running.listeners) {
        match port {
            GATEWAY_PORT => {
                let program = word(model.command.first().map_or("", String::as_str)).to_owned();
                let client = GatewayClient { agent: agent.to_owned(), program, record: None };
                gateway = Some(host.gateway().serve(listener.into(), client)?);
            }
            port => program.serve(vec![(port, listener)])?,
        }
    }
    Ok(LaunchedMind { running, program: Arc::new(program), gateway, directory })
}

/// The page about the program that the library of this host shows.
async fn shown_profile(host: &HostState, model: &ModelSpec) -> Result<Option<String>> {
    let name = word(model.command.first().map_or("", String::as_str));
    let path = format!("/global/library/programs/{name}.json");
    let page = host.context.tree()?.read(&Caller::operator(), &path).await;
    Ok(page.ok().map(|page| String::from_utf8_lossy(&page).into_owned()))
}

/// What is known of the program: the operator's own file, that of the library, or what most programs read. Blocks.
fn profile(model: &ModelSpec, shown: Option<&str>) -> Result<ProgramProfile> {
    let name = word(model.command.first().map_or("", String::as_str));
    let own = own_profiles().and_then(|own| std::fs::read_to_string(own.join(format!("{name}.json"))).ok());
    let profile = match own.as_deref().or(shown) {
        Some(page) => ProgramProfile::parse(name, page)?,
        None => ProgramProfile::unknown(),
    };
    Ok(if model.gateway.is_some() { profile } else { profile.for_login() })
}

/// The plan, and the working directory inside. Blocks.
fn plan(
    host: &Arc<HostState>,
    agent: &str,
    model: &ModelSpec,
    profile: ProgramProfile,
    around: &Surroundings,
) -> Result<(Plan, String)> {
    let [name, given @ ..] = model.command.as_slice() else {
        return Err(Error::invalid("model.command names no program"));
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A file is meant from where the host was started, as services are.
    let file = if name.contains('/') { host.paths.here.join(name).display().to_string() } else { name.clone() };
    let found = find::find(&file, &path).map_err(|error| match profile.install.is_empty() {
        true => error,
        false => Error::new(error.code, format!("{}; {}", error.message, profile.install)),
    })?;
    let known = match model.gateway.is_some() {
        true => host.gateway().model_name(agent)?,
        false => String::new(),
    };
    let values = ProfileValues {
        gateway: format!("http://127.0.0.1:{GATEWAY_PORT}"),
        key: PLACEHOLDER.to_owned(),
        model: known,
        home: HOME.to_owned(),
    };
    let mut plan = around.plan(Vec::new());
    compose::add_program(&mut plan, &found, profile.arguments(given, &values));
    if model.gateway.is_some() {
        if plan.network {
            // The address of the gateway would be the machine's own, where anybody may listen.
            return Err(Error::invalid(format!(
                "{agent} shares the network of the machine, where the gateway cannot be its alone; take it out of \
                 sandbox.network, or leave model.gateway out"
            )));
        }
        plan.listen.push(GATEWAY_PORT);
    }
    let home = runs::home_of(&host.paths.state, agent)?;
    profile.settle(&home, &values)?;
    let projects = host.profiles.get(agent)?.spec.projects;
    let project = projects.first().map(|project| format!("/projects/{project}/fs"));
    let project = project.filter(|path| plan.binds.iter().any(|bind| bind.target.starts_with(Path::new(path))));
    let directory = project.unwrap_or_else(|| HOME.to_owned());
    let more = Additions {
        env: profile.variables(&values),
        home: Some((home, PathBuf::from(HOME))),
        cwd: Some(PathBuf::from(&directory)),
        skills: !host.paths.skills.is_empty() && around.mount.is_some(),
        ..Additions::default()
    };
    compose::add(&mut plan, &more)?;
    Ok((plan, directory))
}
