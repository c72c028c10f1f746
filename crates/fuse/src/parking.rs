//! Replies that cannot be given yet, each under the number of its request. A waiter is a future and a reply; it costs
//! no thread and no task. The server uses it; it knows nothing of files.

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

/// Sends the answer to the kernel.
pub trait Responder<T>: Send + 'static {
    fn respond(self, outcome: Result<T>);
}

/// What a reply waits for. It decides the effect of a signal to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// An event: a signal ends the wait.
    Event,
    /// A fetch that ends by itself: a signal ends the wait, but it may begin even while the mount is being unmounted.
    Fetch,
    /// A change in progress: a signal does not interrupt it.
    Change,
}

pub struct Parking {
    state: Mutex<ParkingState>,
    turns: Arc<Turns>,
}

#[derive(Default)]
struct ParkingState {
    parked: HashMap<u64, Arc<dyn Parked>>,
    /// Interrupts that arrived before their request was parked, or just after it was answered; so their number must be
    /// bounded.
    early: BTreeSet<u64>,
    stopped: bool,
}

/// Far more than the requests that can be between their arrival and their parking.
const EARLY: usize = 1024;

trait Parked: Send + Sync {
    fn wait(&self) -> Wait;
    fn give_up(&self, error: Error);
}

impl Parking {
    pub fn new(turns: Arc<Turns>) -> Arc<Self> {
        Arc::new(Parking { state: Mutex::default(), turns })
    }

    fn state(&self) -> MutexGuard<'_, ParkingState> {
        self.state.lock()
    }

    /// Answers request `unique` when `future` is ready, or when the request is interrupted.
    pub fn park<T, R>(self: &Arc<Self>, unique: u64, wait: Wait, future: Later<T>, reply: R)
    where
        T: Send + 'static,
        R: Responder<T>,
    {
        let held = Mutex::new(Some((future, reply)));
        let waiter = Arc::new(Waiter { unique, wait, parking: self.clone(), woken: AtomicBool::new(false), held });
        let mut state = self.state();
        if state.stopped && wait == Wait::Event {
            drop(state);
            return waiter.give_up(unmounting());
        }
        if state.early.remove(&unique) && wait != Wait::Change {
            drop(state);
            return waiter.give_up(interrupted());
        }
        state.parked.insert(unique, waiter.clone());
        drop(state);
        waiter.take_turn();
    }

    pub fn parked(&self) -> usize {
        self.state().parked.len()
    }

    /// Refuses every new wait for an event.
    pub fn stop(&self) {
        self.state().stopped = true;
    }

    /// Answers every parked request with an error.
    pub fn answer_all(&self) {
        let parked = std::mem::take(&mut self.state().parked);
        for waiter in parked.into_values() {
            waiter.give_up(unmounting());
        }
    }
}

impl Interrupts for Parking {
    fn interrupted(&self, unique: u64) {
        let mut state = self.state();
        let waiter = match state.parked.get(&unique).map(|waiter| waiter.wait()) {
            Some(Wait::Change) => None,
            Some(Wait::Event | Wait::Fetch) => state.parked.remove(&unique),
            None => {
                state.early.insert(unique);
                if state.early.len() > EARLY {
                    state.early.pop_first();
                }
                None
            }
        };
        drop(state);
        if let Some(waiter) = waiter {
            waiter.give_up(interrupted());
        }
    }
}

fn interrupted() -> Error {
    Error::interrupted("the wait was interrupted by a signal")
}

fn unmounting() -> Error {
    Error::new(Code::Os(libc::ESHUTDOWN), "the file system is being unmounted")
}

struct Waiter<T, R> {
    unique: u64,
    wait: Wait,
    parking: Arc<Parking>,
    /// Its turn is already queued: another wake-up has no effect.
    woken: AtomicBool,
    /// Empty once the answer was given.
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
            Err(_) => Err(Error::internal("the answer could not be computed")),
        };
        let answered = held.take();
        drop(held);
        self.parking.state().parked.remove(&self.unique);
        if let Some((_, reply)) = answered {
            reply.respond(outcome);
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
            // Dropping the future may take time; the reader must not wait for that.
            reply.respond(Err(error));
            let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    struct Recorder(mpsc::UnboundedSender<Result<u32>>);

    impl Responder<u32> for Recorder {
        fn respond(self, outcome: Result<u32>) {
            self.0.send(outcome).unwrap();
        }
    }

    struct Scene {
        parking: Arc<Parking>,
        say: mpsc::UnboundedSender<Result<u32>>,
        changed: mpsc::UnboundedReceiver<Result<u32>>,
    }

    fn scene() -> Scene {
        let (say, changed) = mpsc::unbounded_channel();
        Scene { parking: Parking::new(Turns::new(Handle::current())), say, changed }
    }

    impl Scene {
        fn park(&self, unique: u64, wait: Wait) -> oneshot::Sender<u32> {
            let (send, receive) = oneshot::channel();
            let future = Box::pin(async move { receive.await.map_err(|_| Error::internal("gone")) });
            self.parking.park(unique, wait, future, Recorder(self.say.clone()));
            send
        }

        async fn next(&mut self) -> Result<u32, i32> {
            self.changed.recv().await.unwrap().map_err(|error| error.errno())
        }
    }

    #[tokio::test]
    async fn an_answered_waiter_leaves_nothing_behind() {
        let mut scene = scene();
        let one = scene.park(2, Wait::Event);
        assert_eq!(scene.parking.parked(), 1);
        one.send(7).unwrap();
        assert_eq!(scene.next().await, Ok(7));
        assert_eq!(scene.parking.parked(), 0);
    }

    #[tokio::test]
    async fn an_interrupt_ends_its_own_wait_and_no_other() {
        let mut scene = scene();
        let (one, two) = (scene.park(2, Wait::Event), scene.park(4, Wait::Event));
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
        let _two = scene.park(4, Wait::Event);
        let _one = scene.park(2, Wait::Event);
        assert_eq!(scene.next().await, Err(libc::EINTR));
        assert_eq!(scene.parking.parked(), 1);
    }

    #[tokio::test]
    async fn interrupts_of_what_was_answered_already_do_not_pile_up() {
        let scene = scene();
        (0..10_000).for_each(|unique| scene.parking.interrupted(unique * 2));
        assert_eq!(scene.parking.state().early.len(), EARLY);
    }

    #[tokio::test]
    async fn a_change_in_progress_is_not_interrupted() {
        let mut scene = scene();
        let one = scene.park(2, Wait::Change);
        scene.parking.interrupted(2);
        one.send(3).unwrap();
        assert_eq!(scene.next().await, Ok(3));
    }

    #[tokio::test]
    async fn unmounting_answers_every_waiter_and_refuses_new_ones() {
        let mut scene = scene();
        let _one = scene.park(2, Wait::Event);
        scene.parking.stop();
        let _two = scene.park(4, Wait::Event);
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
        scene.parking.park(2, Wait::Event, future, Recorder(scene.say.clone()));
        assert_eq!(scene.next().await, Err(libc::EIO));
    }
}
