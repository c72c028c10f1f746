//! Work goes on beside work that is stuck.

use std::sync::mpsc;

use super::*;

#[test]
fn work_continues_beside_stuck_work_and_after_a_panic() {
    let pool = Arc::new(Pool::default());
    let (let_go, stuck) = mpsc::channel::<()>();
    let (say, heard) = mpsc::channel();
    pool.run("a", move || stuck.recv().unwrap());
    pool.run("a", || panic!("on purpose"));
    for number in 0..100 {
        let say = say.clone();
        pool.run("a", move || say.send(number).unwrap());
    }
    let mut done: Vec<i32> = heard.iter().take(100).collect();
    done.sort_unstable();
    assert!(done.into_iter().eq(0..100));
    assert!(pool.state().threads <= THREADS);
    let_go.send(()).unwrap();
}

#[test]
fn a_caller_whose_work_is_stuck_leaves_threads_for_others() {
    let pool = Arc::new(Pool::default());
    let (let_go, stuck) = mpsc::channel::<()>();
    let stuck = Arc::new(Mutex::new(stuck));
    let (say, heard) = mpsc::channel();
    for _ in 0..THREADS * 2 {
        let stuck = stuck.clone();
        pool.run("many", move || stuck.lock().recv().unwrap());
    }
    pool.run("one", move || say.send(()).unwrap());
    heard.recv_timeout(Duration::from_secs(60)).unwrap();
    (0..THREADS * 2).for_each(|_| let_go.send(()).unwrap());
    // What waited for a thread of its caller's share is done too.
    let (say, heard) = mpsc::channel();
    pool.run("many", move || say.send(()).unwrap());
    heard.recv_timeout(Duration::from_secs(60)).unwrap();
}
