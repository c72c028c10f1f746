//! Channels made of loom's locks: each operation is one step.

/// `std::sync::mpsc`. loom's own channel does not tell its receiver that all senders are gone.
pub mod mpsc {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::sync::mpsc::{RecvError, SendError};

    use super::super::{Condvar, Mutex};

    struct Channel<T> {
        state: Mutex<ChannelState<T>>,
        changed: Condvar,
    }

    struct ChannelState<T> {
        queue: VecDeque<T>,
        sender: bool,
        receiver: bool,
    }

    pub struct Sender<T>(Arc<Channel<T>>);
    pub struct Receiver<T>(Arc<Channel<T>>);

    pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
        let state = ChannelState { queue: VecDeque::new(), sender: true, receiver: true };
        let channel = Arc::new(Channel { state: Mutex::new(state), changed: Condvar::default() });
        (Sender(channel.clone()), Receiver(channel))
    }

    impl<T> Sender<T> {
        pub fn send(&self, value: T) -> Result<(), SendError<T>> {
            let mut state = self.0.state.lock();
            if !state.receiver {
                return Err(SendError(value));
            }
            state.queue.push_back(value);
            self.0.changed.notify_one();
            Ok(())
        }
    }

    impl<T> Drop for Sender<T> {
        fn drop(&mut self) {
            self.0.state.lock().sender = false;
            self.0.changed.notify_one();
        }
    }

    impl<T> Receiver<T> {
        pub fn recv(&self) -> Result<T, RecvError> {
            let mut state = self.0.state.lock();
            loop {
                match state.queue.pop_front() {
                    Some(value) => return Ok(value),
                    None if !state.sender => return Err(RecvError),
                    None => self.0.changed.wait(&mut state),
                }
            }
        }

        pub fn try_iter(&self) -> impl Iterator<Item = T> {
            std::iter::from_fn(|| self.0.state.lock().queue.pop_front())
        }
    }

    impl<T> Drop for Receiver<T> {
        fn drop(&mut self) {
            let mut state = self.0.state.lock();
            state.receiver = false;
            let rest = std::mem::take(&mut state.queue);
            drop(state);
            drop(rest);
        }
    }
}

/// `tokio::sync::oneshot`.
pub mod oneshot {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use super::super::Mutex;

    struct OnceState<T> {
        value: Option<T>,
        waker: Option<Waker>,
        sender: bool,
        receiver: bool,
    }

    pub struct Sender<T>(Arc<Mutex<OnceState<T>>>);
    pub struct Receiver<T>(Arc<Mutex<OnceState<T>>>);

    /// The sender is gone.
    #[derive(Debug)]
    pub struct Gone;

    pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
        let state = OnceState { value: None, waker: None, sender: true, receiver: true };
        let state = Arc::new(Mutex::new(state));
        (Sender(state.clone()), Receiver(state))
    }

    impl<T> Sender<T> {
        pub fn send(self, value: T) -> Result<(), T> {
            let mut state = self.0.lock();
            match state.receiver {
                true => state.value = Some(value),
                false => return Err(value),
            }
            Ok(()) // its drop wakes the receiver
        }
    }

    impl<T> Drop for Sender<T> {
        fn drop(&mut self) {
            let mut state = self.0.lock();
            state.sender = false;
            let waker = state.waker.take();
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    impl<T> Future for Receiver<T> {
        type Output = Result<T, Gone>;

        fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Gone>> {
            let mut state = self.0.lock();
            match state.value.take() {
                Some(value) => Poll::Ready(Ok(value)),
                None if !state.sender => Poll::Ready(Err(Gone)),
                None => {
                    state.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        }
    }

    impl<T> Drop for Receiver<T> {
        fn drop(&mut self) {
            self.0.lock().receiver = false;
        }
    }
}
