//! Copy-on-write working copies of a directory ("views"), made with overlayfs.
//!
//! A view is a base, which nobody writes through the view, and an upper directory, in which the kernel keeps what was
//! changed. This crate mounts views ([`overlay`]), tells what was changed ([`walk`], from the upper alone), which of it may go
//! back without being asked for ([`held`]) and which not at all because the base has changed too ([`conflict`]), shows it as a
//! patch that git applies ([`patch`]), carries it back in steps that can be repeated after a crash ([`promote`]) and undone,
//! and copies an upper to come back to it later ([`checkpoint`]).
//!
//! Every path is resolved below an open directory and through no link ([`root`]): an agent changes the names while we read.
//! Used by `src/services/views` and `src/host`; uses only `acheron-base`. Calls wait for the disk.

pub mod change;
pub mod checkpoint;
pub mod conflict;
pub mod held;
pub mod ignored;
pub mod manifest;
pub mod marks;
pub mod overlay;
pub mod patch;
pub mod pinned;
pub mod promote;
pub mod prune;
pub mod rel_path;
pub mod root;
pub mod select;
#[cfg(test)]
mod test_view;
pub mod walk;

pub use change::{Change, ChangeKind, Content, EntryType, Side};
pub use manifest::Manifest;
pub use marks::MarkNames;
pub use rel_path::RelPath;
pub use root::{EntryFacts, Root};
