//! What a file says: at once, soon, or when something has happened.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use acheron_base::{Error, Result};

pub type Later<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

/// The answer to a request.
///
/// The difference between [`Soon`](Answer::Soon) and [`Later`](Answer::Later) is what a caller means who does not want
/// to wait: bytes that only have to be fetched are waited for all the same, as from any disk.
pub enum Answer<T> {
    Now(Result<T>),
    /// Ends by itself: a disk, a database, a computation.
    Soon(Later<T>),
    /// Ends when something happens.
    Later(Later<T>),
}

impl<T: Send + 'static> Answer<T> {
    pub fn ok(value: T) -> Self {
        Answer::Now(Ok(value))
    }

    pub fn refuse(error: Error) -> Self {
        Answer::Now(Err(error))
    }

    pub fn soon(future: impl Future<Output = Result<T>> + Send + 'static) -> Self {
        Answer::Soon(Box::pin(future))
    }

    pub fn later(future: impl Future<Output = Result<T>> + Send + 'static) -> Self {
        Answer::Later(Box::pin(future))
    }

    /// The same answer, changed when it is there.
    pub fn map<U: Send + 'static>(self, change: impl FnOnce(T) -> U + Send + 'static) -> Answer<U> {
        self.and(move |value| Ok(change(value)))
    }

    /// As [`map`](Self::map), where the change may fail.
    pub fn and<U: Send + 'static>(self, change: impl FnOnce(T) -> Result<U> + Send + 'static) -> Answer<U> {
        self.then(move |outcome| outcome.and_then(change))
    }

    /// As [`and`](Self::and), for a refusal too.
    pub fn then<U: Send + 'static>(self, change: impl FnOnce(Result<T>) -> Result<U> + Send + 'static) -> Answer<U> {
        match self {
            Answer::Now(outcome) => Answer::Now(change(outcome)),
            Answer::Soon(future) => Answer::soon(async move { change(future.await) }),
            Answer::Later(future) => Answer::later(async move { change(future.await) }),
        }
    }

    /// Looks once whether a future is ready: most are, and need neither a task nor a wake-up.
    pub fn looked_at(self) -> Self {
        match self {
            Answer::Now(value) => Answer::Now(value),
            Answer::Soon(mut future) => match at_once(&mut future) {
                Some(value) => Answer::Now(value),
                None => Answer::Soon(future),
            },
            Answer::Later(mut future) => match at_once(&mut future) {
                Some(value) => Answer::Now(value),
                None => Answer::Later(future),
            },
        }
    }

    /// Waits, however long it takes.
    pub async fn wait(self) -> Result<T> {
        match self {
            Answer::Now(value) => value,
            Answer::Soon(future) | Answer::Later(future) => future.await,
        }
    }

    /// Waits for what only has to be fetched; what must happen first is `busy`.
    pub async fn unless_later(self) -> Result<T> {
        match self.looked_at() {
            Answer::Now(value) => value,
            Answer::Soon(future) => future.await,
            Answer::Later(_) => Err(Error::busy("not ready yet")),
        }
    }
}

/// What `future` says if it need not wait.
pub fn at_once<T>(future: &mut Later<T>) -> Option<Result<T>> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ready_becomes_now() {
        let answer = Answer::later(async { Ok(1) }).looked_at();
        assert!(matches!(answer, Answer::Now(Ok(1))));
        let answer = Answer::<i32>::later(std::future::pending()).looked_at();
        assert!(matches!(answer, Answer::Later(_)));
    }

    #[tokio::test]
    async fn only_what_must_happen_is_busy() {
        let fetched = Answer::soon(async {
            tokio::task::yield_now().await;
            Ok(2)
        });
        assert_eq!(fetched.unless_later().await, Ok(2));
        let waits = Answer::<i32>::later(std::future::pending());
        assert_eq!(waits.unless_later().await.unwrap_err().code, acheron_base::Code::Busy);
    }
}
