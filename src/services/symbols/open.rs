//! Opens the symbol store that a mountspec names.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::backend::Backend;
use super::catalogue::CatalogueTexts;
use super::service::ready;
use super::sqlite::Sqlite;
use super::store::SymbolStore;
use crate::spec::{self, SymbolsBackend};
use acheron_base::{Error, Result};
use acheron_store::Store;

/// The catalogue while it is put into our own database, beside the rest of the start.
#[must_use]
pub struct Filling(Option<JoinHandle<Result<()>>>);

impl Filling {
    /// Waits until it is there.
    pub fn wait(self) -> Result<()> {
        let Some(thread) = self.0 else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(Error::internal("filling the symbols panicked")))
    }
}

/// Opens the backend of the spec. Our own database has its catalogue when [`Filling::wait`] returns; a Redis that does not
/// answer now gets it when it does.
pub fn open(spec: &spec::SymbolsSpec, store: &Store, catalogue: CatalogueTexts) -> Result<(Arc<SymbolStore>, Filling)> {
    let ours = spec.backend == SymbolsBackend::Sqlite;
    let backend: Arc<dyn Backend> = match (spec.backend, &spec.url) {
        (SymbolsBackend::Sqlite, _) => Arc::new(Sqlite::new(store.clone())),
        (SymbolsBackend::Redis, Some(url)) => redis(url)?,
        (SymbolsBackend::Redis, None) => return Err(Error::invalid("symbols.url: redis needs one")),
    };
    let symbol_store = Arc::new(SymbolStore::new(backend).with_catalogue(catalogue));
    let first = symbol_store.clone();
    if ours {
        let fill = move || tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(ready(&first));
        let thread = std::thread::Builder::new().name("symbols".into()).spawn(fill)?;
        return Ok((symbol_store, Filling(Some(thread))));
    }
    tokio::spawn(async move {
        if let Err(fault) = ready(&first).await {
            tracing::warn!(event = "symbol_store.not_ready", %fault);
        }
    });
    Ok((symbol_store, Filling(None)))
}

#[cfg(feature = "redis")]
fn redis(url: &str) -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(super::redis::Redis::new(url)?))
}

#[cfg(not(feature = "redis"))]
fn redis(_url: &str) -> Result<Arc<dyn Backend>> {
    Err(Error::unavailable("symbols.backend: this acheron was built without redis; build it with `--features redis`"))
}
