//! How many sandboxes an agent has at once, which matters where no control group holds them together.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

use tokio::sync::OnceCell;

use acheron_base::{Error, Result};

type Key = (String, String);

/// By host and agent: a process may be more than one host.
static TAKEN: Mutex<BTreeMap<Key, usize>> = Mutex::new(BTreeMap::new());

/// Whether this machine's control groups do what we would do here by counting.
static HELD: OnceCell<bool> = OnceCell::const_new();

/// One sandbox among those of its agent. Dropping it makes room for another.
#[derive(Debug)]
pub(super) struct Seat(Key);

fn taken() -> MutexGuard<'static, BTreeMap<Key, usize>> {
    TAKEN.lock()
}

impl Seat {
    /// Takes one more, and says how many there are now.
    fn of(host: &str, agent: &str) -> (Seat, usize) {
        let key = (host.to_owned(), agent.to_owned());
        let mut taken = taken();
        let count = taken.entry(key.clone()).or_default();
        *count += 1;
        (Seat(key), *count)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = taken();
        if let Some(count) = taken.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.0);
            }
        }
    }
}

/// Takes a seat. The first to be one too many asks `held` whether that matters on this machine.
pub(super) async fn take(
    host: &str,
    agent: &str,
    most: usize,
    held: impl Future<Output = Result<bool>>,
) -> Result<Seat> {
    let (seat, count) = Seat::of(host, agent);
    let crowded = count > most && !*HELD.get_or_try_init(|| held).await?;
    allow(seat, crowded, most)
}

fn allow(seat: Seat, crowded: bool, most: usize) -> Result<Seat> {
    match crowded {
        false => Ok(seat),
        true => Err(Error::busy(format!(
            "{most} programs of this agent run at once already, and this machine has no control groups to hold more of them \
             together; wait for one to end or close a session"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_counted_by_host_and_agent_and_given_back() {
        let (first, one) = Seat::of("7.0", "ada");
        let (_second, two) = Seat::of("7.0", "ada");
        let (_other, apart) = Seat::of("7.1", "ada");
        assert_eq!((one, two, apart), (1, 2, 1));
        drop(first);
        assert_eq!(Seat::of("7.0", "ada").1, 2);
        let refused = allow(Seat::of("7.0", "bob").0, true, 2).unwrap_err();
        assert_eq!(refused.code, acheron_base::Code::Busy);
        assert!(!taken().keys().any(|(_, agent)| agent == "bob"), "a refused seat is free");
    }
}
