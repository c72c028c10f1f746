//! Every job there is, by agent, in the order in which they came.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Call, Job, Keep, Row, State, row};
use crate::clock::Clock;
use crate::contract::Effect;
use crate::error::{Error, Result};
use crate::vfs::{Answer, Bell};

/// Ended jobs whose results stay in memory, an agent. Older ones are fetched when somebody looks.
const FRESH: usize = 256;

/// All jobs of the host.
pub struct Book {
    shelves: Mutex<HashMap<String, Arc<Shelf>>>,
    keep: Arc<dyn Keep>,
    clock: Clock,
}

/// The jobs of one agent.
#[derive(Default)]
pub struct Shelf {
    state: Mutex<Jobs>,
    /// Rings when a job's directory comes, changes or goes.
    pub bell: Arc<Bell>,
}

#[derive(Default)]
struct Jobs {
    /// Ids are in order of time.
    all: BTreeMap<String, Booked>,
    by: BTreeMap<String, String>,
}

/// A job as the book holds it.
#[derive(Clone)]
pub enum Booked {
    Here(Arc<Job>),
    /// Ended long ago: only its name is in memory.
    Away,
}

impl Book {
    pub fn new(keep: Arc<dyn Keep>, clock: Clock) -> Self {
        Book { shelves: Mutex::default(), keep, clock }
    }

    pub fn keep(&self) -> &Arc<dyn Keep> {
        &self.keep
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn shelf(&self, agent: &str) -> Arc<Shelf> {
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        shelves.entry(agent.to_owned()).or_default().clone()
    }

    /// Forgets an agent and its jobs.
    pub fn forget(&self, agent: &str) {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner).remove(agent);
    }

    /// Books all of `calls`, or none; `at_once` if there is room for them to begin. They are in the tree, and safe if their effects matter, when the answer is there.
    pub fn accept(&self, calls: Vec<Call>, at_once: bool) -> Result<(Vec<Arc<Job>>, Answer<()>)> {
        let now = self.clock.now_ms();
        let job = |call| Arc::new(Job::new(new_id(), call, now).at_once(at_once));
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
        self.shelf(&job.call.agent).put(&job.id, job.call.correlation_id.as_deref(), Booked::Here(job.clone()));
        job
    }

    /// Puts the name of a job that ended in an earlier life.
    pub fn restore_name(&self, agent: &str, id: &str, correlation_id: Option<&str>) {
        self.shelf(agent).put(id, correlation_id, Booked::Away);
    }

    pub fn agents(&self) -> Vec<String> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// How many jobs there are in each state, and how many ended long ago.
    pub fn census(&self) -> BTreeMap<&'static str, usize> {
        let shelves: Vec<_> = self.shelves.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        let mut count = BTreeMap::new();
        for shelf in shelves {
            for booked in shelf.jobs().all.values() {
                let name = match booked {
                    Booked::Here(job) => job.now().state.name(),
                    Booked::Away => "archived",
                };
                *count.entry(name).or_insert(0) += 1;
            }
        }
        count
    }
}

impl Shelf {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, job: &Arc<Job>) -> Result<()> {
        let mut jobs = self.jobs();
        if let Some(word) = &job.call.correlation_id {
            if let Some(Booked::Here(other)) = jobs.by.get(word).and_then(|id| jobs.all.get(id))
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
        jobs.all.insert(job.id.clone(), Booked::Here(job.clone()));
        let gone = jobs.send_away();
        drop(jobs);
        self.bell.name(&job.id);
        if first {
            self.bell.name("last");
        }
        gone.iter().for_each(|id| self.bell.name(id));
        Ok(())
    }

    fn put(&self, id: &str, correlation_id: Option<&str>, booked: Booked) {
        let mut jobs = self.jobs();
        if let Some(word) = correlation_id {
            jobs.by.insert(word.to_owned(), id.to_owned());
        }
        jobs.all.insert(id.to_owned(), booked);
    }

    pub fn remove(&self, id: &str) {
        let mut jobs = self.jobs();
        jobs.all.remove(id);
        jobs.by.retain(|_, it| it != id);
        drop(jobs);
        self.bell.name(id);
    }

    pub fn get(&self, id: &str) -> Option<Booked> {
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
        let jobs = self.jobs();
        let here = jobs.all.values().filter_map(|booked| match booked {
            Booked::Here(job) => Some(job.clone()),
            Booked::Away => None,
        });
        here.filter(|job| !job.settled()).collect()
    }
}

impl Jobs {
    /// Lets go of what ended long ago and can be fetched; what was never kept is forgotten whole. Returns the ids of both.
    fn send_away(&mut self) -> Vec<String> {
        if self.all.len() <= FRESH {
            return Vec::new();
        }
        let here = |booked: &Booked| matches!(booked, Booked::Here(_));
        let many = self.all.values().rev().take(FRESH * 4).filter(|booked| here(booked)).count();
        if many <= FRESH {
            return Vec::new();
        }
        let over = many - FRESH;
        let candidates: Vec<(String, Effect)> = self
            .all
            .iter()
            .filter_map(|(id, booked)| match booked {
                Booked::Here(job) if job.settled() => Some((id.clone(), job.call.effect)),
                _ => None,
            })
            .take(over)
            .collect();
        for (id, effect) in &candidates {
            match effect {
                Effect::Read => {
                    self.all.remove(id);
                    self.by.retain(|_, it| it != id);
                }
                Effect::Write | Effect::Execute => _ = self.all.insert(id.clone(), Booked::Away),
            }
        }
        candidates.into_iter().map(|(id, _)| id).collect()
    }
}

/// A new job as the journal has it: one that begins at once is running, which saves a second note of it.
fn accepted(job: &Job) -> Row {
    match job.at_once {
        true => Row { state: State::Running, started_at_ms: Some(job.created_at_ms), attempt: 1, ..row(job) },
        false => row(job),
    }
}

/// Sortable by time, and not to be guessed.
fn new_id() -> String {
    format!("job-{}", uuid::Uuid::now_v7())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Forgetful;
    use crate::policy::Principal;
    use crate::vfs::{Listener, News};

    #[derive(Default)]
    struct Ear(Mutex<Vec<String>>);

    impl Listener for Ear {
        fn heard(&self, news: &News) {
            if let News::Name(name) = news {
                self.0.lock().unwrap().push(name.clone());
            }
        }
    }

    fn call() -> Call {
        Call {
            agent: "ada".into(),
            service: "bench".into(),
            operation: "echo".into(),
            effect: Effect::Write,
            idempotent: false,
            private: false,
            correlation_id: None,
            principal: Principal::Operator,
            arguments: serde_json::Value::Null,
        }
    }

    #[test]
    fn whoever_lists_jobs_hears_of_those_that_come_and_those_that_are_sent_away() {
        let (book, ear) = (Book::new(Arc::new(Forgetful), Clock::real()), Arc::new(Ear::default()));
        book.shelf("ada").bell.listen(&(ear.clone() as Arc<dyn Listener>));
        let mut ids = Vec::new();
        for _ in 0..=FRESH {
            let (jobs, _) = book.accept(vec![call()], true).unwrap();
            jobs[0].update(|now| now.state = State::Done);
            ids.push(jobs[0].id.clone());
        }
        let mut expected = vec![ids[0].clone(), "last".to_owned()];
        expected.extend_from_slice(&ids[1..]);
        expected.push(ids[0].clone());
        assert_eq!(*ear.0.lock().unwrap(), expected);
    }
}
