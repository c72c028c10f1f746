//! The file that stops a job.

use std::sync::Arc;

use bytes::Bytes;

use super::Job;
use crate::error::Result;
use crate::vfs::{Answer, Caller, File, Handle, Kind, Open, slice};

const TEMPLATE: &[u8] = b"write anything here to cancel this job\n";

/// Cancels its job at the first write, whatever is written.
pub struct Cancel(pub Arc<Job>);

impl File for Cancel {
    fn kind(&self) -> Kind {
        Kind::Control
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(Cancel(self.0.clone())))
    }
}

impl Handle for Cancel {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        Answer::ok(slice(&Bytes::from_static(TEMPLATE), offset, size))
    }

    fn write(&self, _offset: u64, _data: &[u8]) -> Answer<()> {
        self.0.cancel.cancel();
        Answer::ok(())
    }
}
