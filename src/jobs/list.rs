//! Every job there is, by agent, in the order in which they came.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::weight::{self, Heavy};
use super::{Call, Job, JobStore, Row, State, row};
use crate::contract::Effect;
use acheron_base::{Clock, Ids};
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, ChangeNotifier};

/// Ended jobs whose results stay in memory, an agent. Older ones are fetched when somebody looks.
const FRESH: usize = 256;

/// All jobs of the host.
pub struct Jobs {
    shelves: Mutex<HashMap<String, Arc<AgentJobs>>>,
    keep: Arc<dyn JobStore>,
    ids: Ids,
}

/// The jobs of one agent.
#[derive(Default)]
pub struct AgentJobs {
    state: Mutex<AgentJobsInner>,
    /// Rings when a job's directory comes, changes or goes.
    pub notifier: Arc<ChangeNotifier>,
}

#[derive(Default)]
struct AgentJobsInner {
    /// Ids are in order of time.
    all: BTreeMap<String, JobEntry>,
    /// Those that are in memory, oldest first; few, however many there are.
    here: VecDeque<Arc<Job>>,
    by: BTreeMap<String, String>,
    /// Those whose results take much memory.
    heavy: Heavy,
}

/// A job as the book holds it.
#[derive(Clone)]
pub enum JobEntry {
    Loaded(Arc<Job>),
    /// Ended long ago: only its name is in memory.
    Archived,
}

impl Jobs {
    pub fn new(keep: Arc<dyn JobStore>, ids: Ids) -> Self {
        Jobs { shelves: Mutex::default(), keep, ids }
    }

    pub fn keep(&self) -> &Arc<dyn JobStore> {
        &self.keep
    }

    pub fn clock(&self) -> &Clock {
        self.ids.clock()
    }

    /// Where the names of jobs come from.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    pub fn shelf(&self, agent: &str) -> Arc<AgentJobs> {
        let mut shelves = self.shelves.lock();
        shelves.entry(agent.to_owned()).or_default().clone()
    }

    /// Forgets an agent and its jobs.
    pub fn forget(&self, agent: &str) {
        self.shelves.lock().remove(agent);
    }

    /// Books all of `calls`, or none; `at_once` if there is room for them to begin. They are in the tree, and safe if their effects matter, when the answer is there.
    pub fn accept(&self, calls: Vec<Call>, at_once: bool) -> Result<(Vec<Arc<Job>>, Answer<()>)> {
        let (now, clock) = (self.clock().now_ms(), self.clock());
        let job = |call| Arc::new(Job::new(self.ids.id("job"), call, now, clock).at_once(at_once));
        let jobs: Vec<Arc<Job>> = calls.into_iter().map(job).collect();
        for (i, job) in jobs.iter().enumerate() {
            let shelf = self.shelf(&job.call.agent);
            if let Err(error) = shelf.add(job) {
                for job in &jobs[..i] {
                    self.shelf(&job.call.agent).remove(&job.id);
                }
                return Err(error);
            }
        }
        let rows: Vec<Row> =
            jobs.iter().filter(|job| job.call.effect != Effect::Read).map(|job| accepted(job)).collect();
        let safe = match rows.is_empty() {
            true => Answer::ok(()),
            false => self.keep.accept(rows),
        };
        Ok((jobs, safe))
    }

    /// Takes jobs back that could not be made safe.
    pub fn retract(&self, jobs: &[Arc<Job>]) {
        for job in jobs {
            self.shelf(&job.call.agent).remove(&job.id);
        }
    }

    /// Puts a job of an earlier life of the host where it stood.
    pub fn restore(&self, job: Job) -> Arc<Job> {
        let job = Arc::new(job);
        self.shelf(&job.call.agent).put(&job.id, job.call.correlation_id.as_deref(), JobEntry::Loaded(job.clone()));
        job
    }

    /// Puts the name of a job that ended in an earlier life.
    pub fn restore_name(&self, agent: &str, id: &str, correlation_id: Option<&str>) {
        self.shelf(agent).put(id, correlation_id, JobEntry::Archived);
    }

    /// A job has ended: what it holds is counted, and the oldest that hold too much let go of it.
    pub fn ended(&self, job: &Job) {
        self.shelf(&job.call.agent).weigh(job);
    }

    /// How many bytes the results of ended jobs take, as far as they are worth counting.
    pub fn result_bytes(&self) -> usize {
        let shelves: Vec<_> = self.shelves.lock().values().cloned().collect();
        shelves.iter().map(|shelf| shelf.jobs().heavy.total()).sum()
    }

    pub fn agents(&self) -> Vec<String> {
        self.shelves.lock().keys().cloned().collect()
    }

    /// How many jobs there are in each state, and how many ended long ago.
    pub fn census(&self) -> BTreeMap<&'static str, usize> {
        let shelves: Vec<_> = self.shelves.lock().values().cloned().collect();
        let mut count = BTreeMap::new();
        for shelf in shelves {
            let jobs = shelf.jobs();
            for job in &jobs.here {
                *count.entry(job.now().state.name()).or_insert(0) += 1;
            }
            let away = jobs.all.len() - jobs.here.len();
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
            if let Some(JobEntry::Loaded(other)) = jobs.by.get(word).and_then(|id| jobs.all.get(id))
                && !other.settled()
            {
                return Err(Error::already_exists(format!(
                    "the correlation id `{word}` belongs to {}, which is still {}",
                    other.id,
                    other.now().state.name()
                )));
            }
            jobs.by.insert(word.clone(), job.id.clone());
        }
        let first = jobs.all.is_empty();
        jobs.put(&job.id, JobEntry::Loaded(job.clone()));
        let gone = jobs.send_away();
        drop(jobs);
        // A listing that the kernel keeps would go without it for as long as it believes the time of the directory.
        self.notifier.name(&job.id);
        if first {
            self.notifier.name("last");
        }
        gone.iter().for_each(|id| self.notifier.name(id));
        Ok(())
    }

    fn weigh(&self, job: &Job) {
        let mut jobs = self.jobs();
        if !matches!(jobs.all.get(&job.id), Some(JobEntry::Loaded(_))) {
            return; // the agent is gone, and its jobs with it
        }
        let surplus = jobs.heavy.note(&job.id, weight::of(job));
        let gone = surplus.iter().filter_map(|id| {
            let at = jobs.here.iter().position(|job| job.id == *id)?;
            jobs.let_go(at)
        });
        let gone: Vec<Arc<Job>> = gone.collect();
        drop(jobs);
        for job in gone {
            // Whoever has it open holds it still.
            job.empty();
            self.notifier.name(&job.id);
        }
    }

    fn put(&self, id: &str, correlation_id: Option<&str>, booked: JobEntry) {
        let mut jobs = self.jobs();
        if let Some(word) = correlation_id {
            jobs.by.insert(word.to_owned(), id.to_owned());
        }
        jobs.put(id, booked);
    }

    pub fn remove(&self, id: &str) {
        let mut jobs = self.jobs();
        if let Some(at) = jobs.here.iter().position(|job| job.id == id)
            && let Some(job) = jobs.here.remove(at)
        {
            jobs.strike(&job);
        }
        drop(jobs);
        self.notifier.name(id);
    }

    pub fn get(&self, id: &str) -> Option<JobEntry> {
        self.jobs().all.get(id).cloned()
    }

    pub fn by(&self, correlation_id: &str) -> Option<String> {
        self.jobs().by.get(correlation_id).cloned()
    }

    pub fn correlations(&self) -> Vec<String> {
        self.jobs().by.keys().cloned().collect()
    }

    pub fn last(&self) -> Option<String> {
        self.jobs().all.last_key_value().map(|(id, _)| id.clone())
    }

    pub fn ids(&self) -> Vec<String> {
        self.jobs().all.keys().cloned().collect()
    }

    /// The jobs that have not ended.
    pub fn alive(&self) -> Vec<Arc<Job>> {
        self.jobs().here.iter().filter(|job| !job.settled()).cloned().collect()
    }

    /// Forgets those of `ids` that stand here.
    pub fn forget(&self, ids: &[String]) {
        let mut jobs = self.jobs();
        let AgentJobsInner { all, here, by, heavy } = &mut *jobs;
        ids.iter().for_each(|id| heavy.forget(id));
        let gone: Vec<&String> = ids.iter().filter(|id| all.remove(*id).is_some()).collect();
        if gone.is_empty() {
            return;
        }
        here.retain(|job| all.contains_key(&job.id));
        by.retain(|_, id| all.contains_key(id));
        drop(jobs);
        for id in gone {
            self.notifier.name(id);
        }
    }
}

impl AgentJobsInner {
    fn put(&mut self, id: &str, booked: JobEntry) {
        if let JobEntry::Loaded(job) = &booked {
            self.here.push_back(job.clone());
        }
        self.all.insert(id.to_owned(), booked);
    }

    /// Strikes a job out, with its other name.
    fn strike(&mut self, job: &Job) {
        self.heavy.forget(&job.id);
        self.all.remove(&job.id);
        if let Some(word) = &job.call.correlation_id
            && self.by.get(word).is_some_and(|other| *other == job.id)
        {
            self.by.remove(word);
        }
    }

    /// Lets go of what ended long ago and can be fetched; what was never kept is forgotten whole. Returns the ids of both.
    fn send_away(&mut self) -> Vec<String> {
        let mut over = self.here.len().saturating_sub(FRESH);
        let (mut gone, mut at) = (Vec::new(), 0);
        while over > 0 {
            // Almost always the first: it came first, and has ended.
            match self.here.get(at).map(|job| job.settled()) {
                None => break,
                Some(false) => at += 1,
                Some(true) => {
                    over -= 1;
                    gone.extend(self.let_go(at).map(|job| job.id.clone()));
                }
            }
        }
        gone
    }

    /// Lets go of one of those in memory, which has ended, and hands it out.
    fn let_go(&mut self, at: usize) -> Option<Arc<Job>> {
        let job = self.here.remove(at)?;
        self.heavy.forget(&job.id);
        match job.call.effect {
            Effect::Read => self.strike(&job),
            Effect::Write | Effect::Execute => _ = self.all.insert(job.id.clone(), JobEntry::Archived),
        }
        Some(job)
    }
}

/// A new job as the journal has it: one that begins at once is running, which saves a second note of it.
fn accepted(job: &Job) -> Row {
    match job.at_once {
        true => {
            Row { state: State::Running, started_at_ms: Some(job.created_at_ms), attempt: 1, ..row(job, &job.now()) }
        }
        false => row(job, &job.now()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::Forgetful;
    use super::*;
    use crate::policy::Principal;
    use acheron_base::Random;
    use acheron_vfs::{ChangeKind, Listener};

    #[derive(Default)]
    struct Ear(Mutex<Vec<String>>);

    impl Listener for Ear {
        fn heard(&self, news: &ChangeKind) {
            if let ChangeKind::Name(name) = news {
                self.0.lock().push(name.clone());
            }
        }
    }

    fn call(effect: Effect, number: usize) -> Call {
        Call {
            agent: "ada".into(),
            service: "bench".into(),
            operation: "go".into(),
            effect,
            idempotent: false,
            private: false,
            correlation_id: Some(format!("mine-{number}")),
            principal: Principal::Operator,
            arguments: Value::Null,
        }
    }

    /// A book with so many ended jobs.
    fn book(effect: Effect, count: usize) -> (Jobs, Vec<Arc<Job>>) {
        let book = Jobs::new(Arc::new(Forgetful), Ids::new(Clock::real(), Random::real()));
        let jobs = (0..count).map(|number| {
            let (jobs, _) = book.accept(vec![call(effect, number)], true).unwrap();
            jobs[0].update(|now| now.state = State::Done);
            jobs[0].clone()
        });
        let jobs = jobs.collect();
        (book, jobs)
    }

    fn census(book: &Jobs) -> Vec<(&'static str, usize)> {
        book.census().into_iter().collect()
    }

    #[test]
    fn old_jobs_whose_effects_matter_stay_by_name_only() {
        let (book, jobs) = book(Effect::Write, FRESH + 10);
        assert_eq!(census(&book), [("archived", 10), ("done", FRESH)]);
        let shelf = book.shelf("ada");
        assert!(matches!(shelf.get(&jobs[9].id), Some(JobEntry::Archived)));
        assert!(matches!(shelf.get(&jobs[10].id), Some(JobEntry::Loaded(_))));
        assert_eq!(shelf.by("mine-0"), Some(jobs[0].id.clone()));
        assert_eq!(shelf.ids().len(), FRESH + 10);
    }

    #[test]
    fn old_jobs_that_only_read_are_forgotten_with_their_other_names() {
        let (book, jobs) = book(Effect::Read, FRESH + 10);
        assert_eq!(census(&book), [("done", FRESH)]);
        let shelf = book.shelf("ada");
        assert!(shelf.get(&jobs[9].id).is_none() && shelf.by("mine-9").is_none());
        assert_eq!(shelf.by("mine-10"), Some(jobs[10].id.clone()));
    }

    #[test]
    fn results_that_are_too_much_together_are_let_go_even_by_who_holds_their_jobs() {
        let (book, jobs) = book(Effect::Read, 8);
        for job in &jobs {
            job.update(|now| now.outcome = Some(Arc::new(Ok(Value::String("x".repeat(16 << 20))))));
            book.ended(job);
        }
        assert!(book.result_bytes() <= 64 << 20, "{}", book.result_bytes());
        let said = |job: &Job| job.now().outcome.map(|outcome| outcome.is_ok());
        assert_eq!(said(&jobs[0]), Some(false), "it says that it is no longer kept");
        assert_eq!(said(&jobs[7]), Some(true));
        assert!(book.shelf("ada").get(&jobs[0].id).is_none());
    }

    #[test]
    fn a_name_that_was_used_again_stays_with_the_newer_job() {
        let (book, _) = book(Effect::Read, FRESH);
        let (newer, _) = book.accept(vec![call(Effect::Read, 0)], true).unwrap();
        assert_eq!(book.shelf("ada").by("mine-0"), Some(newer[0].id.clone()));
    }

    #[test]
    fn what_is_tidied_away_is_gone_wherever_it_stood() {
        let (book, jobs) = book(Effect::Write, FRESH + 10);
        let shelf = book.shelf("ada");
        shelf.forget(&[jobs[0].id.clone(), jobs[20].id.clone(), "job-of-another".to_owned()]);
        assert_eq!(census(&book), [("archived", 9), ("done", FRESH - 1)]);
        assert!(shelf.by("mine-0").is_none() && shelf.by("mine-20").is_none() && shelf.by("mine-1").is_some());
    }

    #[test]
    fn whoever_lists_jobs_hears_of_those_that_come_and_those_that_are_sent_away() {
        let (book, ear) =
            (Jobs::new(Arc::new(Forgetful), Ids::new(Clock::real(), Random::real())), Arc::new(Ear::default()));
        book.shelf("ada").notifier.listen(&(ear.clone() as Arc<dyn Listener>));
        let mut ids = Vec::new();
        for _ in 0..=FRESH {
            let (jobs, _) = book.accept(vec![call(Effect::Write, ids.len())], true).unwrap();
            jobs[0].update(|now| now.state = State::Done);
            ids.push(jobs[0].id.clone());
        }
        let mut expected = vec![ids[0].clone(), "last".to_owned()];
        expected.extend_from_slice(&ids[1..]);
        expected.push(ids[0].clone());
        assert_eq!(*ear.0.lock(), expected);
    }
}
