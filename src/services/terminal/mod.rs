//! Terminals: one program at a time, or a shell that stays.

mod pty;
mod run;
mod sentinel;
mod session;
mod text;
mod world;

pub use pty::{Pty, Size, signal_named};
pub use run::{Ran, Run, Watch};
pub use session::{Answered, Facts, Piece, Session};
pub use text::{Capture, decoded, shown, whole};
pub use world::{Project, World};
