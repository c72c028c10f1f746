//! Campaigns on disk. The only part of the game master that touches files; it knows no rule of the game.

mod campaigns;
mod changed_by;
mod library;
mod save;

pub use campaigns::{ActiveCampaign, Campaigns, folder_files, unreadable_pages};
pub use changed_by::ChangedBy;
pub use library::GameLibrary;
pub use save::Save;
