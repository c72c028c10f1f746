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
