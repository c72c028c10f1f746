use serde_json::json;

use super::*;
use crate::state::TestStore;

fn job(id: &str) -> JobRow {
    JobRow {
        id: id.into(),
        agent: "charon".into(),
        service: "memory".into(),
        operation: "create".into(),
        effect: "write".into(),
        idempotent: false,
        state: JobState::Queued,
        correlation_id: Some(format!("c-{id}")),
        principal: "operator".into(),
        request: json!({"kind": "note", "content": null}),
        result: None,
        error: None,
        created_at_ms: 10,
        started_at_ms: None,
        updated_at_ms: 10,
        attempt: 0,
        approval: None,
    }
}

#[test]
fn a_job_is_read_as_it_was_written() {
    let store = TestStore::new();
    let ended = JobRow {
        state: JobState::Failed,
        result: Some(json!("text")),
        error: Some(Error::conflict("stale")),
        started_at_ms: Some(11),
        ..job("a")
    };
    let written = ended.clone();
    store.write_blocking(move |tx| insert(tx, &written)).unwrap();
    assert_eq!(store.look(|conn| get(conn, "a")).unwrap(), Some(ended.clone()));
    assert_eq!(store.look(|conn| correlated(conn, "charon", "c-a")).unwrap(), Some(ended));
    assert_eq!(store.look(|conn| correlated(conn, "other", "c-a")).unwrap(), None);
    assert_eq!(store.look(|conn| get(conn, "b")).unwrap(), None);
}

#[test]
fn the_first_ending_counts() {
    let store = TestStore::new();
    let seen = store.write_blocking(|tx| {
        insert(tx, &job("a"))?;
        let said = json!({"n": 1});
        let mut seen = vec![begin(tx, "a", 20)?, begin(tx, "a", 21)?];
        seen.push(settle(tx, "a", JobState::Done, Some(&said), None, 30)?);
        seen.push(settle(tx, "a", JobState::Cancelled, None, None, 31)?);
        seen.push(settle(tx, "nobody", JobState::Done, None, None, 31)?);
        assert!(settle(tx, "a", JobState::Running, None, None, 32).is_err());
        Ok(seen)
    });
    assert_eq!(seen.unwrap(), [true, false, true, false, false]);
    let job = store.look(|conn| get(conn, "a")).unwrap().unwrap();
    assert_eq!((job.state, job.attempt, job.started_at_ms, job.updated_at_ms), (JobState::Done, 1, Some(20), 30));
    assert_eq!(job.result, Some(json!({"n": 1})));
}

#[test]
fn what_was_running_is_interrupted_unless_it_may_run_again() {
    let store = TestStore::new();
    let found = store.write_blocking(|tx| {
        for (id, idempotent) in [("a", false), ("b", true), ("c", false), ("d", false)] {
            insert(tx, &JobRow { idempotent, ..job(id) })?;
        }
        for id in ["a", "b", "d"] {
            begin(tx, id, 20)?;
        }
        settle(tx, "d", JobState::Done, None, None, 25)?;
        recover(tx, &BTreeMap::new(), 30)
    });
    let found = found.unwrap();
    let ids = |jobs: &[JobRow]| jobs.iter().map(|job| job.id.clone()).collect::<Vec<_>>().join(" ");
    assert_eq!((ids(&found.ended), ids(&found.queued)), ("a".into(), "b c".into()));
    let after = store.look(|conn| get(conn, "a")).unwrap().unwrap();
    assert_eq!(after, found.ended[0]);
    assert_eq!(store.write_blocking(|tx| recover(tx, &BTreeMap::new(), 40)).unwrap().ended, []);
}

#[test]
fn what_was_told_to_stop_is_found_with_the_reason_whatever_it_was_doing() {
    let store = TestStore::new();
    let found = store.write_blocking(|tx| {
        for id in ["a", "b", "c"] {
            insert(tx, &job(id))?;
        }
        begin(tx, "b", 20)?;
        settle(tx, "c", JobState::Done, None, None, 25)?;
        for id in ["a", "b", "c"] {
            stop(tx, id, &Error::cancelled("enough"))?;
        }
        recover(tx, &BTreeMap::new(), 30)
    });
    let found = found.unwrap();
    let reasons: Vec<_> = found.queued.iter().map(|job| (job.id.as_str(), job.error.is_some())).collect();
    assert_eq!((reasons, found.ended), (vec![("a", true), ("b", true)], vec![]));
    assert_eq!(store.look(|conn| get(conn, "c")).unwrap().unwrap().error, None, "it had ended before");
}

#[test]
fn retention_keeps_the_young_the_newest_and_the_unfinished() {
    let store = TestStore::new();
    let fill = |tx: &Tx<'_>| {
        for n in 0..10u64 {
            let state = if n == 3 { JobState::Running } else { JobState::Done };
            insert(tx, &JobRow { state, updated_at_ms: n, ..job(&format!("j{n}")) })?;
        }
        Ok(())
    };
    store.write_blocking(fill).unwrap();
    let gone = |before, batch| store.write_blocking(move |tx| prune(tx, before, batch)).unwrap().join(" ");
    assert_eq!(gone(2, 1), "j0");
    assert_eq!(gone(2, 1), "j1");
    assert_eq!(gone(2, 1), "");
    let beyond = |keep| store.look(|conn| beyond(conn, keep, u64::MAX)).unwrap().join(" ");
    assert_eq!(beyond(4), "j5 j4 j2");
    assert_eq!(beyond(100), "");
    assert!(store.look(|conn| get(conn, "j9")).unwrap().is_some());
}

#[test]
fn a_state_has_the_same_name_in_json_and_in_the_journal() {
    for state in JobState::ALL {
        assert_eq!(serde_json::to_value(state).unwrap(), json!(state.name()));
        assert_eq!(JobState::named(state.name()).unwrap(), state);
    }
}

#[test]
fn the_oldest_jobs_of_an_agent_with_too_many_bytes_are_found_and_no_others() {
    let store = TestStore::new();
    let fill = |tx: &Tx<'_>| {
        let result = Some(json!("x".repeat(1000)));
        for n in 0..10u64 {
            let state = if n == 3 { JobState::Running } else { JobState::Done };
            insert(tx, &JobRow { state, result: result.clone(), ..job(&format!("j{n}")) })?;
        }
        insert(tx, &JobRow { agent: "styx".into(), state: JobState::Done, result, ..job("a0") })
    };
    store.write_blocking(fill).unwrap();
    let many = store.look(|conn| beyond(conn, 1, u64::MAX)).unwrap();
    assert_eq!((many.len(), many.contains(&"a0".to_owned())), (8, false), "counted for each agent");
    let beyond = |bytes| store.look(|conn| beyond(conn, 100, bytes)).unwrap();
    assert_eq!(beyond(20_000), [""; 0]);
    assert_eq!(beyond(6_500), ["j2", "j1", "j0"]);
    store.write_blocking(move |tx| remove(tx, &["j2".into(), "j1".into()])).unwrap();
    assert!(store.look(|conn| get(conn, "j1")).unwrap().is_none());
}
