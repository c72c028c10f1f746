//! Runs a program in a sandbox: a small root of its own, no network, no way back.
//!
//! A [`Plan`] says what runs and what it sees. [`start`] executes this program again with the hidden first argument
//! [`INIT_ARG`]; that process confines itself, one [`Layer`] after the other, and only then executes the program of the plan.
//! A layer that this machine cannot provide ends the attempt, unless the plan allows to run without it.
//!
//! # What it may use
//!
//! Only `acheron-base`. It knows neither policies, services nor the tree: its caller decides what is bound.

mod attend;
mod broker;
mod cgroup;
mod command_line;
mod confinement;
mod descriptors;
mod disk_use;
mod filter;
mod foreground;
mod groups;
mod host_plan;
mod init;
mod landlock_only;
mod landlock_rules;
mod level;
mod limits;
mod masks;
mod mount_attributes;
mod namespaces;
mod owner;
mod owner_map;
mod path_rules;
mod plan;
mod processes;
mod protocol;
mod pty;
mod root;
mod running;
mod slots;
mod system;
mod watched_paths;
mod write_grants;

pub use confinement::{Confinement, Layer};
pub use descriptors::{close_others, receive_with, send_with};
pub use foreground::{ForegroundEnd, run_in_foreground};
pub use groups::{host_id, remove_stale_groups};
pub use init::init_main;
pub use level::{Level, best_level, known_level, tried};
pub use limits::{AgentLimits, Limits};
pub use mount_attributes::{MountAttributes, set_mount_attributes};
pub use owner::{Process, ProcessOwner, owner_of, read_process};
pub use path_rules::{PathRule, Visibility};
pub use plan::{Bind, Link, PATH, Plan, SharedLimits, Terminal};
pub use processes::{SandboxProcess, descendants, kill_process, started_since};
pub use protocol::ExitStatus;
pub use pty::{Pty, TerminalSize, signal_named};
pub use running::{Running, Streams, probe, program, start, use_program};
pub use system::{SystemView, check_system, hidden_paths};

/// The first argument that makes this program the init of a sandbox.
pub const INIT_ARG: &str = "__sandbox";
