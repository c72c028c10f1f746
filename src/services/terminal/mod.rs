//! Terminals: one program at a time, or a shell that stays.
//!
//! `text`, `sentinel`, `echo`, `command_output`, `screen` and `silence_watch` are rules without a process; `run` and `session`
//! are the processes; `shells` keeps the sessions, `files` shows them, `running_programs` ends what has lost a right,
//! `service` takes the commands.

mod command;
mod command_output;
mod echo;
mod files;
mod foreground;
mod lost_rights;
mod run;
mod running_programs;
mod screen;
pub mod sentinel;
mod service;
mod session;
mod shells;
mod shown_plan;
mod silence_watch;
mod surroundings;
mod text;

pub use foreground::FOREGROUND;
pub use lost_rights::lost;
pub use run::{ProgramOutcome, ProgramRun, StreamListener};
pub use running_programs::{RunningProgram, RunningPrograms, ended_because, stopped};
pub use service::{FindSurroundings, Look, Terminal, TerminalParts};
pub use session::{Answered, Facts, Piece, Session};
pub use shells::Shells;
pub use surroundings::{PROXY_PORT, Surroundings, remove_proxy};
pub use text::{Capture, decoded, shown, whole};
