use tokio::runtime::Handle;

use super::*;

struct Recorder(usize, Arc<Mutex<Vec<usize>>>);

impl Turn for Recorder {
    fn take_turn(self: Arc<Self>) {
        self.1.lock().push(self.0);
    }
}

#[tokio::test]
async fn a_waiter_woken_by_a_request_runs_before_the_request_ends() {
    let turns = Turns::new(Handle::current());
    let order = Arc::new(Mutex::new(Vec::new()));
    turns.serve_request(|| {
        turns.wake(Arc::new(Recorder(1, order.clone())));
        assert!(order.lock().is_empty());
        run_local();
        assert_eq!(*order.lock(), [1]);
        turns.wake(Arc::new(Recorder(2, order.clone())));
    });
    assert_eq!(*order.lock(), [1, 2]);
}

#[tokio::test]
async fn waiters_beyond_the_limit_run_in_a_task() {
    let turns = Turns::new(Handle::current());
    let order = Arc::new(Mutex::new(Vec::new()));
    turns.serve_request(|| (0..1000).for_each(|i| turns.wake(Arc::new(Recorder(i, order.clone())))));
    assert_eq!(order.lock().len(), BATCH);
    while order.lock().len() < 1000 {
        tokio::task::yield_now().await;
    }
    assert!(order.lock().is_sorted());
    turns.wake(Arc::new(Recorder(1000, order.clone())));
    while order.lock().len() < 1001 {
        tokio::task::yield_now().await;
    }
}
