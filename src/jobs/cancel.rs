//! `control/cancel`: stops a job.

use std::sync::Arc;

use bytes::Bytes;

use super::{Job, JobStore};
use acheron_base::Result;
use acheron_vfs::{Answer, Caller, File, Handle, Kind, Open, slice};

const TEMPLATE: &[u8] = b"write anything here to cancel this job\n";

/// Cancels its job at the first write, with any content.
#[derive(Clone)]
pub struct Cancel {
    pub job: Arc<Job>,
    pub store: Arc<dyn JobStore>,
}

impl File for Cancel {
    fn kind(&self) -> Kind {
        Kind::Control
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(self.clone()))
    }
}

impl Handle for Cancel {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        Answer::ok(slice(&Bytes::from_static(TEMPLATE), offset, size))
    }

    fn length(&self) -> Answer<Option<u64>> {
        Answer::ok(Some(TEMPLATE.len() as u64))
    }

    /// Stops the job at once. The answer resolves when the journal has recorded it, so that the job does not run after
    /// a restart. It does not wait for the end: the writer may be a part of the job.
    fn write(&self, _offset: u64, _data: &[u8]) -> Answer<()> {
        let job = self.job.clone();
        job.cancel.cancel();
        if !job.call.is_journaled() || job.settled() {
            return Answer::ok(());
        }
        let noted = self.store.stopped(&job.id, job.stopped("the call was cancelled"));
        Answer::soon(async move {
            match noted.await {
                Err(error) if !job.settled() => Err(error),
                _ => Ok(()),
            }
        })
    }
}
