//! Campaigns on disk. The only part of the kernel that touches files; it knows no rule of the game.

mod hall;
mod save;

pub use hall::{Active, Hall, fits, replayed, template};
pub use save::Save;
