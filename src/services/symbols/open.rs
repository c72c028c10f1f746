//! Opens the symbol store that a mountspec names.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::backend::Backend;
use super::catalogue::CatalogueTexts;
use super::service::ready;
use super::sqlite::Sqlite;
use super::store::SymbolStore;
use crate::spec::{self, SymbolsBackend};
use crate::state::quota::Quotas;
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
pub fn open(
    spec: &spec::SymbolsSpec,
    store: &Store,
    catalogue: CatalogueTexts,
    quotas: Arc<Quotas>,
) -> Result<(Arc<SymbolStore>, Filling)> {
    let ours = spec.backend == SymbolsBackend::Sqlite;
    let backend: Arc<dyn Backend> = match spec.backend {
        SymbolsBackend::Sqlite => Arc::new(Sqlite::new(store.clone())),
        SymbolsBackend::Redis => redis(spec)?,
    };
    let symbol_store = Arc::new(SymbolStore::new(backend).with_catalogue(catalogue).with_quotas(quotas));
    let first = symbol_store.clone();
    if ours {
        let fill = move || tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(ready(&first));
        let thread = std::thread::Builder::new().name("symbols".into()).spawn(fill)?;
        return Ok((symbol_store, Filling(Some(thread))));
    }
    symbol_store.follow_others();
    tokio::spawn(async move {
        if let Err(fault) = ready(&first).await {
            tracing::warn!(event = "symbol_store.not_ready", %fault);
        }
    });
    Ok((symbol_store, Filling(None)))
}

/// Why the symbols of a spec cannot be opened; what a server says is not known before it is asked.
pub fn fault(spec: &spec::SymbolsSpec) -> Option<Error> {
    match spec.backend {
        SymbolsBackend::Sqlite => None,
        SymbolsBackend::Redis => redis(spec).err(),
    }
}

#[cfg(feature = "redis")]
fn redis(spec: &spec::SymbolsSpec) -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(super::redis::Redis::of(spec, |name| std::env::var(name).ok())?))
}

#[cfg(not(feature = "redis"))]
fn redis(_spec: &spec::SymbolsSpec) -> Result<Arc<dyn Backend>> {
    Err(Error::unavailable("symbols.backend: this acheron was built without redis; build it with `--features redis`"))
}
