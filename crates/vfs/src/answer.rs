//! The answer to a request: immediate, soon, or when an event occurs. Uses nothing of the tree.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use acheron_base::{Error, Result};

/// The future behind an answer that is not there yet.
pub type Later<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

/// The answer to a request.
///
/// [`Soon`](Answer::Soon) and [`Later`](Answer::Later) differ for a caller that asked not to wait (`O_NONBLOCK`): it
/// still waits for bytes that only have to be fetched, as it would for a disk, but not for an event.
pub enum Answer<T> {
    /// The outcome is known.
    Now(Result<T>),
    /// Ends by itself: a disk, a database, a computation.
    Soon(Later<T>),
    /// Ends when an event occurs, which may be never.
    Later(Later<T>),
}

impl<T: Send + 'static> Answer<T> {
    /// An immediate success.
    #[inline]
    pub fn ok(value: T) -> Self {
        Answer::Now(Ok(value))
    }

    /// An immediate failure.
    #[inline]
    pub fn refuse(error: Error) -> Self {
        Answer::Now(Err(error))
    }

    /// An answer that ends by itself.
    #[inline]
    pub fn soon(future: impl Future<Output = Result<T>> + Send + 'static) -> Self {
        Answer::Soon(Box::pin(future))
    }

    /// An answer that ends when an event occurs.
    #[inline]
    pub fn later(future: impl Future<Output = Result<T>> + Send + 'static) -> Self {
        Answer::Later(Box::pin(future))
    }

    /// Converts the value of a success.
    #[inline]
    pub fn map<U: Send + 'static>(self, change: impl FnOnce(T) -> U + Send + 'static) -> Answer<U> {
        self.and(move |value| Ok(change(value)))
    }

    /// Converts the value of a success; the conversion may fail.
    #[inline]
    pub fn and<U: Send + 'static>(self, change: impl FnOnce(T) -> Result<U> + Send + 'static) -> Answer<U> {
        self.then(move |outcome| outcome.and_then(change))
    }

    /// Converts the outcome, success or failure.
    #[inline]
    pub fn then<U: Send + 'static>(self, change: impl FnOnce(Result<T>) -> Result<U> + Send + 'static) -> Answer<U> {
        match self {
            Answer::Now(outcome) => Answer::Now(change(outcome)),
            Answer::Soon(future) => Answer::soon(async move { change(future.await) }),
            Answer::Later(future) => Answer::later(async move { change(future.await) }),
        }
    }

    /// Polls a future once. Most are ready then, and need neither a task nor a wake-up.
    #[inline]
    pub fn poll_once(self) -> Self {
        match self {
            Answer::Now(value) => Answer::Now(value),
            Answer::Soon(mut future) => match poll_ready(&mut future) {
                Some(value) => Answer::Now(value),
                None => Answer::Soon(future),
            },
            Answer::Later(mut future) => match poll_ready(&mut future) {
                Some(value) => Answer::Now(value),
                None => Answer::Later(future),
            },
        }
    }

    /// Waits without a time limit.
    pub async fn wait(self) -> Result<T> {
        match self {
            Answer::Now(value) => value,
            Answer::Soon(future) | Answer::Later(future) => future.await,
        }
    }

    /// Waits for an answer that ends by itself; one that needs an event is refused as `busy`.
    pub async fn ready_or_busy(self) -> Result<T> {
        match self.poll_once() {
            Answer::Now(value) => value,
            Answer::Soon(future) => future.await,
            Answer::Later(_) => Err(Error::busy("not ready yet")),
        }
    }
}

/// The outcome of `future`, if it is ready.
#[inline]
fn poll_ready<T>(future: &mut Later<T>) -> Option<Result<T>> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_future_becomes_an_immediate_answer() {
        let answer = Answer::later(async { Ok(1) }).poll_once();
        assert!(matches!(answer, Answer::Now(Ok(1))));
        let answer = Answer::<i32>::later(std::future::pending()).poll_once();
        assert!(matches!(answer, Answer::Later(_)));
    }

    #[tokio::test]
    async fn only_an_answer_that_needs_an_event_is_busy() {
        let fetched = Answer::soon(async {
            tokio::task::yield_now().await;
            Ok(2)
        });
        assert_eq!(fetched.ready_or_busy().await, Ok(2));
        let waits = Answer::<i32>::later(std::future::pending());
        assert_eq!(waits.ready_or_busy().await.unwrap_err().code, acheron_base::Code::Busy);
    }
}
