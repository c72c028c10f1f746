//! The second level: a program on the paths of the host, confined by Landlock and the filter alone. There is no namespace to
//! end all processes with, so both processes above the program take in its orphans and kill what is left. The supervisor
//! uses it.

use std::os::unix::net::UnixStream;

use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use super::attend::{self, Attendant};
use super::confinement::ConfinementBuilder;
use super::groups::{Controller, Groups};
use super::host_plan::{self, HostPlan};
use super::init::{GroupVersions, Reports, Walls, become_program, bounded, close_streams, fork_init, send, watch};
use super::plan::Plan;
use super::processes::{descendants, kill_process};
use super::protocol::Message;
use super::{limits, write_grants};
use acheron_base::{Error, Result};

/// Layers of the first level, which are not there.
pub(super) const ABSENT: [&str; 7] = ["user", "pids", "mounts", "ipc", "uts", "network", "root"];

/// As [`init`](super::init) does at the first level; returns the exit code of the supervisor.
pub(super) fn supervise(
    host: &UnixStream,
    plan: &Plan,
    layers: &mut ConfinementBuilder,
    groups: &mut Groups,
    bounds: &GroupVersions,
) -> Result<i32> {
    for name in ABSENT {
        layers.partly(name, "not at the level `landlock`");
    }
    let shown = host_plan::on_host(plan)?;
    take_in_orphans()?;
    nix::sys::prctl::set_dumpable(false).map_err(errno)?;
    // The host is told of a failure when nothing of the sandbox lives any more.
    let init = fork_init(host, groups, || init(host, &shown, layers, bounds).inspect_err(|_| kill_all()))?;
    let watched = watch(host, init);
    kill_all();
    watched.map(|()| 0)
}

/// Runs init. Returns only after a failure.
fn init(host: &UnixStream, shown: &HostPlan, layers: &mut ConfinementBuilder, bounds: &GroupVersions) -> Result<()> {
    take_in_orphans()?;
    let plan = &shown.plan;
    layers.add(
        "processes",
        bounded(bounds.processes, Controller::Processes).or_else(|why| {
            let user = !nix::unistd::getuid().is_root() && limits::processes(&plan.limits).is_ok();
            if user { Ok("rlimit of the user".to_owned()) } else { Err(why) }
        }),
    )?;
    let (grants, trees) = write_grants::find(plan, &[]);
    let reports = Reports::new(&trees)?;
    attend::block_child_signal()?;
    // SAFETY: one thread, as above.
    let program = match unsafe { fork() }.map_err(errno)? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let walls = Walls { grants: &grants, reports: &reports, alone: Some(shown) };
            let Err(error) = become_program(host, plan, layers, bounds, &walls);
            send(host, &Message::Failed { error });
            std::process::exit(127);
        }
    };
    drop(grants);
    close_streams()?;
    let mut attendant = Attendant::new(program, plan, reports.taken(trees, plan)?, None);
    let status = attendant.until_the_end()?;
    kill_all();
    send(host, &Message::Ended { status, used: attendant.used() });
    if let Some(error) = attendant.killed_because() {
        send(host, &Message::Failed { error });
    }
    std::process::exit(0);
}

/// Lets orphans of what this process starts become its own children.
fn take_in_orphans() -> Result<()> {
    nix::sys::prctl::set_child_subreaper(true).map_err(errno)
}

/// Kills everything below this process, and returns when nothing is left.
fn kill_all() {
    loop {
        let left = descendants(std::process::id() as i32);
        left.iter().for_each(|process| kill_process(*process));
        while matches!(waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)), Ok(ended) if ended.pid().is_some()) {}
        if left.is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn errno(err: nix::Error) -> Error {
    Error::from(std::io::Error::from(err))
}
