//! The memories that the directory shows, cached: a listing never waits for a disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;

use super::rows::MemoryEntry;
use acheron_base::Clock;
use acheron_vfs::{ChangeNotifier, STARTED};

/// The memories of one agent that are not deleted.
pub struct LiveMemories {
    slots: RwLock<BTreeMap<String, Arc<Slot>>>,
    changed: RwLock<SystemTime>,
    clock: Clock,
    /// Rings when a memory comes or goes.
    pub notifier: Arc<ChangeNotifier>,
}

/// One memory; the same one from its making to its deletion.
pub struct Slot {
    pub name: String,
    entry: RwLock<MemoryEntry>,
    /// Rings when there is a new version.
    pub content: ChangeNotifier,
    /// Rings with the name of each new version.
    pub versions: Arc<ChangeNotifier>,
}

impl Slot {
    fn new(entry: MemoryEntry) -> Arc<Slot> {
        let name = entry.name.clone();
        Arc::new(Slot { name, entry: RwLock::new(entry), content: ChangeNotifier::default(), versions: Arc::default() })
    }

    pub fn now(&self) -> MemoryEntry {
        self.entry.read().clone()
    }

    pub fn modified(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.now().written_at_ms)
    }
}

impl LiveMemories {
    pub fn new(entries: Vec<MemoryEntry>, clock: Clock) -> LiveMemories {
        let there = entries.into_iter().filter(|entry| !entry.deleted);
        let slots = there.map(|entry| (entry.name.clone(), Slot::new(entry))).collect();
        LiveMemories { slots: RwLock::new(slots), changed: RwLock::new(STARTED), clock, notifier: Arc::default() }
    }

    pub fn get(&self, name: &str) -> Option<Arc<Slot>> {
        self.slots.read().get(name).cloned()
    }

    pub fn names(&self) -> Vec<String> {
        self.slots.read().keys().cloned().collect()
    }

    pub fn count(&self) -> usize {
        self.slots.read().len()
    }

    /// When a memory last came or went.
    pub fn changed(&self) -> SystemTime {
        *self.changed.read()
    }

    /// Shows a memory as it is since the last commit. Called in the order of commits.
    pub fn note(&self, entry: MemoryEntry) {
        let name = entry.name.clone();
        let mut slots = self.slots.write();
        match slots.get(&name).cloned() {
            Some(slot) if !entry.deleted => {
                drop(slots);
                let version = entry.version;
                let before = std::mem::replace(&mut *slot.entry.write(), entry);
                if before.version != version {
                    slot.content.bytes();
                    slot.versions.name(&version.to_string());
                }
                return;
            }
            Some(_) => drop(slots.remove(&name)),
            None if entry.deleted => return,
            None => drop(slots.insert(name.clone(), Slot::new(entry))),
        }
        drop(slots);
        *self.changed.write() = self.clock.now();
        self.notifier.name(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, version: u64, deleted: bool) -> MemoryEntry {
        MemoryEntry { name: name.into(), version, bytes: 3, written_at_ms: 5, deleted, write_protected: false }
    }

    #[test]
    fn memories_come_change_and_go() {
        let live = LiveMemories::new(vec![entry("a", 1, false), entry("gone", 2, true)], Clock::at(1));
        assert_eq!(live.names(), ["a"]);
        let slot = live.get("a").unwrap();
        live.note(entry("a", 2, false));
        assert_eq!(slot.now().version, 2, "who holds it sees it change");
        live.note(entry("b", 1, false));
        live.note(entry("a", 3, true));
        live.note(entry("never", 1, true));
        assert_eq!(live.names(), ["b"]);
    }
}
