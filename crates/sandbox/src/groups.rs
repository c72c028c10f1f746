//! The control groups of a sandbox: one of its own, in one that all sandboxes of its agent share. Membership is not
//! counted: the kernel does not remove a group that is still in use. So every sandbox that ends tries to remove the
//! group, and the last one succeeds; one that starts at that moment makes it again. The supervisor uses it; it uses
//! [`cgroup`](super::cgroup).

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::cgroup::{GroupParent, parents};
use super::limits::{AgentLimits, Limits};
use super::plan::Plan;
use acheron_base::{Error, Result};

/// The prefix of a group's name; the pid of its process follows.
const PREFIX: &str = "acheron-";
/// The period for a share of the processors, in microseconds.
const PERIOD: u64 = 100_000;
/// The number of attempts to make a group that another process removes at the same moment.
const TRIES: usize = 100;

/// The resource that a group limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Controller {
    Memory,
    Processes,
    Cpu,
}

impl Controller {
    pub const ALL: [Controller; 3] = [Controller::Memory, Controller::Processes, Controller::Cpu];

    pub fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Processes => "pids",
            Controller::Cpu => "cpu",
        }
    }
}

/// A unique name for one host, under which its agents have their groups.
pub fn host_id() -> String {
    static HOSTS: AtomicU32 = AtomicU32::new(0);
    format!("{}.{}", std::process::id(), HOSTS.fetch_add(1, Ordering::Relaxed))
}

/// A file of a group, the value for it, and whether the group is useless without it.
struct Setting(&'static str, String, bool);

/// The groups that were made for one sandbox.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// The deeper ones later.
    made: Vec<PathBuf>,
    /// The files by which a process enters the groups, opened while this process may.
    doors: Vec<fs::File>,
}

impl Groups {
    /// Makes the groups for a controller; returns the version of the interface.
    pub fn make(&mut self, hierarchies: &Hierarchies, controller: Controller, plan: &Plan) -> Result<u8> {
        let mut why = Error::unavailable(format!("no {} control group is mounted", controller.name()));
        for place in hierarchies.places(controller) {
            match self.make_at(&place, controller, plan) {
                Ok(()) => return Ok(place.version),
                Err(err) => why = err,
            }
        }
        Err(why)
    }

    fn make_at(&mut self, place: &GroupParent, controller: Controller, plan: &Plan) -> Result<()> {
        if place.version == 2 && !handed_down(&place.parent, controller)? {
            let name = controller.name();
            return Err(Error::unavailable(format!(
                "`{}` does not have the {name} controller",
                place.parent.display()
            )));
        }
        remove_stale(&place.parent);
        let own = format!("{PREFIX}{}", std::process::id());
        for _ in 0..TRIES {
            let mut above = place.parent.clone();
            if let Some(together) = &plan.together {
                let group = above.join(format!("{PREFIX}{}-{}", together.host, together.owner));
                self.one(&group, controller, place.version, &shared(controller, place.version, &together.limits))?;
                remove_stale(&group);
                above = group;
            }
            let group = above.join(&own);
            match self.one(&group, controller, place.version, &single(controller, place.version, &plan.limits)) {
                Ok(()) => {
                    self.doors.push(fs::OpenOptions::new().write(true).open(group.join(door(place.version)))?);
                    return Ok(());
                }
                // The last other sandbox of the agent has just ended and removed the group of the agent.
                Err(_) if !above.exists() => (),
                Err(error) => return Err(error),
            }
        }
        Err(Error::busy("the control group of the agent is made and removed all the time"))
    }

    /// Makes one group, or uses it if it exists, and sets its limits.
    fn one(&mut self, group: &Path, controller: Controller, version: u8, settings: &[Setting]) -> Result<()> {
        let name = controller.name();
        match fs::create_dir(group) {
            Err(err) if err.kind() != ErrorKind::AlreadyExists => {
                return Err(Error::unavailable(format!("no right to make a {name} control group: {err}")));
            }
            _ if self.made.iter().any(|made| made == group) => (),
            _ => self.made.push(group.to_owned()),
        }
        set(group, controller, version, settings).map_err(|err| {
            // Another controller or sandbox may use the same group; then the kernel keeps it.
            _ = fs::remove_dir(group);
            Error::unavailable(format!("the {name} controller cannot be used here: {err}"))
        })
    }

    /// Moves this process, which has one thread, into every group made.
    pub fn enter(&mut self) -> Result<()> {
        for mut door in self.doors.drain(..) {
            door.write_all(b"0")
                .map_err(|err| Error::unavailable(format!("a control group cannot be entered: {err}")))?;
        }
        Ok(())
    }

    /// Removes the groups that are no longer in use.
    pub fn remove(&mut self) {
        self.doors.clear();
        for group in self.made.drain(..).rev() {
            _ = fs::remove_dir(group);
        }
    }
}

/// The file by which a process enters a group. In the first version a thread that moves itself is moved at once; to move a
/// process, or another thread, the kernel waits for all processors first, for five milliseconds and more.
fn door(version: u8) -> &'static str {
    if version == 1 { "tasks" } else { "cgroup.procs" }
}

/// Where groups can be made on this machine.
pub(super) struct Hierarchies {
    /// `/proc/self/mountinfo`
    mounts: String,
    /// `/proc/self/cgroup`
    own: String,
}

impl Hierarchies {
    pub fn read() -> Result<Hierarchies> {
        let read = |name: &str| fs::read_to_string(Path::new("/proc/self").join(name));
        Ok(Hierarchies { mounts: read("mountinfo")?, own: read("cgroup")? })
    }

    fn places(&self, controller: Controller) -> Vec<GroupParent> {
        parents(&self.mounts, &self.own, controller.name())
    }
}

fn set(group: &Path, controller: Controller, version: u8, settings: &[Setting]) -> std::io::Result<()> {
    // In the second version a group has only what the one above hands down, which it must have itself.
    if version == 2 && !handed_down(group, controller)? {
        let above = group.parent().unwrap_or(group);
        fs::write(above.join("cgroup.subtree_control"), format!("+{}", controller.name()))?;
    }
    for Setting(file, value, needed) in settings {
        let written = fs::write(group.join(file), value);
        if *needed {
            written?;
        }
    }
    Ok(())
}

fn handed_down(group: &Path, controller: Controller) -> std::io::Result<bool> {
    let names = fs::read_to_string(group.join("cgroup.controllers"))?;
    Ok(names.split_whitespace().any(|name| name == controller.name()))
}

/// The limits of one sandbox.
fn single(controller: Controller, version: u8, limits: &Limits) -> Vec<Setting> {
    match controller {
        Controller::Memory => memory(version, limits.memory_bytes),
        Controller::Processes => vec![Setting("pids.max", limits.processes.to_string(), true)],
        Controller::Cpu => Vec::new(),
    }
}

/// The limits of all sandboxes of an agent together.
fn shared(controller: Controller, version: u8, limits: &AgentLimits) -> Vec<Setting> {
    match (controller, limits.cpu_percent) {
        (Controller::Memory, _) => memory(version, limits.memory_bytes),
        (Controller::Processes, _) => vec![Setting("pids.max", limits.processes.to_string(), true)],
        // An agent counts as one among its neighbours, however many processes it has: that is what the group is for.
        (Controller::Cpu, None) => Vec::new(),
        (Controller::Cpu, Some(percent)) => {
            let quota = u64::from(percent) * PERIOD / 100;
            match version {
                2 => vec![Setting("cpu.max", format!("{quota} {PERIOD}"), true)],
                _ => vec![
                    Setting("cpu.cfs_quota_us", quota.to_string(), true),
                    Setting("cpu.cfs_period_us", PERIOD.to_string(), false),
                ],
            }
        }
    }
}

/// Swap accounting is not on everywhere, and old kernels want to be told that a group holds what lies in it. In the first
/// version the limit with swap is never below the other, whichever way both change.
fn memory(version: u8, bytes: u64) -> Vec<Setting> {
    let bytes = bytes.to_string();
    match version {
        2 => vec![Setting("memory.max", bytes, true), Setting("memory.swap.max", "0".to_owned(), false)],
        _ => vec![
            Setting("memory.memsw.limit_in_bytes", bytes.clone(), false),
            Setting("memory.limit_in_bytes", bytes.clone(), true),
            Setting("memory.memsw.limit_in_bytes", bytes, false),
            Setting("memory.use_hierarchy", "1".to_owned(), false),
        ],
    }
}

/// Removes the groups left behind by processes that were killed.
pub fn remove_stale_groups() {
    let Ok(hierarchies) = Hierarchies::read() else { return };
    for place in Controller::ALL.into_iter().flat_map(|controller| hierarchies.places(controller)) {
        remove_stale(&place.parent);
    }
}

/// Removes the groups in `parent` whose process has ended, with those in them.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(owner_pid).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            remove_stale(&entry.path());
            _ = fs::remove_dir(entry.path());
        }
    }
}

/// The process that a group belongs to: its supervisor, or the host of its agent.
fn owner_pid(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(PREFIX)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests;
