//! Where replies wait that cannot be given yet, each under the number of its request.
//!
//! A waiter is a future and a reply; it costs no thread and no task. Knows nothing of files.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::interrupt::Interrupts;
use super::turns::{Turn, Turns};
use acheron_base::{Code, Error, Result};
use acheron_vfs::Later;

/// Gives the answer to whoever asked.
pub trait Responder<T>: Send + 'static {
    fn tell(self, outcome: Result<T>);
}

/// Why a reply waits, and so what a signal to its caller means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For something to happen: a signal ends it.
    Happen,
    /// For bytes to be fetched: a signal ends it, but it is begun even while the mount goes down.
    Fetch,
    /// For something to be done that was already begun: it is never half done because of a signal.
    Do,
}

pub struct Parking {
    desk: Mutex<ParkedReply>,
    turns: Arc<Turns>,
}

#[derive(Default)]
struct ParkedReply {
    parked: HashMap<u64, Arc<dyn Parked>>,
    /// Interrupts that came before their request was parked; or just after it was answered, so they must be bounded.
    early: BTreeSet<u64>,
    stopped: bool,
}

/// Many more than requests that can be between their arrival and their parking.
const EARLY: usize = 1024;

trait Parked: Send + Sync {
    fn wait(&self) -> Wait;
    fn give_up(&self, error: Error);
}

impl Parking {
    pub fn new(turns: Arc<Turns>) -> Arc<Self> {
        Arc::new(Parking { desk: Mutex::default(), turns })
    }

    fn desk(&self) -> MutexGuard<'_, ParkedReply> {
        self.desk.lock()
    }

    /// Answers request `unique` when `future` is ready, or when the request is interrupted.
    pub fn park<T, R>(self: &Arc<Self>, unique: u64, wait: Wait, future: Later<T>, reply: R)
    where
        T: Send + 'static,
        R: Responder<T>,
    {
        let held = Mutex::new(Some((future, reply)));
        let waiter = Arc::new(Waiter { unique, wait, parking: self.clone(), woken: AtomicBool::new(false), held });
        let mut desk = self.desk();
        if desk.stopped && wait == Wait::Happen {
            drop(desk);
            return waiter.give_up(going_down());
        }
        if desk.early.remove(&unique) && wait != Wait::Do {
            drop(desk);
            return waiter.give_up(interrupted());
        }
        desk.parked.insert(unique, waiter.clone());
        drop(desk);
        waiter.take_turn();
    }

    pub fn parked(&self) -> usize {
        self.desk().parked.len()
    }

    /// From now on nobody may begin to wait for something to happen.
    pub fn stop(&self) {
        self.desk().stopped = true;
    }

    /// Answers everyone who is still here.
    pub fn answer_all(&self) {
        let parked = std::mem::take(&mut self.desk().parked);
        for waiter in parked.into_values() {
            waiter.give_up(going_down());
        }
    }
}

impl Interrupts for Parking {
    fn interrupted(&self, unique: u64) {
        let mut desk = self.desk();
        let waiter = match desk.parked.get(&unique).map(|waiter| waiter.wait()) {
            Some(Wait::Do) => None,
            Some(Wait::Happen | Wait::Fetch) => desk.parked.remove(&unique),
            None => {
                desk.early.insert(unique);
                if desk.early.len() > EARLY {
                    desk.early.pop_first();
                }
                None
            }
        };
        drop(desk);
        if let Some(waiter) = waiter {
            waiter.give_up(interrupted());
        }
    }
}

fn interrupted() -> Error {
    Error::interrupted("the wait was interrupted by a signal")
}

fn going_down() -> Error {
    Error::new(Code::Os(libc::ESHUTDOWN), "the mount is going down")
}

struct Waiter<T, R> {
    unique: u64,
    wait: Wait,
    parking: Arc<Parking>,
    /// Its turn will come; waking it once more changes nothing.
    woken: AtomicBool,
    /// Empty when the answer was given.
    held: Mutex<Option<(Later<T>, R)>>,
}

impl<T: Send + 'static, R: Responder<T>> Waiter<T, R> {
    fn held(&self) -> MutexGuard<'_, Option<(Later<T>, R)>> {
        self.held.lock()
    }
}

impl<T: Send + 'static, R: Responder<T>> Turn for Waiter<T, R> {
    fn take_turn(self: Arc<Self>) {
        self.woken.store(false, Ordering::SeqCst);
        let waker = Waker::from(self.clone());
        let mut held = self.held();
        let Some((future, _)) = held.as_mut() else { return };
        let looked = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        let outcome = match looked {
            Ok(Poll::Pending) => return,
            Ok(Poll::Ready(outcome)) => outcome,
            Err(_) => Err(Error::internal("the answer could not be worked out")),
        };
        let answered = held.take();
        drop(held);
        self.parking.desk().parked.remove(&self.unique);
        if let Some((_, reply)) = answered {
            reply.tell(outcome);
        }
    }
}

impl<T: Send + 'static, R: Responder<T>> Wake for Waiter<T, R> {
    fn wake(self: Arc<Self>) {
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.parking.turns.wake(self.clone());
        }
    }
}

impl<T: Send + 'static, R: Responder<T>> Parked for Waiter<T, R> {
    fn wait(&self) -> Wait {
        self.wait
    }

    fn give_up(&self, error: Error) {
        let held = self.held().take();
        if let Some((future, reply)) = held {
            // What the future does when it is dropped must not keep its reader.
            reply.tell(Err(error));
            let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    struct Heard(mpsc::UnboundedSender<Result<u32>>);

    impl Responder<u32> for Heard {
        fn tell(self, outcome: Result<u32>) {
            self.0.send(outcome).unwrap();
        }
    }

    struct Scene {
        parking: Arc<Parking>,
        say: mpsc::UnboundedSender<Result<u32>>,
        heard: mpsc::UnboundedReceiver<Result<u32>>,
    }

    fn scene() -> Scene {
        let (say, heard) = mpsc::unbounded_channel();
        Scene { parking: Parking::new(Turns::new(Handle::current())), say, heard }
    }

    impl Scene {
        fn park(&self, unique: u64, wait: Wait) -> oneshot::Sender<u32> {
            let (send, receive) = oneshot::channel();
            let future = Box::pin(async move { receive.await.map_err(|_| Error::internal("gone")) });
            self.parking.park(unique, wait, future, Heard(self.say.clone()));
            send
        }

        async fn next(&mut self) -> Result<u32, i32> {
            self.heard.recv().await.unwrap().map_err(|error| error.errno())
        }
    }

    #[tokio::test]
    async fn a_waiter_is_answered_and_leaves_nothing() {
        let mut scene = scene();
        let one = scene.park(2, Wait::Happen);
        assert_eq!(scene.parking.parked(), 1);
        one.send(7).unwrap();
        assert_eq!(scene.next().await, Ok(7));
        assert_eq!(scene.parking.parked(), 0);
    }

    #[tokio::test]
    async fn an_interrupt_ends_its_own_wait_and_no_other() {
        let mut scene = scene();
        let (one, two) = (scene.park(2, Wait::Happen), scene.park(4, Wait::Happen));
        scene.parking.interrupted(2);
        assert_eq!(scene.next().await, Err(libc::EINTR));
        assert!(one.is_closed());
        scene.parking.interrupted(2);
        two.send(1).unwrap();
        assert_eq!(scene.next().await, Ok(1));
    }

    #[tokio::test]
    async fn an_interrupt_before_the_wait_is_remembered() {
        let mut scene = scene();
        scene.parking.interrupted(2);
        let _two = scene.park(4, Wait::Happen);
        let _one = scene.park(2, Wait::Happen);
        assert_eq!(scene.next().await, Err(libc::EINTR));
        assert_eq!(scene.parking.parked(), 1);
    }

    #[tokio::test]
    async fn interrupts_of_what_was_answered_already_do_not_pile_up() {
        let scene = scene();
        (0..10_000).for_each(|unique| scene.parking.interrupted(unique * 2));
        assert_eq!(scene.parking.desk().early.len(), EARLY);
    }

    #[tokio::test]
    async fn what_is_being_done_is_not_half_done() {
        let mut scene = scene();
        let one = scene.park(2, Wait::Do);
        scene.parking.interrupted(2);
        one.send(3).unwrap();
        assert_eq!(scene.next().await, Ok(3));
    }

    #[tokio::test]
    async fn going_down_answers_everyone_and_lets_nobody_in() {
        let mut scene = scene();
        let _one = scene.park(2, Wait::Happen);
        scene.parking.stop();
        let _two = scene.park(4, Wait::Happen);
        assert_eq!(scene.next().await, Err(libc::ESHUTDOWN));
        assert_eq!(scene.parking.parked(), 1);
        let fetched = scene.park(6, Wait::Fetch);
        fetched.send(5).unwrap();
        assert_eq!(scene.next().await, Ok(5));
        scene.parking.answer_all();
        assert_eq!(scene.next().await, Err(libc::ESHUTDOWN));
        assert_eq!(scene.parking.parked(), 0);
    }

    #[tokio::test]
    async fn a_panic_while_waiting_is_an_error() {
        let mut scene = scene();
        let future: Later<u32> = Box::pin(async { panic!("on purpose") });
        scene.parking.park(2, Wait::Happen, future, Heard(scene.say.clone()));
        assert_eq!(scene.next().await, Err(libc::EIO));
    }
}
