//! Views: copy-on-write working copies of a project, which can be read, promoted, rewound or thrown away.
//!
//! `record` and `places` say what a view is and where it lies; `view` is one view with what can be done to it (`judge`,
//! `promoting`, `snapshots`, `base_changes`), `journal` makes a promote happen whole across a crash, `report` shows it; `all`
//! keeps the views of the host; `service` and `create` take the commands. Uses `acheron-views`; the host says where views show
//! and ends the programs in one.

mod all;
mod base_changes;
mod create;
mod files;
mod journal;
mod judge;
mod places;
mod promoting;
mod record;
mod report;
mod service;
mod snapshots;
mod view;

pub use all::{Views, ViewsParts};
pub use create::ViewsService;
pub use journal::replay;
pub use places::staged_in;
pub use record::ViewRecord;
pub use service::ViewService;
pub use view::{View, ViewUsers};

/// The view that the agents of a project share.
pub const SHARED: &str = "shared";
