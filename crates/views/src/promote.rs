//! Carries changes of a view back into its base: everything is staged beside the base first, so that what can fail or run out
//! of space fails before anything is changed; then a list of steps is written down by the caller; then the steps are made, each
//! of which is atomic, can be made twice, and can be undone.
//!
//! Something that took the place of what was checked is left alone and told. A file of the base with several names is written
//! in place, because its names belong together; that step is not atomic, but it can be made again.

mod apply;
mod plan;
mod stage;
mod step;

pub use apply::{apply, check_undo, last_change, undo};
pub use plan::{PromotePlan, plan};
pub(crate) use stage::is_written;
pub use stage::{Stage, stage};
pub use step::{PromoteStep, SkippedStep};

#[cfg(test)]
mod tests;
