//! A place where a stranger's program may run: a small root of its own, no network, no way back.
//!
//! A [`Plan`] says what runs and what it may see. [`start`] re-executes this program with the hidden first word
//! [`WORD`]; that process builds the walls around itself, one after the other, and only then becomes the stranger.
//! A wall that cannot be built ends the attempt, unless the plan allows to go without.
//! Knows nothing of agents' rights, of services or of the tree: what is bound is the caller's choice.

mod ancestry;
mod cgroup;
mod covers;
mod descriptors;
mod family;
mod fence;
mod filter;
mod groups;
mod guards;
mod init;
mod limits;
mod namespaces;
mod plan;
mod root;
mod running;
mod seats;
mod system;
mod talk;
mod walls;

pub use ancestry::{Process, Whose, look, whose};
pub use descriptors::close_others;
pub use family::{Member, end, family, since};
pub use groups::{host, sweep_all};
pub use guards::{Guard, Show};
pub use init::init_main;
pub use limits::{Limits, Together};
pub use plan::{Bind, Link, PATH, Plan, Shared, Terminal};
pub use running::{Running, Streams, probe, program, start, use_program};
pub use system::{SystemView, check_system, places};
pub use talk::Ended;
pub use walls::{Wall, Walls};

/// The first word by which this program is told to be a sandbox's init.
pub const WORD: &str = "__sandbox";
