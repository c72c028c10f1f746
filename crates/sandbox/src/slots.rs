//! Counts the sandboxes of each agent, for machines where no control group limits them together. [`start`](super::start)
//! uses it; it uses nothing.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OnceCell;

use acheron_base::{Code, Error, Result};

type Key = (String, String);

/// By host and agent: one process may contain several hosts.
static TAKEN: Mutex<BTreeMap<Key, usize>> = Mutex::new(BTreeMap::new());

/// The bytes that ended sandboxes have written, by the same.
static WRITTEN: Mutex<BTreeMap<Key, u64>> = Mutex::new(BTreeMap::new());

/// Whether control groups of this machine make the count unnecessary.
static GROUPED: OnceCell<bool> = OnceCell::const_new();

/// One sandbox of an agent. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct Slot(Key);

fn taken() -> MutexGuard<'static, BTreeMap<Key, usize>> {
    TAKEN.lock()
}

impl Slot {
    /// Takes a slot; returns the number of slots taken now.
    fn of(host: &str, agent: &str) -> (Slot, usize) {
        let key = (host.to_owned(), agent.to_owned());
        let mut taken = taken();
        let count = taken.entry(key.clone()).or_default();
        *count += 1;
        (Slot(key), *count)
    }
}

impl Slot {
    /// Counts what a sandbox has written.
    pub fn add_written(&self, bytes: u64) {
        *WRITTEN.lock().entry(self.0.clone()).or_default() += bytes;
    }

    /// The bytes that the agent may still write, of all that it may.
    pub fn left_to_write(&self, most: u64) -> Result<u64> {
        let written = WRITTEN.lock().get(&self.0).copied().unwrap_or(0);
        match most.checked_sub(written) {
            None | Some(0) => Err(Error::new(
                Code::BudgetExceeded,
                format!(
                    "the programs of this agent have written {written} bytes to its projects, and may write {most} \
                     (sandbox.agent_limits.disk_bytes in the mountspec); raise the limit, or mount again"
                ),
            )),
            Some(left) => Ok(left),
        }
    }
}

impl Drop for Slot {
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

/// Takes a slot. The first one above the limit asks `grouped` whether that matters on this machine.
pub(super) async fn take(
    host: &str,
    agent: &str,
    most: usize,
    grouped: impl Future<Output = Result<bool>>,
) -> Result<Slot> {
    let (slot, count) = Slot::of(host, agent);
    let crowded = count > most && !*GROUPED.get_or_try_init(|| grouped).await?;
    allow(slot, crowded, most)
}

fn allow(slot: Slot, crowded: bool, most: usize) -> Result<Slot> {
    match crowded {
        false => Ok(slot),
        true => Err(Error::busy(format!(
            "{most} programs of this agent are running already, and this machine has no control groups to limit more of them \
             together: wait for one to end, or close a session"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_counted_by_host_and_agent_and_freed() {
        let (first, one) = Slot::of("7.0", "ada");
        let (_second, two) = Slot::of("7.0", "ada");
        let (_other, apart) = Slot::of("7.1", "ada");
        assert_eq!((one, two, apart), (1, 2, 1));
        first.add_written(60);
        assert_eq!(first.left_to_write(100).unwrap(), 40);
        first.add_written(40);
        assert_eq!(first.left_to_write(100).unwrap_err().code, Code::BudgetExceeded);
        drop(first);
        assert_eq!(Slot::of("7.0", "ada").1, 2);
        let refused = allow(Slot::of("7.0", "bob").0, true, 2).unwrap_err();
        assert_eq!(refused.code, acheron_base::Code::Busy);
        assert!(!taken().keys().any(|(_, agent)| agent == "bob"), "a refused slot is freed");
    }
}
