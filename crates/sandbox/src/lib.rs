//! A place where a stranger's program may run: a small root of its own, no network, no way back.
//!
//! A [`Plan`] says what runs and what it may see. [`start`] re-executes this program with the hidden first word
//! [`WORD`]; that process builds the walls around itself, one after the other, and only then becomes the stranger.
//! A wall that cannot be built ends the attempt, unless the plan allows to go without.
//! Knows nothing of agents' rights, of services or of the tree: what is bound is the caller's choice.

mod ancestry;
mod cgroup;
mod confinement;
mod covers;
mod descriptors;
mod filter;
mod groups;
mod guards;
mod init;
mod landlock_rules;
mod limits;
mod mount_attributes;
mod namespaces;
mod plan;
mod processes;
mod protocol;
mod pty;
mod root;
mod running;
mod slots;
mod system;

pub use ancestry::{Process, Whose, look, whose};
pub use confinement::{Wall, Walls};
pub use descriptors::close_others;
pub use groups::{host, sweep_all};
pub use guards::{Guard, Show};
pub use init::init_main;
pub use limits::{Limits, Together};
pub use mount_attributes::{MountAttributes, set_mount_attributes};
pub use plan::{Bind, Link, PATH, Plan, SharedLimits, Terminal};
pub use processes::{Member, end, family, since};
pub use protocol::Ended;
pub use pty::{Pty, TerminalSize, signal_named};
pub use running::{Running, Streams, probe, program, start, use_program};
pub use system::{SystemView, check_system, places};

/// The first word by which this program is told to be a sandbox's init.
pub const WORD: &str = "__sandbox";
