//! Counts the sandboxes of each agent, for machines where no control group limits them together. [`start`](super::start)
//! uses it; it uses nothing.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OnceCell;

use super::limits::AgentLimits;
use super::protocol::UsedDisk;
use acheron_base::{Code, Error, Result};

type Key = (String, String);

/// By host and agent: one process may contain several hosts.
static TAKEN: Mutex<BTreeMap<Key, usize>> = Mutex::new(BTreeMap::new());

/// What ended sandboxes have used of the disks, by the same.
static USED: Mutex<BTreeMap<Key, UsedDisk>> = Mutex::new(BTreeMap::new());

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
    /// Counts what a sandbox has used.
    pub fn add_used(&self, used: UsedDisk) {
        let mut all = USED.lock();
        let sum = all.entry(self.0.clone()).or_default();
        (sum.bytes, sum.files) = (sum.bytes.saturating_add(used.bytes), sum.files.saturating_add(used.files));
    }

    /// What the agent may still use, of all that it may.
    pub fn left(&self, limits: &AgentLimits) -> Result<UsedDisk> {
        let used = USED.lock().get(&self.0).copied().unwrap_or_default();
        Ok(UsedDisk {
            bytes: left("written", "bytes", "disk_bytes", used.bytes, limits.disk_bytes)?,
            files: left("made", "files and directories", "disk_files", used.files, limits.disk_files)?,
        })
    }
}

fn left(done: &str, what: &str, name: &str, used: u64, most: u64) -> Result<u64> {
    most.checked_sub(used).filter(|left| *left > 0).ok_or_else(|| {
        Error::new(
            Code::BudgetExceeded,
            format!(
                "the programs of this agent have {done} {used} {what} in its projects, and {most} are allowed \
                 (sandbox.agent_limits.{name} in the mountspec); raise the limit, or mount again"
            ),
        )
    })
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
        let limits = AgentLimits { disk_bytes: 100, disk_files: 10, ..AgentLimits::default() };
        first.add_used(UsedDisk { bytes: 60, files: 4 });
        assert_eq!(first.left(&limits).unwrap(), UsedDisk { bytes: 40, files: 6 });
        first.add_used(UsedDisk { bytes: 0, files: 6 });
        let refused = first.left(&limits).unwrap_err();
        assert_eq!(refused.code, Code::BudgetExceeded);
        assert!(refused.message.contains("sandbox.agent_limits.disk_files"), "{refused}");
        first.add_used(UsedDisk { bytes: 40, files: 0 });
        assert!(first.left(&limits).unwrap_err().message.contains("sandbox.agent_limits.disk_bytes"));
        drop(first);
        assert_eq!(Slot::of("7.0", "ada").1, 2);
        let refused = allow(Slot::of("7.0", "bob").0, true, 2).unwrap_err();
        assert_eq!(refused.code, acheron_base::Code::Busy);
        assert!(!taken().keys().any(|(_, agent)| agent == "bob"), "a refused slot is freed");
    }
}
