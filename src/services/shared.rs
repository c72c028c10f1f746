//! What services of all agents have in common, opened once.

use std::path::Path;

use crate::clock::Clock;
use crate::error::Result;
use crate::spec::Spec;
use crate::store::Store;

pub struct Shared {}

impl Shared {
    pub fn open(_spec: &Spec, _here: &Path, _state: &Path, _store: &Store, _clock: &Clock) -> Result<Shared> {
        Ok(Shared {})
    }
}
