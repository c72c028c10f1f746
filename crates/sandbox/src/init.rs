//! The life of a sandbox, in three small processes of one thread each.
//!
//! The **keeper** lives outside: it makes the control groups, enters the user namespace, starts init, and ends it when
//! the host closes the conversation or dies. **Init** is number one inside: it builds the new root, starts the program,
//! buries orphans, and takes everything with it when it ends. The **program** puts the last walls around itself and
//! becomes the stranger.

use std::ffi::{CString, OsString};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use rustix::event::{PollFd, PollFlags, poll};

use super::confinement::{Builder, COUNTED};
use super::groups::{Controller, Groups};
use super::plan::{Plan, Terminal};
use super::protocol::{Ended, Word};
use super::{descriptors, filter, landlock_rules, limits, namespaces, root};
use acheron_base::{Error, Result};

/// Becomes a sandbox. `args` are the words after [`super::WORD`]: the number of the descriptor to the host, and the
/// agent's name, which is there to be read in `/proc/<pid>/cmdline`.
pub fn init_main(args: impl IntoIterator<Item = OsString>) -> ! {
    let number = args.into_iter().next().and_then(|word| word.to_str()?.parse::<RawFd>().ok()).filter(|fd| *fd > 2);
    let Some(number) = number.filter(|fd| nix::fcntl::fcntl(borrowed(*fd), nix::fcntl::FcntlArg::F_GETFD).is_ok())
    else {
        eprintln!("acheron: {} is not for people", super::WORD);
        std::process::exit(2);
    };
    // First of all: whatever the host was given by its own parent ends here.
    descriptors::close_others(Some(number));
    // SAFETY: the descriptor is open (checked above), was handed to this process alone, and is taken here once.
    let host = UnixStream::from(unsafe { OwnedFd::from_raw_fd(number) });
    let code = keep(&host).unwrap_or_else(|error| {
        tell(&host, &Word::Failed { error });
        1
    });
    std::process::exit(code)
}

fn borrowed(fd: RawFd) -> std::os::fd::BorrowedFd<'static> {
    // SAFETY: used for one fcntl, which answers EBADF if there is no such descriptor.
    unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) }
}

/// The keeper's life; its exit code.
fn keep(host: &UnixStream) -> Result<i32> {
    rustix::io::fcntl_setfd(host, rustix::io::FdFlags::CLOEXEC).map_err(io)?;
    let mut line = String::new();
    BufReader::new(host).read_line(&mut line)?;
    let plan: Plan =
        serde_json::from_str(&line).map_err(|err| Error::internal(format!("the sandbox's plan: {err}")))?;
    plan.check()?;
    descriptors::no_directories()?;
    for signal in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP, Signal::SIGHUP] {
        // At a shared terminal these are meant for the program; losing the host is seen by the descriptor.
        handle(signal, SigHandler::SigIgn)?;
    }
    let mut walls = Builder::new(plan.unconfined);
    let mut groups = Groups::default();
    let bounds = Bounds::set(&mut groups, &plan);
    let ended = keep_walled(host, &plan, &mut walls, &mut groups, &bounds);
    groups.remove();
    ended
}

fn keep_walled(
    host: &UnixStream,
    plan: &Plan,
    walls: &mut Builder,
    groups: &mut Groups,
    bounds: &Bounds,
) -> Result<i32> {
    walls.add("user", namespaces::user())?;
    walls.add("pids", namespaces::pid())?;
    // Only now: without it the maps could not be written. Nobody inside may look into us.
    nix::sys::prctl::set_dumpable(false).map_err(errno)?;
    let (waiting, go) = nix::unistd::pipe().map_err(errno)?;
    // SAFETY: this process has one thread, so the child may do whatever it likes.
    let init = match unsafe { fork() }.map_err(errno)? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            drop(go);
            if let Err(error) = init(host, plan, walls, bounds, waiting) {
                tell(host, &Word::Failed { error });
            }
            std::process::exit(1);
        }
    };
    drop(waiting);
    forget_streams()?;
    let admitted = groups.admit(init.as_raw());
    tell(host, &Word::Init { pid: init.as_raw() });
    if admitted.is_ok() {
        _ = nix::unistd::write(&go, b"g");
    }
    drop(go);
    watch(host, init)?;
    admitted.map(|()| 0)
}

/// Which control groups hold the sandbox, by version.
struct Bounds {
    memory: Option<u8>,
    processes: Option<u8>,
    cpu: Option<u8>,
}

impl Bounds {
    fn set(groups: &mut Groups, plan: &Plan) -> Bounds {
        let mut make = |controller| groups.make(controller, plan).ok();
        let (memory, processes) = (make(Controller::Memory), make(Controller::Processes));
        Bounds { memory, processes, cpu: plan.together.as_ref().and_then(|_| make(Controller::Cpu)) }
    }

    /// What holds the sandboxes of an agent together.
    fn together(&self) -> String {
        match (self.memory, self.processes) {
            (Some(_), Some(_)) => "control groups of the agent".to_owned(),
            _ => COUNTED.to_owned(),
        }
    }

    /// What bounds the use of the processors. What the mountspec demands must hold.
    fn cpu(&self, plan: &Plan) -> Result<String> {
        let demanded = plan.together.as_ref().is_some_and(|shared| shared.limits.cpu_percent.is_some());
        match self.cpu {
            Some(version) => Ok(format!("control group, version {version}, and rlimit of each process")),
            None if demanded => bounded(None, Controller::Cpu),
            None => Ok("rlimit of each process".to_owned()),
        }
    }
}

/// Waits until init ends, and ends it when the host hangs up.
fn watch(host: &UnixStream, init: Pid) -> Result<()> {
    let raw = rustix::process::Pid::from_raw(init.as_raw()).ok_or_else(|| Error::internal("init has no pid"))?;
    let door = rustix::process::pidfd_open(raw, rustix::process::PidfdFlags::empty()).map_err(io)?;
    loop {
        let mut both = [PollFd::new(&door, PollFlags::IN), PollFd::new(host, PollFlags::IN)];
        match poll(&mut both, None) {
            Ok(_) => (),
            Err(rustix::io::Errno::INTR) => continue,
            Err(err) => return Err(io(err)),
        }
        let [ended, hung_up] = both.map(|fd| !fd.revents().is_empty());
        if hung_up {
            _ = rustix::process::pidfd_send_signal(&door, rustix::process::Signal::KILL);
        }
        if ended || hung_up {
            // Returns when everything inside is gone: the kernel ends a namespace before its init is buried.
            _ = waitpid(init, None);
            return Ok(());
        }
    }
}

/// Init's life. Returns only when something went wrong.
fn init(host: &UnixStream, plan: &Plan, walls: &mut Builder, bounds: &Bounds, waiting: OwnedFd) -> Result<()> {
    // From a process of one thread this is safe; from a worker of the host it would fire when the worker ends.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(errno)?;
    // Nothing to read means that the keeper died before it could say go.
    if nix::unistd::read(&waiting, &mut [0]).map_err(errno)? == 0 {
        return Err(Error::unavailable("the sandbox could not be put into its control groups"));
    }
    drop(waiting);
    if !plan.bare {
        build(plan, walls, bounds)?;
    }
    // SAFETY: one thread, as above.
    let program = match unsafe { fork() }.map_err(crowded)? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let Err(error) = become_program(host, plan, walls, bounds);
            tell(host, &Word::Failed { error });
            std::process::exit(127);
        }
    };
    forget_streams()?;
    loop {
        let ended = match waitpid(None::<Pid>, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == program => Ended { code: Some(code), signal: None },
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => {
                Ended { code: None, signal: Some(signal as i32) }
            }
            Ok(_) | Err(nix::Error::EINTR) => continue,
            Err(err) => return Err(errno(err)),
        };
        tell(host, &Word::Ended { ended });
        std::process::exit(0);
    }
}

/// The walls that init builds around itself.
fn build(plan: &Plan, walls: &mut Builder, bounds: &Bounds) -> Result<()> {
    namespaces::rest(walls, plan.network)?;
    let built = if walls.walls.stands("mounts") {
        root::build(plan)
    } else {
        Err(Error::unavailable("no mount namespace to build it in"))
    };
    let rooted = built.as_ref().ok().cloned().unwrap_or_default();
    if walls.add("root", built)? {
        descriptors::devices_from_inside();
    }
    walls.add(
        "processes",
        bounded(bounds.processes, Controller::Processes).or_else(|why| {
            let user = !nix::unistd::getuid().is_root() && limits::processes(&plan.limits).is_ok();
            if rooted.ends_with("pid_max") {
                Ok("pid_max of the namespace".to_owned())
            } else if user {
                Ok("rlimit of the user".to_owned())
            } else {
                Err(why)
            }
        }),
    )?;
    Ok(())
}

fn bounded(version: Option<u8>, controller: Controller) -> Result<String> {
    version.map(|version| format!("control group, version {version}")).ok_or_else(|| {
        let name = controller.name();
        Error::unavailable(format!("no {name} control group may be made, and nothing else binds root"))
    })
}

/// The last walls, then the program.
fn become_program(
    host: &UnixStream,
    plan: &Plan,
    walls: &mut Builder,
    bounds: &Bounds,
) -> Result<std::convert::Infallible> {
    for signal in Signal::iterator().filter(|signal| !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP)) {
        handle(signal, SigHandler::SigDfl)?;
    }
    nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(errno)?;
    session(plan.terminal)?;
    if plan.bare {
        return execute_plan(host, plan, walls);
    }
    limits::apply(&plan.limits, bounds.memory.is_none())?;
    let memory = bounded(bounds.memory, Controller::Memory).unwrap_or_else(|_| "rlimit of each process".to_owned());
    walls.add("memory", Ok(memory))?;
    walls.add("cpu", bounds.cpu(plan))?;
    if plan.together.is_some() {
        walls.add("together", Ok(bounds.together()))?;
    }
    nix::sys::prctl::set_no_new_privs().map_err(errno)?;
    walls.add("privileges", drop_capabilities().map(|()| "no new ones, no capabilities".to_owned()))?;
    let open_network = !plan.network && !walls.walls.stands("network");
    walls.add("landlock", landlock_rules::apply(plan, open_network))?;
    execute_plan(host, plan, walls)
}

fn execute_plan(host: &UnixStream, plan: &Plan, walls: &mut Builder) -> Result<std::convert::Infallible> {
    let argv = plan.argv.iter().map(|word| CString::new(word.as_str())).collect::<Result<Vec<_>, _>>();
    let env = plan.environment().into_iter().map(|(key, value)| CString::new(format!("{key}={value}")));
    let (Ok(argv), Ok(env)) = (argv, env.collect::<Result<Vec<_>, _>>()) else {
        return Err(Error::invalid("an argument contains a NUL byte"));
    };
    // The host's own closes when the program begins.
    descriptors::close_others(Some(host.as_raw_fd()));
    descriptors::enter(&plan.cwd)?;
    let path = plan.environment().remove("PATH").unwrap_or_default();
    if !plan.bare {
        // The last of the walls: it would forbid to build the others.
        walls.add("calls", filter::apply(plan.network))?;
    }
    tell(host, &Word::Ready { walls: walls.walls.clone() });
    let err = execute(&path, &argv, &env);
    // A link in `/usr/local/bin` may lead to what is not here.
    let led_away = || path.split(':').any(|directory| Path::new(directory).join(&plan.argv[0]).is_symlink());
    let hint = match err {
        nix::Error::ENOENT if !plan.bare && (plan.argv[0].starts_with('/') || led_away()) => {
            "; a sandbox shows /usr and what the mountspec names in sandbox.system"
        }
        _ => "",
    };
    Err(Error::not_found(format!("cannot run `{}`: {}{hint}", plan.argv[0], err.desc())))
}

/// Tries the program where its name says, or in the directories of the *new* path.
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

/// Gives up every capability for ever: a root without them is an ordinary owner of root's files.
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

/// Lets go of the program's streams, so that whoever reads them sees their end when the program closes them.
fn forget_streams() -> Result<()> {
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(nothing.as_fd()).map_err(io)?;
    rustix::stdio::dup2_stdout(nothing.as_fd()).map_err(io)?;
    rustix::stdio::dup2_stderr(nothing.as_fd()).map_err(io)
}

fn handle(signal: Signal, how: SigHandler) -> Result<()> {
    // SAFETY: only the default and the ignoring disposition are set, no function of ours.
    unsafe { nix::sys::signal::signal(signal, how) }.map(|_| ()).map_err(errno)
}

fn tell(mut host: &UnixStream, word: &Word) {
    // A host that is gone cannot be told; the keeper notices that itself.
    _ = host.write_all(word.line().as_bytes());
}

/// Why a process could not be started inside.
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
