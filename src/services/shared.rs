//! What services of all agents have in common, opened once.

use std::path::Path;
use std::sync::Arc;

use super::prompts::Library;
use super::symbols;
use super::symbols::shelf::Shelf;
use super::terminal::Shells;
use crate::agent::crew::Crew;
use crate::clock::Clock;
use crate::error::Result;
use crate::spec::Spec;
use crate::store::Store;

pub struct Shared {
    pub crew: Arc<Crew>,
    pub prompts: Arc<Library>,
    pub symbols: Arc<Shelf>,
    /// The sessions of all terminals.
    pub shells: Arc<Shells>,
}

impl Shared {
    pub fn open(spec: &Spec, here: &Path, _state: &Path, store: &Store, _clock: &Clock) -> Result<Shared> {
        let folder = spec.prompts.as_deref().map(|folder| here.join(folder));
        let folder = folder.or_else(|| Some(here.join("prompts")).filter(|folder| folder.is_dir()));
        let prompts = Arc::new(Library::open(folder.as_deref()));
        let crew = Arc::new(Crew::new(here, Box::new(|name| std::env::var(name).ok()), None));
        let symbols = symbols::open::open(&spec.symbols, store)?;
        Ok(Shared { crew, prompts, symbols, shells: Arc::default() })
    }
}
