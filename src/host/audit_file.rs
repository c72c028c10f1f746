//! `meta/audit.ndjson`: the lines of the audit, for the operator alone (`src/policy` decides). Read from the database, never on
//! the thread that all callers share.

use std::sync::Arc;

use bytes::Bytes;

use super::HostState;
use crate::state::audit::{AuditSize, read};
use acheron_base::Result;
use acheron_store::Store;
use acheron_vfs::{Answer, Caller, File, Handle, Kind, Open, STARTED, Stat};

#[derive(Clone)]
pub struct AuditFile {
    store: Store,
    size: AuditSize,
}

impl AuditFile {
    pub fn new(host: &Arc<HostState>) -> AuditFile {
        AuditFile { store: host.store.clone(), size: host.audit.clone() }
    }
}

impl File for AuditFile {
    fn kind(&self) -> Kind {
        Kind::Log
    }

    fn stat(&self) -> Stat {
        let (begin, end) = self.size.range();
        Stat { size: end - begin, modified: STARTED }
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        let begin = self.size.range().0;
        Ok(Box::new(AuditReader { store: self.store.clone(), begin }))
    }
}

/// A reader counts from the line that was the first when it came, even if that is cut meanwhile.
struct AuditReader {
    store: Store,
    begin: u64,
}

impl Handle for AuditReader {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        let (store, offset) = (self.store.clone(), self.begin.saturating_add(offset));
        Answer::soon(async move { Ok(store.read(move |conn| read::bytes(conn, offset, size)).await?.into()) })
    }
}
