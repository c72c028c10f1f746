use serde_json::Value;

use super::*;
use crate::contract::Effect;
use crate::policy::Principal;
use crate::state::TestStore;
use acheron_base::Random;
use acheron_vfs::{ChangeKind, Listener};

#[derive(Default)]
struct TestListener(Mutex<Vec<String>>);

impl Listener for TestListener {
    fn changed(&self, news: &ChangeKind) {
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
        asks: false,
    }
}

fn empty_list() -> Jobs {
    Jobs::new(Arc::new((*TestStore::new()).clone()), Ids::new(Clock::real(), Random::real()))
}

/// A list with `count` ended jobs.
fn list(effect: Effect, count: usize) -> (Jobs, Vec<Arc<Job>>) {
    let list = empty_list();
    let jobs = (0..count).map(|number| {
        let jobs = list.accept(vec![(call(effect, number), true)]).unwrap();
        jobs[0].update(|now| now.state = JobState::Done);
        jobs[0].clone()
    });
    let jobs = jobs.collect();
    (list, jobs)
}

fn counts(list: &Jobs) -> Vec<(&'static str, usize)> {
    list.counts().into_iter().collect()
}

#[test]
fn old_jobs_whose_effects_matter_stay_by_name_only() {
    let (list, jobs) = list(Effect::Write, MAX_LOADED + 10);
    assert_eq!(counts(&list), [("archived", 10), ("done", MAX_LOADED)]);
    let agent_jobs = list.of("ada");
    assert!(matches!(agent_jobs.get(&jobs[9].id), Some(JobEntry::Archived)));
    assert!(matches!(agent_jobs.get(&jobs[10].id), Some(JobEntry::Loaded(_))));
    assert_eq!(agent_jobs.by_correlation_id("mine-0"), Some(jobs[0].id.clone()));
    assert_eq!(agent_jobs.ids().len(), MAX_LOADED + 10);
}

#[test]
fn old_jobs_that_only_read_are_forgotten_with_their_other_names() {
    let (list, jobs) = list(Effect::Read, MAX_LOADED + 10);
    assert_eq!(counts(&list), [("done", MAX_LOADED)]);
    let agent_jobs = list.of("ada");
    assert!(agent_jobs.get(&jobs[9].id).is_none() && agent_jobs.by_correlation_id("mine-9").is_none());
    assert_eq!(agent_jobs.by_correlation_id("mine-10"), Some(jobs[10].id.clone()));
}

#[test]
fn results_that_are_too_large_together_are_dropped_even_from_jobs_still_held() {
    let (list, jobs) = list(Effect::Read, 8);
    for job in &jobs {
        job.update(|now| now.outcome = Some(Arc::new(Ok(Value::String("x".repeat(16 << 20))))));
        list.ended(job);
    }
    assert!(list.result_bytes() <= 64 << 20, "{}", list.result_bytes());
    let said = |job: &Job| job.now().outcome.map(|outcome| outcome.is_ok());
    assert_eq!(said(&jobs[0]), Some(false), "it says that it is no longer kept");
    assert_eq!(said(&jobs[7]), Some(true));
    assert!(list.of("ada").get(&jobs[0].id).is_none());
}

#[test]
fn a_name_that_was_used_again_stays_with_the_newer_job() {
    let (list, _) = list(Effect::Read, MAX_LOADED);
    let newer = list.accept(vec![(call(Effect::Read, 0), true)]).unwrap();
    assert_eq!(list.of("ada").by_correlation_id("mine-0"), Some(newer[0].id.clone()));
}

#[test]
fn what_is_tidied_away_is_gone_wherever_it_stood() {
    let (list, jobs) = list(Effect::Write, MAX_LOADED + 10);
    let agent_jobs = list.of("ada");
    agent_jobs.forget(&[jobs[0].id.clone(), jobs[20].id.clone(), "job-of-another".to_owned()]);
    assert_eq!(counts(&list), [("archived", 9), ("done", MAX_LOADED - 1)]);
    assert!(
        agent_jobs.by_correlation_id("mine-0").is_none()
            && agent_jobs.by_correlation_id("mine-20").is_none()
            && agent_jobs.by_correlation_id("mine-1").is_some()
    );
}

#[test]
fn listeners_learn_of_new_jobs_and_of_archived_ones() {
    let (list, listener) = (empty_list(), Arc::new(TestListener::default()));
    list.of("ada").notifier.listen(&(listener.clone() as Arc<dyn Listener>));
    let mut ids = Vec::new();
    for _ in 0..=MAX_LOADED {
        let jobs = list.accept(vec![(call(Effect::Write, ids.len()), true)]).unwrap();
        jobs[0].update(|now| now.state = JobState::Done);
        ids.push(jobs[0].id.clone());
    }
    let mut expected = vec![ids[0].clone(), "last".to_owned()];
    expected.extend_from_slice(&ids[1..]);
    expected.push(ids[0].clone());
    assert_eq!(*listener.0.lock(), expected);
}
