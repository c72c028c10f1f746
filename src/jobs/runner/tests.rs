use super::*;
use crate::jobs::JobCall;
use crate::policy::Principal;
use crate::state::{TestStore, jobs as journal};
use acheron_base::{Clock, Ids, Random};

fn call(idempotent: bool) -> JobCall {
    JobCall {
        agent: "ada".into(),
        service: "bench".into(),
        operation: "hang".into(),
        effect: Effect::Execute,
        idempotent,
        private: false,
        correlation_id: None,
        principal: Principal::Operator,
        arguments: Value::Null,
    }
}

#[test]
fn there_is_room_for_all_of_several_calls_or_they_wait() {
    let queue = CallQueue::new(2, 1);
    assert!(queue.is_free(2) && !queue.is_free(3));
    (0..5).for_each(|_| queue.readmit());
    assert!(queue.admit(1).is_err());
    queue.release(3);
    assert!(queue.admit(1).is_ok(), "what was let in again was counted");
}

/// Shuts down a host with one job and returns the journal's record of that job.
async fn left(idempotent: bool, running: bool) -> String {
    let store = TestStore::new();
    let jobs = Arc::new(Jobs::new(Arc::new((*store).clone()), Ids::new(Clock::real(), Random::real())));
    let (accepted, safe) = jobs.accept(vec![call(idempotent)], false).unwrap();
    safe.wait().await.unwrap();
    let (job, queue) = (accepted[0].clone(), Arc::new(CallQueue::new(usize::from(running), 1)));
    let (began, begun) = tokio::sync::oneshot::channel();
    let work = move || -> JobWork {
        _ = began.send(());
        Box::pin(std::future::pending())
    };
    let (of, slots, of_store) = (jobs.clone(), queue.clone(), (*store).clone());
    let running_job = job.clone();
    let task = tokio::spawn(async move {
        let mut published = false;
        let task = Task { work, deadline: Duration::from_secs(600) };
        let publish = |JobEnd { job, now, change }: JobEnd| {
            published = true;
            let written = of_store.write(move |tx| change.map_or(Ok(()), |change| change(tx)));
            Answer::soon(written).map(move |()| JobEnd::show(&job, now))
        };
        run(&of, &slots, running_job, task, publish).await;
        published
    });
    if running {
        begun.await.unwrap();
    }
    job.shut_down();
    let published = task.await.unwrap();
    let kept = store.look(|conn| journal::get(conn, &job.id)).unwrap().unwrap();
    format!("{} published={published} {}", kept.state.name(), kept.error.map_or(String::new(), |error| error.message))
}

#[tokio::test]
async fn a_host_that_shuts_down_leaves_jobs_that_its_next_start_can_run() {
    assert_eq!(left(false, false).await, "queued published=false ");
    assert_eq!(left(true, true).await, "running published=false ");
    assert_eq!(left(false, true).await, "interrupted published=true the host was shut down");
}
