//! A sandbox is three small processes of one thread each.
//!
//! The **supervisor** is outside: it makes the control groups, enters the user namespace, starts init, and ends it when
//! the host closes the connection or ends. **Init** is pid 1 inside: it builds the new root, starts the program, reaps
//! orphans, and ends everything when it ends itself. The **program** applies the last layers to itself and executes the
//! program of the plan. The binary calls [`init_main`]; this module uses all layers of the crate.

use std::ffi::{CString, OsString};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};
use rustix::event::{PollFd, PollFlags, poll};

use super::confinement::ConfinementBuilder;
use super::groups::{Controller, Groups, Hierarchies};
use super::host_plan::HostPlan;
use super::level::Level;
use super::owner_map::{self, MappedMounts};
use super::plan::{Plan, Terminal};
use super::protocol::Message;
use super::write_grants::{self, Grant, WritableTree};
use super::{attend, broker, descriptors, filter, landlock_only, landlock_rules, limits, namespaces, root};
use acheron_base::{Error, Result};

/// Becomes a sandbox. `args` are the arguments after [`super::INIT_ARG`]: the descriptor of the connection to the host,
/// and the name of the agent, which is there to be read in `/proc/<pid>/cmdline`.
pub fn init_main(args: impl IntoIterator<Item = OsString>) -> ! {
    let number = args.into_iter().next().and_then(|word| word.to_str()?.parse::<RawFd>().ok()).filter(|fd| *fd > 2);
    let Some(number) = number.filter(|fd| nix::fcntl::fcntl(borrowed(*fd), nix::fcntl::FcntlArg::F_GETFD).is_ok())
    else {
        eprintln!("acheron: {} is an internal command", super::INIT_ARG);
        std::process::exit(2);
    };
    // SAFETY: the descriptor is open (checked above), was handed to this process alone, and is taken here once.
    supervisor_main(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Becomes the supervisor of a sandbox, with a connection to the host.
pub(super) fn supervisor_main(host: OwnedFd) -> ! {
    // First of all: descriptors that the host inherited from its own parent end here.
    descriptors::close_others(Some(host.as_raw_fd()));
    let host = UnixStream::from(host);
    let code = supervise(&host).unwrap_or_else(|error| {
        send(&host, &Message::Failed { error });
        1
    });
    std::process::exit(code)
}

fn borrowed(fd: RawFd) -> std::os::fd::BorrowedFd<'static> {
    // SAFETY: used for one fcntl, which answers EBADF if there is no such descriptor.
    unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) }
}

/// Runs the supervisor; returns its exit code.
fn supervise(host: &UnixStream) -> Result<i32> {
    rustix::io::fcntl_setfd(host, rustix::io::FdFlags::CLOEXEC).map_err(io)?;
    let mut line = String::new();
    BufReader::new(host).read_line(&mut line)?;
    let plan: Plan =
        serde_json::from_str(&line).map_err(|err| Error::internal(format!("the sandbox's plan: {err}")))?;
    plan.check()?;
    descriptors::no_directories()?;
    for signal in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP, Signal::SIGHUP] {
        // At a shared terminal these are for the program; the descriptor shows the end of the host.
        handle(signal, SigHandler::SigIgn)?;
    }
    let mut layers = ConfinementBuilder::new(plan.unconfined);
    let mut groups = Groups::default();
    let bounds = GroupVersions::set(&mut groups, &plan);
    let ended = supervise_confined(host, &plan, &mut layers, &mut groups, &bounds);
    groups.remove();
    ended
}

fn supervise_confined(
    host: &UnixStream,
    plan: &Plan,
    layers: &mut ConfinementBuilder,
    groups: &mut Groups,
    bounds: &GroupVersions,
) -> Result<i32> {
    if plan.level == Level::Landlock && !plan.bare {
        return landlock_only::supervise(host, plan, layers, groups, bounds);
    }
    let mapped = if plan.bare { MappedMounts::new() } else { owner_map::mounts(plan)? };
    layers.add("user", namespaces::user())?;
    layers.add("pids", namespaces::pid())?;
    // Only now: without it the maps could not be written. From here on no process inside may trace this one.
    nix::sys::prctl::set_dumpable(false).map_err(errno)?;
    let init = fork_init(host, groups, || init(host, plan, layers, bounds, mapped))?;
    watch(host, init).map(|()| 0)
}

/// Starts init as a child, which ends with this process, and tells the host of it. `run` returns only after a failure.
pub(super) fn fork_init(host: &UnixStream, groups: &mut Groups, run: impl FnOnce() -> Result<()>) -> Result<Pid> {
    let supervisor = own_descriptor()?;
    // SAFETY: this process has one thread, so the child may do whatever it likes.
    let init = match unsafe { fork() }.map_err(errno)? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let begun = end_with(supervisor).and_then(|()| groups.enter());
            if let Err(error) = begun.and_then(|()| run()) {
                send(host, &Message::Failed { error });
            }
            std::process::exit(1);
        }
    };
    close_streams()?;
    send(host, &Message::Init { pid: init.as_raw() });
    Ok(init)
}

/// The control groups of the sandbox, by the version of their interface.
pub(super) struct GroupVersions {
    memory: Option<u8>,
    pub processes: Option<u8>,
    cpu: Option<u8>,
}

impl GroupVersions {
    fn set(groups: &mut Groups, plan: &Plan) -> GroupVersions {
        let hierarchies = Hierarchies::read().ok();
        let mut make = |controller| groups.make(hierarchies.as_ref()?, controller, plan).ok();
        let (memory, processes) = (make(Controller::Memory), make(Controller::Processes));
        GroupVersions { memory, processes, cpu: plan.together.as_ref().and_then(|_| make(Controller::Cpu)) }
    }

    /// Whether control groups limit the sandboxes of an agent together; otherwise the host counts the sandboxes.
    fn grouped(&self) -> bool {
        self.memory.is_some() && self.processes.is_some()
    }

    /// The limit of processor use. One that the mountspec requires must be in effect.
    fn cpu(&self, plan: &Plan) -> Result<String> {
        let demanded = plan.together.as_ref().is_some_and(|shared| shared.limits.cpu_percent.is_some());
        match self.cpu {
            Some(version) => Ok(format!("control group, version {version}, and rlimit of each process")),
            None if demanded => bounded(None, Controller::Cpu),
            None => Ok("rlimit of each process".to_owned()),
        }
    }
}

/// Waits until init ends, and ends it when the host closes the connection.
pub(super) fn watch(host: &UnixStream, init: Pid) -> Result<()> {
    let raw = rustix::process::Pid::from_raw(init.as_raw()).ok_or_else(|| Error::internal("init has no pid"))?;
    let pidfd = rustix::process::pidfd_open(raw, rustix::process::PidfdFlags::empty()).map_err(io)?;
    loop {
        let mut both = [PollFd::new(&pidfd, PollFlags::IN), PollFd::new(host, PollFlags::IN)];
        match poll(&mut both, None) {
            Ok(_) => (),
            Err(rustix::io::Errno::INTR) => continue,
            Err(err) => return Err(io(err)),
        }
        let [ended, closed] = both.map(|fd| !fd.revents().is_empty());
        if closed {
            _ = rustix::process::pidfd_send_signal(&pidfd, rustix::process::Signal::KILL);
        }
        if ended || closed {
            // Returns once every process inside has ended: the kernel ends a namespace before its init is reaped.
            _ = waitpid(init, None);
            return Ok(());
        }
    }
}

/// A descriptor of this process, for its children.
pub(super) fn own_descriptor() -> Result<OwnedFd> {
    rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).map_err(io)
}

/// Has the kernel end this process when its parent ends. In a process of one thread this is safe; in a worker of the host it
/// would fire when the worker ends.
pub(super) fn end_with(parent: OwnedFd) -> Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(errno)?;
    // It may have ended just before.
    match poll(&mut [PollFd::new(&parent, PollFlags::IN)], Some(&rustix::time::Timespec::default())) {
        Ok(0) => Ok(()),
        _ => Err(Error::unavailable("the supervisor of the sandbox has ended")),
    }
}

/// Directories of the sandbox itself that programs may write.
const SCRATCH: [&str; 2] = ["/tmp", "/home"];

/// Runs init. Returns only after a failure.
fn init(
    host: &UnixStream,
    plan: &Plan,
    layers: &mut ConfinementBuilder,
    bounds: &GroupVersions,
    mapped: MappedMounts,
) -> Result<()> {
    let built = if plan.bare { None } else { build(host, plan, layers, bounds, mapped)? };
    let (grants, trees) =
        if built.is_some() { write_grants::find(plan, &SCRATCH) } else { <(Vec<Grant>, Vec<WritableTree>)>::default() };
    let reports = Reports::new(&trees)?;
    attend::block_child_signal()?;
    // SAFETY: one thread, as above.
    let program = match unsafe { fork() }.map_err(crowded)? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let walls = Walls { grants: &grants, reports: &reports, alone: None };
            let Err(error) = become_program(host, plan, layers, bounds, &walls);
            send(host, &Message::Failed { error });
            std::process::exit(127);
        }
    };
    drop(grants);
    close_streams()?;
    let mut attendant = attend::Attendant::new(program, plan, reports.taken(trees, plan)?, built);
    let status = attendant.until_the_end()?;
    send(host, &Message::Ended { status, used: attendant.used() });
    if let Some(error) = attendant.killed_because() {
        send(host, &Message::Failed { error });
    }
    std::process::exit(0);
}

/// The way by which the program hands its listener to the init, if there is something to listen to.
pub(super) struct Reports(Option<(UnixStream, UnixStream)>);

impl Reports {
    pub fn new(trees: &[WritableTree]) -> Result<Reports> {
        Ok(Reports(if trees.is_empty() { None } else { Some(UnixStream::pair()?) }))
    }

    /// In the program: has its calls reported from now on.
    fn begin(&self) -> Result<()> {
        let Some((_, theirs)) = &self.0 else { return Ok(()) };
        let listener = broker::install(&filter::reporting()?)?;
        descriptors::send(theirs, listener.as_fd())
    }

    /// In the init: what the program has handed over. A program that failed before hands over nothing.
    pub fn taken(self, trees: Vec<WritableTree>, plan: &Plan) -> Result<Option<broker::Broker>> {
        let Some((ours, theirs)) = self.0 else { return Ok(None) };
        drop(theirs);
        let listener = descriptors::receive(&ours)?;
        let (inside, most) = (plan.level == Level::Namespaces, plan.limits.disk_files);
        Ok(listener.map(|fd| broker::Broker::new(broker::Listener::new(fd), trees, inside, most)))
    }
}

/// The layers that init sets up.
fn build(
    host: &UnixStream,
    plan: &Plan,
    layers: &mut ConfinementBuilder,
    bounds: &GroupVersions,
    mapped: MappedMounts,
) -> Result<Option<root::Covers>> {
    namespaces::rest(layers, plan.network)?;
    if layers.confinement.has("network") {
        for port in &plan.listen {
            let message = Message::Listening { port: *port };
            descriptors::send_with(host, message.line().as_bytes(), namespaces::listener(*port)?.as_fd())?;
        }
    } else if !plan.listen.is_empty() {
        return Err(Error::unavailable("without a network namespace nothing can listen inside the sandbox"));
    }
    let built = if layers.confinement.has("mounts") {
        root::build(plan, mapped)
    } else {
        Err(Error::unavailable("no mount namespace to build it in"))
    };
    let (root, covers) = built.map_or_else(|error| (Err(error), None), |(root, covers)| (Ok(root), Some(covers)));
    let own_pid_max = root.as_ref().is_ok_and(|root| root.own_pid_max);
    if layers.add("root", root.map(root::Root::describe))? {
        descriptors::devices_from_inside();
    }
    layers.add(
        "processes",
        bounded(bounds.processes, Controller::Processes).or_else(|why| {
            let user = !nix::unistd::getuid().is_root() && limits::processes(&plan.limits).is_ok();
            if own_pid_max {
                Ok("pid_max of the namespace".to_owned())
            } else if user {
                Ok("rlimit of the user".to_owned())
            } else {
                Err(why)
            }
        }),
    )?;
    Ok(covers)
}

pub(super) fn bounded(version: Option<u8>, controller: Controller) -> Result<String> {
    version.map(|version| format!("control group, version {version}")).ok_or_else(|| {
        let name = controller.name();
        Error::unavailable(format!("no {name} control group may be made, and nothing else binds root"))
    })
}

/// What the last layers are made of.
pub(super) struct Walls<'a> {
    pub grants: &'a [Grant],
    pub reports: &'a Reports,
    /// At the second level: what may be read.
    pub alone: Option<&'a HostPlan>,
}

/// The last layers, then the program.
pub(super) fn become_program(
    host: &UnixStream,
    plan: &Plan,
    layers: &mut ConfinementBuilder,
    bounds: &GroupVersions,
    walls: &Walls<'_>,
) -> Result<std::convert::Infallible> {
    for signal in Signal::iterator().filter(|signal| !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP)) {
        handle(signal, SigHandler::SigDfl)?;
    }
    nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(errno)?;
    session(plan.terminal)?;
    if plan.bare {
        return execute_plan(host, plan, layers, bounds);
    }
    limits::apply(&plan.limits, bounds.memory.is_none())?;
    match bounded(bounds.memory, Controller::Memory) {
        Ok(how) => _ = layers.add("memory", Ok(how))?,
        Err(_) => {
            layers.partly("memory", "rlimit of each process; without a control group shared memory is not counted");
        }
    }
    layers.add("cpu", bounds.cpu(plan))?;
    if plan.together.is_some() {
        let how = if bounds.grouped() { "control groups of the agent" } else { "number of sandboxes at once" };
        layers.add("agent_limits", Ok(how.to_owned()))?;
    }
    nix::sys::prctl::set_no_new_privs().map_err(errno)?;
    layers.add("privileges", drop_capabilities().map(|()| "no new ones, no capabilities".to_owned()))?;
    let open_network = !plan.network && !layers.confinement.has("network");
    let landlock = match walls.alone {
        None => landlock_rules::apply(walls.grants, open_network),
        Some(shown) => landlock_rules::apply_alone(shown, walls.grants),
    };
    layers.add("landlock", landlock)?;
    walls.reports.begin()?;
    execute_plan(host, plan, layers, bounds)
}

fn execute_plan(
    host: &UnixStream,
    plan: &Plan,
    layers: &mut ConfinementBuilder,
    bounds: &GroupVersions,
) -> Result<std::convert::Infallible> {
    let argv = plan.argv.iter().map(|word| CString::new(word.as_str())).collect::<Result<Vec<_>, _>>();
    let env = plan.environment().into_iter().map(|(key, value)| CString::new(format!("{key}={value}")));
    let (Ok(argv), Ok(env)) = (argv, env.collect::<Result<Vec<_>, _>>()) else {
        return Err(Error::invalid("an argument contains a NUL byte"));
    };
    // The connection to the host closes when the program is executed.
    descriptors::close_others(Some(host.as_raw_fd()));
    descriptors::enter(&plan.cwd)?;
    let path = plan.environment().remove("PATH").unwrap_or_default();
    if !plan.bare {
        // The last layer: it would forbid to set up the others.
        layers.add("system_calls", filter::apply(plan.network, plan.level))?;
    }
    let grouped = plan.together.is_some() && bounds.grouped();
    send(host, &Message::Ready { confinement: layers.confinement.clone(), grouped });
    let err = execute(&path, &argv, &env);
    // A link in `/usr/local/bin` may lead to a file that is not visible here.
    let led_away = || path.split(':').any(|directory| Path::new(directory).join(&plan.argv[0]).is_symlink());
    // The file itself is there, so its interpreter is not.
    let found = || plan.argv[0].contains('/') && Path::new(&plan.argv[0]).is_file();
    let hint = match err {
        nix::Error::ENOENT if found() => "; the interpreter in its first line is missing here",
        nix::Error::ENOENT if !plan.bare && (plan.argv[0].starts_with('/') || led_away()) => {
            "; a sandbox shows /usr and what the mountspec names in sandbox.system"
        }
        _ => "",
    };
    let said = format!("cannot run `{}`: {}{hint}", plan.argv[0], err.desc());
    Err(match err {
        nix::Error::ENOENT | nix::Error::ENOTDIR => Error::not_found(said),
        nix::Error::EACCES | nix::Error::EPERM => Error::forbidden(said),
        _ => Error::failed(said),
    })
}

/// Executes the program at its path, or in the directories of the *new* path.
fn execute(path: &str, argv: &[CString], env: &[CString]) -> nix::Error {
    if argv[0].as_bytes().contains(&b'/') {
        let Err(err) = nix::unistd::execve(&argv[0], argv, env);
        return err;
    }
    let mut failed = nix::Error::ENOENT;
    for directory in path.split(':').filter(|directory| !directory.is_empty()) {
        let full = [directory.as_bytes(), b"/", argv[0].as_bytes()].concat();
        let Ok(full) = CString::new(full) else { continue };
        let Err(err) = nix::unistd::execve(&full, argv, env);
        if !matches!(err, nix::Error::ENOENT | nix::Error::ENOTDIR) {
            failed = err;
        }
    }
    failed
}

fn session(terminal: Terminal) -> Result<()> {
    if terminal == Terminal::Shared {
        return Ok(());
    }
    nix::unistd::setsid().map_err(errno)?;
    if terminal == Terminal::Own {
        rustix::process::ioctl_tiocsctty(std::io::stdin()).map_err(io)?;
    }
    Ok(())
}

/// Drops every capability for good: root without them is an ordinary owner of root's files.
fn drop_capabilities() -> Result<()> {
    let clear = |set| caps::clear(None, set).map_err(|err| Error::unavailable(format!("capabilities: {err}")));
    // Ambient and bounding first: dropping the latter needs a capability.
    _ = caps::clear(None, caps::CapSet::Ambient);
    for capability in caps::all() {
        _ = caps::drop(None, caps::CapSet::Bounding, capability);
    }
    clear(caps::CapSet::Inheritable)?;
    clear(caps::CapSet::Effective)?;
    clear(caps::CapSet::Permitted)
}

/// Closes the program's streams here, so that their readers see the end when the program closes them.
pub(super) fn close_streams() -> Result<()> {
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(nothing.as_fd()).map_err(io)?;
    rustix::stdio::dup2_stdout(nothing.as_fd()).map_err(io)?;
    rustix::stdio::dup2_stderr(nothing.as_fd()).map_err(io)
}

fn handle(signal: Signal, how: SigHandler) -> Result<()> {
    // SAFETY: only the default and the ignoring disposition are set, no function of ours.
    unsafe { nix::sys::signal::signal(signal, how) }.map(|_| ()).map_err(errno)
}

pub(super) fn send(mut host: &UnixStream, word: &Message) {
    // A host that has ended cannot be told; the supervisor notices that itself.
    _ = host.write_all(word.line().as_bytes());
}

/// The error of a process that could not be started inside.
fn crowded(err: nix::Error) -> Error {
    match err {
        nix::Error::EAGAIN => {
            Error::busy("the programs of this agent have all the processes that they may have together; end one first")
        }
        err => errno(err),
    }
}

fn errno(err: nix::Error) -> Error {
    Error::from(std::io::Error::from(err))
}

fn io(err: rustix::io::Errno) -> Error {
    Error::from(std::io::Error::from(err))
}
