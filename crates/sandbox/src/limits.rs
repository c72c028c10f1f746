//! The limits of a sandbox and of an agent, and those that the kernel enforces per process. The mountspec sets them;
//! the init applies them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use acheron_base::{Error, Result};

/// The limits of one sandbox: as a whole where the host has control groups, else per process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "SandboxLimits")]
pub struct Limits {
    #[schemars(range(min = 16_777_216))]
    pub memory_bytes: u64,
    #[schemars(range(min = 8))]
    pub processes: u64,
    /// Seconds of processor time per process.
    #[schemars(range(min = 1))]
    pub cpu_seconds: u64,
    /// The size of each private directory (`/tmp`, `/home`, `/dev/shm`).
    pub scratch_bytes: u64,
    /// The size limit of a file.
    pub file_bytes: u64,
    /// How many bytes may be written to the projects in all; those written to control files count, too. Above it files
    /// cannot be opened for writing (`EDQUOT`), and programs that go on through mapped memory are killed.
    #[schemars(range(min = 1_048_576))]
    pub disk_bytes: u64,
    /// How many files and directories may be made in the projects in all. Above it none is made (`EDQUOT`).
    #[schemars(range(min = 16))]
    pub disk_files: u64,
    #[schemars(range(min = 16))]
    pub open_files: u64,
}

/// The signals that may wait in one sandbox, timers included, and the bytes of its message queues. They count with the user
/// of the host too, who could have no timer any more.
const PENDING_SIGNALS: u64 = 256;
const QUEUE_BYTES: u64 = 256 << 10;

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory_bytes: 2 << 30,
            processes: 512,
            cpu_seconds: 3600,
            scratch_bytes: 256 << 20,
            file_bytes: 4 << 30,
            disk_bytes: 64 << 30,
            disk_files: 1 << 20,
            open_files: 1024,
        }
    }
}

/// The limits of all sandboxes of one agent together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "AgentSandboxLimits")]
pub struct AgentLimits {
    #[schemars(range(min = 16_777_216))]
    pub memory_bytes: u64,
    #[schemars(range(min = 8))]
    pub processes: u64,
    /// A hundred is one whole processor. Absent: as much as there is, and as much as each other agent where it is short.
    #[schemars(range(min = 1))]
    pub cpu_percent: Option<u32>,
    /// How many bytes all its programs may write to the projects, for as long as the host is mounted.
    #[schemars(range(min = 1_048_576))]
    pub disk_bytes: u64,
    /// How many files and directories all its programs may make in the projects, for as long as the host is mounted.
    #[schemars(range(min = 16))]
    pub disk_files: u64,
    /// How many calls and sessions may run at once where this machine has no control groups to hold them together.
    #[schemars(range(min = 1))]
    pub sandboxes: usize,
}

impl Default for AgentLimits {
    fn default() -> Self {
        AgentLimits {
            memory_bytes: 4 << 30,
            processes: 1024,
            cpu_percent: None,
            disk_bytes: 1 << 40,
            disk_files: 1 << 24,
            sandboxes: 8,
        }
    }
}

/// Sets the limits of the calling process, which its children inherit. `memory` is false when a control group limits
/// the memory of the whole sandbox.
pub(super) fn apply(limits: &Limits, memory: bool) -> Result<()> {
    let mut wanted = vec![
        (Resource::Core, 0),
        (Resource::Cpu, limits.cpu_seconds),
        // One file at least never passes the limit of all bytes, however fast it is written.
        (Resource::Fsize, limits.file_bytes.min(limits.disk_bytes)),
        (Resource::Nofile, limits.open_files),
        (Resource::Sigpending, PENDING_SIGNALS),
        (Resource::Msgqueue, QUEUE_BYTES),
    ];
    if memory {
        // Data and not the address space, so that programs that reserve much and use little (node, go, java) still
        // start.
        wanted.push((Resource::Data, limits.memory_bytes));
    }
    for (resource, value) in wanted {
        let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
        setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
            .map_err(|err| Error::unavailable(format!("cannot limit {resource:?}: {err}")))?;
    }
    Ok(())
}

/// Limits the processes of one user. This does not bind root: a control group or `pid_max` must do that.
pub(super) fn processes(limits: &Limits) -> Result<()> {
    let value = getrlimit(Resource::Nproc).maximum.map_or(limits.processes, |most| most.min(limits.processes));
    setrlimit(Resource::Nproc, Rlimit { current: Some(value), maximum: Some(value) })
        .map_err(|err| Error::unavailable(format!("cannot limit processes: {err}")))
}
