//! One `acheron run` on the host's side: an agent and a project for as long as the program runs, the plan of its sandbox, and
//! the gateway to its model.
//!
//! The program itself is started by the command, on its own terminal. When the connection ends, for whatever reason, all
//! that was made for the run is taken away; the record of the agent and its home stay.

pub mod left;
pub mod messages;

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::commands::{self, CommandSession, HostCommand};
use super::network::{AgentProxy, ProxyTotals};
use super::socket::Lines;
use super::{HostState, edit, lifecycle, network, views, wiring};
use crate::agent::budget::{BudgetLimits, Spent};
use crate::agent::profiles::Profile;
use crate::gateway::{GatewayClient, GatewayGuard};
use crate::services::terminal::{Look, PROXY_PORT, RunningProgram};
use crate::spec::{AgentSpec, Budget, ModelChange, ModelKind, ViewMode, is_id};
use acheron_base::{Code, Error, Result, blocking, quoted};
use acheron_proxy::HostRule;
use messages::{FromHost, ProgramRequest, RunRecord, RunStarted, RunView, ToHost};

/// The time after which the watcher of projects has told of a change.
const LAST_CHANGES: Duration = Duration::from_millis(150);

/// The agents as which programs run now, and whether the run has a budget of its own.
#[derive(Default)]
pub struct ActiveRuns(Mutex<BTreeMap<String, bool>>);

pub const COMMAND: HostCommand = HostCommand { word: "run", serve: |session| Box::pin(serve(session)) };

/// Serves one connection until its end, or until the host goes down.
async fn serve(mut session: CommandSession) {
    let request = match session.request::<ProgramRequest>() {
        Ok(request) => request,
        Err(error) => return session.refuse(error).await,
    };
    let CommandSession { host, mut lines, down, .. } = session;
    let mut run = match HostedRun::begin(&host, request).await {
        Ok(run) => run,
        Err(error) => return commands::refuse(&mut lines, error).await,
    };
    let told = tokio::select! {
        told = run.attend(&mut lines) => told,
        () = down.cancelled() => Ok(()),
    };
    if let Err(error) = told {
        tracing::info!(%error, agent = run.agent, "a run has lost its command");
    }
    run.end().await;
}

struct HostedRun {
    host: Arc<HostState>,
    agent: String,
    project: String,
    /// The profile that the agent had before, if it had one.
    before: Option<Profile>,
    spent_before: Spent,
    events_before: u64,
    priced: bool,
    program: RunningProgram,
    started: Option<RunStarted>,
    /// For the gateway: the name of the program, and where it is recorded.
    client: GatewayClient,
    gateway: Option<GatewayGuard>,
    proxy: Option<AgentProxy>,
    /// Whether the program uses a log-in of its own: the gateway does not serve it.
    login: bool,
    view: bool,
}

impl HostedRun {
    async fn begin(host: &Arc<HostState>, request: ProgramRequest) -> Result<HostedRun> {
        let agent = host.runs.enter(host, &request)?;
        let (inner, name) = (host.clone(), agent.clone());
        let begun = blocking(move || {
            let _inside = inner.context.runtime.enter();
            let project = edit::add_guest(&inner, &request.directory)?;
            let admitted = admit(&inner, &name, &project, &request).and_then(|admitted| {
                let home = home_of(&inner.paths.state, &name)?;
                Ok((project.clone(), admitted, home, request))
            });
            admitted.inspect_err(|_| edit::remove_guest(&inner, &project))
        });
        let begun = begun.await.inspect_err(|_| {
            host.network.take_back(&agent);
            host.runs.leave(&agent);
        });
        let (project, admitted, home, request) = begun?;
        let before = admitted.before.clone();
        let started = HostedRun::started(host, &agent, project.clone(), admitted, home, &request).await;
        if started.is_err() {
            leave(host, agent, project, before).await;
        }
        started
    }

    async fn started(
        host: &Arc<HostState>,
        agent: &str,
        project: String,
        admitted: AdmittedRun,
        home: PathBuf,
        request: &ProgramRequest,
    ) -> Result<HostedRun> {
        let mount = host.mount.get().ok_or_else(|| Error::unavailable("the host has no mount"))?;
        let (inner, name) = (Arc::downgrade(host), agent.to_owned());
        let find = move || wiring::surroundings(&*super::upgrade(&inner)?, &name, Look::Again);
        let (mut around, program) = host.shared.programs.begin(agent, find).await?;
        // Even where nothing is allowed, so that the record names what was asked for.
        around.proxy = true;
        let model = host.models().described(agent)?;
        let (gateway, own) = (host.gateway(), agent.to_owned());
        let name = blocking(move || gateway.model_name(&own)).await?;
        let started = RunStarted {
            agent: agent.to_owned(),
            project: project.clone(),
            mount: mount.mountpoint().to_owned(),
            home,
            model: name,
            login: admitted.login.clone(),
            hosts: around.hosts.clone(),
            skills: !host.paths.skills.is_empty(),
            plan: around.plan(vec![request.program.clone()]),
        };
        let log = host.context.event_logs.of(agent)?;
        Ok(HostedRun {
            host: host.clone(),
            agent: agent.to_owned(),
            project,
            before: admitted.before,
            spent_before: spent(host, agent),
            events_before: log.last(),
            priced: model.prices.input_per_mtok > 0.0 || model.prices.output_per_mtok > 0.0,
            program,
            started: Some(started),
            client: GatewayClient {
                agent: agent.to_owned(),
                program: request.program.clone(),
                record: request.record.clone(),
            },
            gateway: None,
            proxy: None,
            login: admitted.login.is_some(),
            view: request.view,
        })
    }

    /// Tells the command what it needs, and then follows the program until its end.
    async fn attend(&mut self, lines: &mut Lines) -> Result<()> {
        if let Some(started) = self.started.take() {
            lines.send(&FromHost::Started(Box::new(started))).await?;
        }
        let mut ended = false;
        loop {
            let message = tokio::select! {
                why = self.program.taken_away(), if !ended => {
                    ended = true;
                    lines.send(&FromHost::EndedBecause(why)).await?;
                    continue;
                }
                message = lines.next::<ToHost>() => message?,
            };
            match message {
                Some((ToHost::Listener { port }, Some(file))) => {
                    if let Err(error) = self.listen(port, file) {
                        lines.send(&FromHost::EndedBecause(error.message)).await?;
                    }
                }
                Some((ToHost::Ended, _)) => return lines.send(&FromHost::Record(self.record().await?)).await,
                Some(_) => return Err(Error::invalid("this message makes no sense here")),
                None => return Ok(()),
            }
        }
    }

    /// Answers at a port of the sandbox. A second listener would be a second budget for nobody.
    fn listen(&mut self, port: u16, file: OwnedFd) -> Result<()> {
        if port == PROXY_PORT {
            self.proxy = Some(network::serve(&self.host, &self.agent, TcpListener::from(file))?);
            return Ok(());
        }
        if self.login {
            return Err(Error::invalid(format!("port {port}: a program with a log-in of its own has no gateway")));
        }
        if self.gateway.is_some() {
            return Err(Error::invalid(format!("port {port}: this run has its gateway already")));
        }
        self.gateway = Some(self.host.gateway().serve(TcpListener::from(file), self.client.clone())?);
        Ok(())
    }

    async fn record(&self) -> Result<RunRecord> {
        // The last changes of the project are told a moment later; the gateway settles what is under way.
        tokio::time::sleep(LAST_CHANGES).await;
        let spent = spent(&self.host, &self.agent);
        let log = self.host.context.event_logs.of(&self.agent)?;
        let fs = format!("/projects/{}/fs", self.project);
        let (mut changed, mut more_changed) = (BTreeSet::new(), 0);
        let mut cursor = self.events_before;
        while cursor < log.last() {
            let events = log.after(cursor).wait().await?;
            let Some(last) = events.last() else { break };
            cursor = last.seq;
            for event in events {
                let Some(path) = event.path.strip_prefix(&fs) else { continue };
                match path.trim_start_matches('/') {
                    "" => more_changed += event.payload["files"].as_u64().unwrap_or(0),
                    path => _ = changed.insert(path.to_owned()),
                }
            }
        }
        let (before, priced) = (&self.spent_before, self.priced);
        let usage = crate::model::Usage {
            input: spent.usage.input.saturating_sub(before.usage.input),
            output: spent.usage.output.saturating_sub(before.usage.output),
            cache_read: spent.usage.cache_read.saturating_sub(before.usage.cache_read),
            cache_write: spent.usage.cache_write.saturating_sub(before.usage.cache_write),
        };
        let spent = Spent {
            rounds: spent.rounds.saturating_sub(before.rounds),
            usage,
            ms: spent.ms.saturating_sub(before.ms),
            money: (spent.money - before.money).max(0.0),
        };
        let changed = changed.into_iter().collect();
        let ProxyTotals { opened: connections, refused: refused_hosts } =
            self.proxy.as_ref().map(AgentProxy::totals).unwrap_or_default();
        let view = self.view().await?;
        Ok(RunRecord { spent, priced, changed, more_changed, connections, refused_hosts, view })
    }

    /// What the program has left in its view, if it has one.
    async fn view(&self) -> Result<Option<RunView>> {
        if !self.view {
            return Ok(None);
        }
        let (host, agent, project) = (self.host.clone(), self.agent.clone(), self.project.clone());
        blocking(move || {
            let Some(view) = views::of_agent(&host, &agent, &project)? else { return Ok(None) };
            let (counts, held) = view.counts()?;
            Ok(Some(RunView { name: view.name(), counts, held }))
        })
        .await
    }

    async fn end(self) {
        let HostedRun { host, agent, project, before, program, gateway, proxy, .. } = self;
        drop((program, gateway, proxy));
        leave(&host, agent, project, before).await;
    }
}

/// Takes away what was made for a run.
async fn leave(host: &Arc<HostState>, agent: String, project: String, before: Option<Profile>) {
    host.network.take_back(&agent);
    let inner = host.clone();
    let left = blocking(move || {
        let _inside = inner.context.runtime.enter();
        let settled = lifecycle::settle(&inner, &agent, resting(&agent, before))
            .and_then(|()| left::done(&inner.paths.state, &agent));
        edit::remove_guest(&inner, &project);
        inner.runs.leave(&agent);
        settled
    });
    if let Err(error) = left.await {
        tracing::warn!(%error, "the agent of a run could not be put back");
    }
}

/// The profile of an agent while no program runs as it.
fn resting(agent: &str, before: Option<Profile>) -> Profile {
    before.unwrap_or_else(|| Profile {
        name: agent.to_owned(),
        spec: AgentSpec { about: ABOUT.to_owned(), ..AgentSpec::default() },
        created: true,
        ..Profile::default()
    })
}

const ABOUT: &str = "A program of the operator's, run with `acheron run`.";

impl ActiveRuns {
    /// The name of the agent as which a program will run; no other program runs under it meanwhile.
    fn enter(&self, host: &HostState, request: &ProgramRequest) -> Result<String> {
        let (mut active, own_budget) = (self.0.lock(), request.budget != BudgetLimits::default());
        if let Some(named) = &request.agent {
            if !is_id(named) {
                return Err(Error::invalid(format!(
                    "{} is no name of an agent: up to 64 of a-z, 0-9, _ and -",
                    quoted(named)
                )));
            }
            if active.contains_key(named) {
                return Err(Error::busy(format!("a program runs as `{named}` already; name another agent")));
            }
            active.insert(named.clone(), own_budget);
            return Ok(named.clone());
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
        let base: String = request.program.chars().map(plain).take(40).collect();
        let base = Some(base.trim_matches(['-', '_']).to_owned()).filter(|base| is_id(base));
        let base = base.unwrap_or_else(|| "program".to_owned());
        let mut names = std::iter::once(base.clone()).chain((2..1000).map(|number| format!("{base}-{number}")));
        // An agent of the mountspec is used only if it is named.
        let spec = host.current.spec();
        let free = names.find(|name| !spec.agents.contains_key(name) && !active.contains_key(name));
        let name = free.ok_or_else(|| Error::busy("too many programs of this name run"))?;
        active.insert(name.clone(), own_budget);
        Ok(name)
    }

    /// Whether a program runs as this agent with `--budget`.
    pub fn has_own_budget(&self, agent: &str) -> bool {
        self.0.lock().get(agent).copied().unwrap_or(false)
    }

    fn leave(&self, agent: &str) {
        self.0.lock().remove(agent);
    }
}

/// What was settled for a run.
struct AdmittedRun {
    /// The profile that the agent had before, if it had one.
    before: Option<Profile>,
    /// Why the program uses a log-in of its own, if it does.
    login: Option<String>,
}

/// Lets the agent in, or gives it the project and the hosts that it may reach.
fn admit(host: &Arc<HostState>, agent: &str, project: &str, request: &ProgramRequest) -> Result<AdmittedRun> {
    let known = host.profiles.get(agent).ok();
    let entry = host.current.spec().agents.get(agent).cloned();
    let mut profile =
        known.clone().unwrap_or_else(|| Profile { name: agent.to_owned(), created: true, ..Profile::default() });
    if profile.created {
        profile.spec = AgentSpec { about: ABOUT.to_owned(), ..AgentSpec::default() };
    } else if profile.over.is_none() {
        profile.over = entry.map(Box::new);
    }
    if !profile.spec.projects.iter().any(|own| own == project) {
        profile.spec.projects.insert(0, project.to_owned());
    }
    if request.view {
        profile.spec.view = ViewMode::Own;
    }
    let own_model = profile.spec.model.clone();
    if let Some(word) = &request.model {
        profile.spec.model = model(word)?;
    } else if let Some(word) = &request.usual_model
        && profile.created
        && is_guide(&host.current.mounted_with.model_of(&profile.spec))
    {
        profile.spec.model = model(word)?;
    }
    let login = login(host, &profile, request)?;
    if login.is_some() {
        profile.spec.model = own_model;
    }
    let hosts = request.network.iter().chain(request.login_hosts.iter().filter(|_| login.is_some()));
    let rules = hosts.map(|text| text.parse::<HostRule>().map_err(|error| error.about("--network")));
    host.network.grant(agent, rules.collect::<Result<_>>()?);
    if request.budget != BudgetLimits::default() {
        profile.spec.budget = within(&profile.spec.budget, &spent(host, agent), &request.budget);
    }
    left::note(&host.paths.state, agent, &resting(agent, known.clone()))?;
    // What was not given need not be taken back.
    lifecycle::settle(host, agent, profile).inspect_err(|_| _ = left::done(&host.paths.state, agent))?;
    Ok(AdmittedRun { before: known, login })
}

/// Why a program uses a log-in of its own: it is told to, or the gateway has no key for its model.
fn login(host: &HostState, profile: &Profile, request: &ProgramRequest) -> Result<Option<String>> {
    let model = host.current.mounted_with.model_of(&profile.spec);
    let remote = !matches!(model.kind, ModelKind::Script | ModelKind::Replay | ModelKind::External);
    let why = match (request.login, request.model.is_none() && remote) {
        (true, _) => "--login".to_owned(),
        (false, true) if !request.login_hosts.is_empty() => match host.shared.runtimes.server(&model) {
            Err(error) if error.code == Code::Unavailable => error.message,
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    if request.login_hosts.is_empty() && request.network.is_empty() {
        let said =
            format!("nothing is known of the hosts that {} logs in to; name them with --network", request.program);
        return Err(Error::invalid(said));
    }
    if request.budget != BudgetLimits::default() || request.record.is_some() {
        return Err(Error::invalid(format!(
            "{} uses a log-in of its own ({why}), and what it asks of its model is not seen here: --budget and --record need \
             a key",
            request.program
        )));
    }
    Ok(Some(why))
}

/// The built-in guide is no model for a program.
fn is_guide(model: &crate::spec::ModelSpec) -> bool {
    model.kind == ModelKind::Script && model.name.is_none()
}

fn model(word: &str) -> Result<ModelChange> {
    let (kind, name) = word.split_once(':').map_or((word, None), |(kind, name)| (kind, Some(name)));
    let kind = serde_json::from_value(kind.into())
        .map_err(|_| Error::invalid(format!("unknown model kind {}; a model is KIND:NAME", quoted(kind))))?;
    Ok(ModelChange { kind: Some(kind), name: name.map(str::to_owned), ..ModelChange::default() })
}

/// The budget of an agent in which one run may use up this much more.
fn within(budget: &Budget, spent: &Spent, more: &BudgetLimits) -> Budget {
    fn least<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
        match (one, other) {
            (Some(one), Some(other)) => Some(if one < other { one } else { other }),
            (one, other) => one.or(other),
        }
    }
    Budget {
        tokens: least(budget.tokens, more.tokens.map(|tokens| tokens.saturating_add(spent.usage.total()))),
        money: least(budget.money, more.money.map(|money| money + spent.money)),
        ..*budget
    }
}

fn spent(host: &HostState, agent: &str) -> Spent {
    host.shared.runtimes.spent(agent)
}

/// The lasting home of an agent's programs.
/// The lasting home of the programs of an agent.
pub fn home_of(state: &Path, agent: &str) -> Result<PathBuf> {
    let home = state.join("agents").join(agent).join("home");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&home)?;
    Ok(home)
}
