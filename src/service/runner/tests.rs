use super::*;
use crate::contract::Effect;
use crate::jobs::JobState;
use crate::policy::Principal;
use crate::service::test_access::AllowAll;
use crate::service::test_context::test_context;
use crate::state::{TestStore, jobs as journal};
use acheron_base::Clock;

fn call(effect: Effect, idempotent: bool) -> Call {
    Call {
        agent: "ada".into(),
        service: "bench".into(),
        operation: "go".into(),
        effect,
        idempotent,
        private: false,
        correlation_id: None,
        principal: Principal::Operator,
        arguments: Value::Null,
        asks: false,
    }
}

fn hangs(began: tokio::sync::oneshot::Sender<()>) -> Work {
    let start = move |_| -> JobWork {
        _ = began.send(());
        Box::pin(std::future::pending())
    };
    Work::Run(RunWork { start: Box::new(start), deadline: Duration::from_secs(600), quick: false, turn: None })
}

/// Shuts down a host with one job and returns the journal's record of that job.
async fn left(idempotent: bool, running: bool) -> String {
    let store = TestStore::new();
    let context = test_context(&store, Clock::real(), Arc::new(AllowAll));
    let queue = Arc::new(CallQueue::new(usize::from(running), 1));
    let (began, begun) = tokio::sync::oneshot::channel();
    let planned = PlannedCall { call: call(Effect::Execute, idempotent), work: hangs(began), accepted: None };
    let job = context.runner.begin(&queue, vec![planned], |_| ()).wait().await.unwrap().remove(0);
    if running {
        begun.await.unwrap();
    }
    job.shut_down();
    job.end().await;
    let kept = store.look(|conn| journal::get(conn, &job.id)).unwrap().unwrap();
    let told = context.event_logs.of("ada").unwrap().last() > 0;
    format!("{} told={told} {}", kept.state.name(), kept.error.map_or(String::new(), |error| error.message))
}

#[tokio::test]
async fn a_host_that_shuts_down_leaves_jobs_that_its_next_start_can_run() {
    assert_eq!(left(false, false).await, "queued told=false ");
    assert_eq!(left(true, true).await, "running told=false ");
    assert_eq!(left(false, true).await, "interrupted told=true the host was shut down");
}

/// Writes a row of its own, then does what it is told.
fn writes(end: impl FnOnce() -> Result<Value> + Send + 'static) -> PlannedCall {
    let work: WriteWork = Box::new(move |commit, job| {
        commit.tx().execute("INSERT INTO settings (key, value) VALUES (?1, 'x')", [&job.id])?;
        end()
    });
    PlannedCall { call: call(Effect::Write, false), work: Work::Write(work), accepted: None }
}

#[tokio::test]
async fn a_write_its_job_and_its_event_are_one_commit_and_a_failed_one_is_undone_alone() {
    let store = TestStore::new();
    store.write_blocking(|tx| Ok(tx.execute_batch("CREATE TABLE settings (key TEXT, value TEXT)")?)).unwrap();
    let context = test_context(&store, Clock::real(), Arc::new(AllowAll));
    let queue = Arc::new(CallQueue::new(8, 8));
    let planned =
        vec![writes(|| Ok(Value::Bool(true))), writes(|| Err(Error::conflict("no"))), writes(|| panic!("on purpose"))];
    let before = store.commits();
    let jobs = context.runner.begin(&queue, planned, |_| ()).wait().await.unwrap();
    assert_eq!(store.commits() - before, 1);
    let states: Vec<JobState> = jobs.iter().map(|job| job.now().state).collect();
    assert_eq!(states, [JobState::Done, JobState::Failed, JobState::Failed]);
    let kept: Vec<String> = store
        .look(|conn| {
            let mut select = conn.prepare("SELECT key FROM settings")?;
            let keys = select.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
            Ok(keys)
        })
        .unwrap();
    assert_eq!(kept, [jobs[0].id.clone()]);
    for job in &jobs {
        let row = store.look(|conn| journal::get(conn, &job.id)).unwrap().unwrap();
        assert_eq!(row.state, job.now().state);
    }
    assert_eq!(context.event_logs.of("ada").unwrap().last(), 3);
}

/// A call that changes a file once it is let go on, and then waits again before it ends.
fn changes_a_file(
    context: &Arc<crate::service::ServiceContext>,
    dir: &std::path::Path,
    go: tokio::sync::oneshot::Receiver<()>,
    end: tokio::sync::oneshot::Receiver<()>,
) -> PlannedCall {
    let (runner, dir) = (context.runner.clone(), dir.to_owned());
    let start = move |job: Arc<Job>| -> JobWork {
        let work = acheron_base::blocking(move || {
            _ = go.blocking_recv();
            let place = acheron_base::ConfinedDir::open(dir)?;
            let change = acheron_base::confined_dir::FileChange::write("page.md", "new");
            runner.change_files(&job, &place, vec![change], Value::from("changed"))?;
            _ = end.blocking_recv();
            Ok(Value::from("changed"))
        });
        Box::pin(work)
    };
    let work = RunWork { start: Box::new(start), deadline: Duration::from_secs(600), quick: false, turn: None };
    PlannedCall { call: call(Effect::Execute, false), work: Work::Run(work), accepted: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_has_changed_its_files_ends_well_even_if_it_is_cancelled_then() {
    let (store, dir) = (TestStore::new(), tempfile::tempdir().unwrap());
    let context = test_context(&store, Clock::real(), Arc::new(AllowAll));
    let (go, gone) = tokio::sync::oneshot::channel();
    let (end, ended) = tokio::sync::oneshot::channel();
    let planned = changes_a_file(&context, dir.path(), gone, ended);
    let queue = Arc::new(CallQueue::new(1, 1));
    let job = context.runner.begin(&queue, vec![planned], |_| ()).wait().await.unwrap().remove(0);
    go.send(()).unwrap();
    while !dir.path().join("page.md").exists() {
        tokio::task::yield_now().await;
    }
    job.cancel.cancel();
    end.send(()).unwrap();
    job.end().await;
    assert_eq!(job.now().state, JobState::Done);
    assert_eq!(store.look(crate::state::file_plans::all).unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_cancelled_changes_no_file_afterwards() {
    let (store, dir) = (TestStore::new(), tempfile::tempdir().unwrap());
    let context = test_context(&store, Clock::real(), Arc::new(AllowAll));
    let (go, gone) = tokio::sync::oneshot::channel();
    let (mut end, ended) = tokio::sync::oneshot::channel();
    let planned = changes_a_file(&context, dir.path(), gone, ended);
    let queue = Arc::new(CallQueue::new(1, 1));
    let job = context.runner.begin(&queue, vec![planned], |_| ()).wait().await.unwrap().remove(0);
    job.cancel.cancel();
    job.end().await;
    assert_eq!(job.now().state, JobState::Cancelled);
    // Its thread goes on, and drops its receiver when it is over.
    // A call that had not begun has dropped its end.
    _ = go.send(());
    end.closed().await;
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
