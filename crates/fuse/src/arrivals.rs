//! The requests that were read from the kernel and not served yet. The kernel hands them over in the order in which they
//! came, so that one caller with hundreds of threads would be served hundreds of times before another; here callers take
//! turns. The session uses it; it knows nothing of descriptors.

use super::fair_queue::FairQueue;
use acheron_vfs::Identity;

/// The limit of messages. One process waits for each of them, so it is beyond the number of threads that a sandbox may
/// have; what does not fit waits in the kernel.
pub const MOST: usize = 4096;
/// The limit of bytes in all messages.
const MOST_BYTES: usize = 16 << 20;

/// The caller of a request, as far as it is known when the request arrives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sender {
    /// A principal.
    Known(Identity),
    /// A thread that was not seen before.
    Unknown,
    /// No process: the kernel itself, when a file is closed or forgotten.
    Kernel,
}

#[derive(Default)]
pub struct Arrivals {
    queue: FairQueue<Sender, Box<[u8]>>,
    bytes: usize,
}

impl Arrivals {
    pub fn push(&mut self, sender: Sender, message: &[u8]) {
        self.bytes += message.len();
        self.queue.push(sender, message.into());
    }

    /// Whether no further message may be read.
    pub fn is_full(&self) -> bool {
        self.queue.len() >= MOST || self.bytes >= MOST_BYTES
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The message whose turn it is.
    pub fn pop(&mut self) -> Option<(Sender, Box<[u8]>)> {
        let (sender, message) = self.queue.pop()?;
        self.bytes -= message.len();
        Some((sender, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_another_caller_does_not_wait_for_hundreds() {
        let mut arrivals = Arrivals::default();
        let [many, one] = ["many", "one"].map(|name| Sender::Known(Identity::named(name)));
        (0..400_u16).for_each(|number| arrivals.push(many.clone(), &number.to_ne_bytes()));
        arrivals.push(one.clone(), b"ls");
        let first: Vec<Sender> = (0..3).filter_map(|_| arrivals.pop()).map(|(sender, _)| sender).collect();
        assert_eq!(first, [many.clone(), one, many]);
    }

    #[test]
    fn it_is_bounded_by_number_and_by_bytes() {
        let mut arrivals = Arrivals::default();
        (0..MOST).for_each(|_| arrivals.push(Sender::Unknown, b"x"));
        assert!(arrivals.is_full());
        while arrivals.pop().is_some() {}
        assert!(arrivals.is_empty() && !arrivals.is_full());
        arrivals.push(Sender::Kernel, &vec![0; MOST_BYTES]);
        assert!(arrivals.is_full());
    }
}
