//! What services of all agents have in common, opened once.

use std::path::Path;
use std::sync::Arc;

use super::terminal::Shells;
use crate::clock::Clock;
use crate::error::Result;
use crate::spec::Spec;
use crate::store::Store;

pub struct Shared {
    /// The sessions of all terminals.
    pub shells: Arc<Shells>,
}

impl Shared {
    pub fn open(_spec: &Spec, _here: &Path, _state: &Path, _store: &Store, _clock: &Clock) -> Result<Shared> {
        Ok(Shared { shells: Arc::default() })
    }
}
