//! All jobs by agent, in order of creation.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::result_sizes::{self, ResultSizes};
use super::{Call, Job, JobRow, JobState, JobStore, row};
use acheron_base::{Clock, Error, Ids, Result};
use acheron_vfs::ChangeNotifier;

/// Ended jobs per agent whose results stay in memory. Older results are fetched from the store.
const MAX_LOADED: usize = 256;

/// Jobs that have ended are pruned after so many bytes, and not only now and then.
const MUCH: usize = 64 << 20;

/// All jobs of the host.
pub struct Jobs {
    by_agent: Mutex<HashMap<String, Arc<AgentJobs>>>,
    store: Arc<dyn JobStore>,
    ids: Ids,
    /// The calls that were accepted since the host started.
    accepted: AtomicU64,
    /// The size of the jobs that ended since the last notification.
    ended_bytes: AtomicUsize,
    /// Notifies when jobs have ended whose arguments and results take much room in the store.
    pub grown: Arc<Notify>,
}

/// The jobs of one agent.
#[derive(Default)]
pub struct AgentJobs {
    state: Mutex<AgentJobsInner>,
    /// Notifies when the directory of a job appears, changes or disappears.
    pub notifier: Arc<ChangeNotifier>,
}

#[derive(Default)]
struct AgentJobsInner {
    /// By id; ids sort by time.
    all: BTreeMap<String, JobEntry>,
    /// The jobs in memory, oldest first; their number is bounded.
    loaded: VecDeque<Arc<Job>>,
    by_correlation_id: BTreeMap<String, String>,
    /// Jobs whose results take much memory.
    sizes: ResultSizes,
}

/// A job in memory, or the name of one in the store.
#[derive(Clone)]
pub enum JobEntry {
    Loaded(Arc<Job>),
    /// Ended long ago: only the id is in memory.
    Archived,
}

impl Jobs {
    pub fn new(store: Arc<dyn JobStore>, ids: Ids) -> Self {
        let (accepted, ended_bytes) = (AtomicU64::new(0), AtomicUsize::new(0));
        Jobs { by_agent: Mutex::default(), store, ids, accepted, ended_bytes, grown: Arc::default() }
    }

    pub fn store(&self) -> &Arc<dyn JobStore> {
        &self.store
    }

    pub fn clock(&self) -> &Clock {
        self.ids.clock()
    }

    /// Where the names of jobs come from.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    pub fn of(&self, agent: &str) -> Arc<AgentJobs> {
        let mut by_agent = self.by_agent.lock();
        by_agent.entry(agent.to_owned()).or_default().clone()
    }

    /// Drops an agent and its jobs.
    pub fn forget(&self, agent: &str) {
        self.by_agent.lock().remove(agent);
    }

    /// Adds a job per call, all or none; those with `true` start at once.
    pub fn accept(&self, calls: Vec<(Call, bool)>) -> Result<Vec<Arc<Job>>> {
        let (now, clock) = (self.clock().now_ms(), self.clock());
        let job = |(call, at_once)| Arc::new(Job::new(self.ids.id("job"), call, now, clock).at_once(at_once));
        let jobs: Vec<Arc<Job>> = calls.into_iter().map(job).collect();
        for (i, job) in jobs.iter().enumerate() {
            if let Err(error) = self.of(&job.call.agent).add(job) {
                self.retract(&jobs[..i]);
                return Err(error);
            }
        }
        self.accepted.fetch_add(jobs.len() as u64, Ordering::Relaxed);
        Ok(jobs)
    }

    /// How many calls were accepted since the host started.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Removes jobs that could not be made durable.
    pub fn retract(&self, jobs: &[Arc<Job>]) {
        for job in jobs {
            self.of(&job.call.agent).remove(&job.id);
        }
    }

    /// Restores a job of an earlier run of the host.
    pub fn restore(&self, job: Job) -> Arc<Job> {
        let job = Arc::new(job);
        self.of(&job.call.agent).put(&job.id, job.call.correlation_id.as_deref(), JobEntry::Loaded(job.clone()));
        job
    }

    /// Restores the id of a job that ended in an earlier run.
    pub fn restore_name(&self, agent: &str, id: &str, correlation_id: Option<&str>) {
        self.of(agent).put(id, correlation_id, JobEntry::Archived);
    }

    /// Counts the size of an ended job and unloads the oldest large ones.
    pub fn ended(&self, job: &Job) {
        self.grew(result_sizes::of(job));
        self.of(&job.call.agent).count_size(job);
    }

    /// Counts bytes that stay on the disk; after many of them what is beyond the limits goes.
    pub fn grew(&self, bytes: usize) {
        if self.ended_bytes.fetch_add(bytes, Ordering::SeqCst) + bytes > MUCH {
            self.ended_bytes.store(0, Ordering::SeqCst);
            self.grown.notify_one();
        }
    }

    /// The memory that results of ended jobs take, in bytes; small results are not counted.
    pub fn result_bytes(&self) -> usize {
        let by_agent: Vec<_> = self.by_agent.lock().values().cloned().collect();
        by_agent.iter().map(|agent_jobs| agent_jobs.jobs().sizes.total()).sum()
    }

    pub fn agents(&self) -> Vec<String> {
        self.by_agent.lock().keys().cloned().collect()
    }

    /// The number of jobs per state, and of archived jobs.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let by_agent: Vec<_> = self.by_agent.lock().values().cloned().collect();
        let mut count = BTreeMap::new();
        for agent_jobs in by_agent {
            let jobs = agent_jobs.jobs();
            for job in &jobs.loaded {
                *count.entry(job.now().state.name()).or_insert(0) += 1;
            }
            let away = jobs.all.len() - jobs.loaded.len();
            if away > 0 {
                *count.entry("archived").or_insert(0) += away;
            }
        }
        count
    }
}

impl AgentJobs {
    fn jobs(&self) -> MutexGuard<'_, AgentJobsInner> {
        self.state.lock()
    }

    fn add(&self, job: &Arc<Job>) -> Result<()> {
        let mut jobs = self.jobs();
        if let Some(word) = &job.call.correlation_id {
            if let Some(JobEntry::Loaded(other)) = jobs.by_correlation_id.get(word).and_then(|id| jobs.all.get(id))
                && !other.settled()
            {
                return Err(Error::already_exists(format!(
                    "the correlation id `{word}` belongs to {}, which is still {}",
                    other.id,
                    other.now().state.name()
                )));
            }
            jobs.by_correlation_id.insert(word.clone(), job.id.clone());
        }
        let first = jobs.all.is_empty();
        jobs.put(&job.id, JobEntry::Loaded(job.clone()));
        let gone = jobs.archive_oldest();
        drop(jobs);
        // Without this, the kernel would serve its cached listing until the directory's modification time changes.
        self.notifier.name(&job.id);
        if first {
            self.notifier.name("last");
        }
        gone.iter().for_each(|id| self.notifier.name(id));
        Ok(())
    }

    fn count_size(&self, job: &Job) {
        let mut jobs = self.jobs();
        if !matches!(jobs.all.get(&job.id), Some(JobEntry::Loaded(_))) {
            return; // the agent is gone, and its jobs with it
        }
        let surplus = jobs.sizes.note(&job.id, result_sizes::of(job));
        let gone = surplus.iter().filter_map(|id| {
            let at = jobs.loaded.iter().position(|job| job.id == *id)?;
            jobs.unload(at)
        });
        let gone: Vec<Arc<Job>> = gone.collect();
        drop(jobs);
        for job in gone {
            // A file that is still open keeps the job, but not its result.
            job.drop_result();
            self.notifier.name(&job.id);
        }
    }

    fn put(&self, id: &str, correlation_id: Option<&str>, entry: JobEntry) {
        let mut jobs = self.jobs();
        if let Some(word) = correlation_id {
            jobs.by_correlation_id.insert(word.to_owned(), id.to_owned());
        }
        jobs.put(id, entry);
    }

    pub fn remove(&self, id: &str) {
        let mut jobs = self.jobs();
        if let Some(at) = jobs.loaded.iter().position(|job| job.id == id)
            && let Some(job) = jobs.loaded.remove(at)
        {
            jobs.remove_entry(&job);
        }
        drop(jobs);
        self.notifier.name(id);
    }

    pub fn get(&self, id: &str) -> Option<JobEntry> {
        self.jobs().all.get(id).cloned()
    }

    pub fn by_correlation_id(&self, correlation_id: &str) -> Option<String> {
        self.jobs().by_correlation_id.get(correlation_id).cloned()
    }

    pub fn correlations(&self) -> Vec<String> {
        self.jobs().by_correlation_id.keys().cloned().collect()
    }

    pub fn last(&self) -> Option<String> {
        self.jobs().all.last_key_value().map(|(id, _)| id.clone())
    }

    pub fn count(&self) -> usize {
        self.jobs().all.len()
    }

    pub fn ids(&self) -> Vec<String> {
        self.jobs().all.keys().cloned().collect()
    }

    /// The jobs that have not ended.
    /// The jobs in memory, oldest first.
    pub fn loaded(&self) -> Vec<Arc<Job>> {
        self.jobs().loaded.iter().cloned().collect()
    }

    pub fn unfinished(&self) -> Vec<Arc<Job>> {
        self.jobs().loaded.iter().filter(|job| !job.settled()).cloned().collect()
    }

    /// Drops those of `ids` that belong to this agent.
    pub fn forget(&self, ids: &[String]) {
        let mut jobs = self.jobs();
        let AgentJobsInner { all, loaded, by_correlation_id, sizes } = &mut *jobs;
        ids.iter().for_each(|id| sizes.forget(id));
        let gone: Vec<&String> = ids.iter().filter(|id| all.remove(*id).is_some()).collect();
        if gone.is_empty() {
            return;
        }
        loaded.retain(|job| all.contains_key(&job.id));
        by_correlation_id.retain(|_, id| all.contains_key(id));
        drop(jobs);
        for id in gone {
            self.notifier.name(id);
        }
    }
}

impl AgentJobsInner {
    fn put(&mut self, id: &str, entry: JobEntry) {
        if let JobEntry::Loaded(job) = &entry {
            self.loaded.push_back(job.clone());
        }
        self.all.insert(id.to_owned(), entry);
    }

    /// Removes a job and its correlation id.
    fn remove_entry(&mut self, job: &Job) {
        self.sizes.forget(&job.id);
        self.all.remove(&job.id);
        if let Some(word) = &job.call.correlation_id
            && self.by_correlation_id.get(word).is_some_and(|other| *other == job.id)
        {
            self.by_correlation_id.remove(word);
        }
    }

    /// Archives ended jobs beyond the limit; jobs that only read are not journaled and are removed. Returns the ids of
    /// both.
    fn archive_oldest(&mut self) -> Vec<String> {
        let mut over = self.loaded.len().saturating_sub(MAX_LOADED);
        let (mut gone, mut at) = (Vec::new(), 0);
        while over > 0 {
            // Almost always the first: it is the oldest and has ended.
            match self.loaded.get(at).map(|job| job.settled()) {
                None => break,
                Some(false) => at += 1,
                Some(true) => {
                    over -= 1;
                    gone.extend(self.unload(at).map(|job| job.id.clone()));
                }
            }
        }
        gone
    }

    /// Unloads an ended job and returns it.
    fn unload(&mut self, at: usize) -> Option<Arc<Job>> {
        let job = self.loaded.remove(at)?;
        self.sizes.forget(&job.id);
        match job.call.is_journaled() {
            false => self.remove_entry(&job),
            true => _ = self.all.insert(job.id.clone(), JobEntry::Archived),
        }
        Some(job)
    }
}

/// The journal row of a new job. A job that starts at once is inserted as running, which saves a second write.
pub fn accepted_row(job: &Job) -> JobRow {
    match job.at_once {
        true => JobRow {
            state: JobState::Running,
            started_at_ms: Some(job.created_at_ms),
            attempt: 1,
            ..row(job, &job.now())
        },
        false => row(job, &job.now()),
    }
}

#[cfg(test)]
mod tests;
