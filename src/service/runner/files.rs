//! Plain files that a call changes. The new contents are prepared beside the old ones; then one commit decides them
//! together with the result of the call; then they take their names. A crash before that commit leaves everything as it
//! was; after it, the next start makes what is left and ends the job with its result.

use serde_json::Value;

use super::JobRunner;
use crate::jobs::Job;
use crate::state::file_plans;
use acheron_base::confined_dir::{FileChange, FilePlan};
use acheron_base::{ConfinedDir, Error, Result, failpoint};

impl JobRunner {
    /// Makes `changes` in `place`, once for a job; its result is `result`. Waits for the disk.
    pub fn change_files(&self, job: &Job, place: &ConfinedDir, changes: Vec<FileChange>, result: Value) -> Result<()> {
        let plan = place.prepare(changes)?;
        failpoint::step("files.prepared");
        let made = self.decide(job, &plan, result).and_then(|()| {
            failpoint::step("files.decided");
            plan.make(place)
        });
        if made.is_err() {
            plan.discard(place);
        }
        failpoint::step("files.made");
        made
    }

    fn decide(&self, job: &Job, plan: &FilePlan, result: Value) -> Result<()> {
        if job.has_decided() {
            return Err(Error::internal(format!("{} changes files twice in one call", job.call.service)));
        }
        job.decide()?;
        if !job.call.is_journaled() {
            return Ok(()); // it is not journaled
        }
        let plan = serde_json::to_string(plan).map_err(|error| Error::internal(error.to_string()))?;
        let id = job.id.clone();
        let result = crate::jobs::stored_result(job, result);
        match self.store.write_blocking(move |tx| file_plans::insert(tx, &id, &plan, &result))? {
            true => Ok(()),
            false => Err(Error::internal(format!("the journal has no running job {}", job.id))),
        }
    }
}
