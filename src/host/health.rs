//! The faults of a running host, as they were last seen: `meta/health.json` shows them without waiting for anything.
//!
//! Used by `meta`, `edit` and `Host`. What can take time, a disk or a server, is looked at by tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use super::{HostState, presence};
use crate::spec::SymbolsBackend;

/// The time between two questions to a server whether it answers.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// The faults that were seen last.
#[derive(Default)]
pub struct HostHealth {
    /// Directories of projects that could not be opened when they were bound.
    directories: RwLock<Vec<String>>,
    /// Programs that could not be started when they were last looked at.
    programs: RwLock<Vec<String>>,
    /// Held by the one that looks at programs: what is shown last was found by the last that looked.
    turn: Mutex<()>,
    /// Whether a task looks at programs again.
    looking: AtomicBool,
    /// Why the server of the symbols does not answer.
    symbols: RwLock<Option<String>>,
}

impl HostHealth {
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.directories.read().clone();
        faults.extend(self.programs.read().iter().cloned());
        faults.extend(self.symbols.read().iter().map(|why| format!("symbols: {why}")));
        faults
    }
}

/// Looks at the disk: at mount and after an edit.
pub fn look(host: &HostState) {
    let spec = host.current.spec();
    let mut directories: Vec<String> =
        presence::directories(&spec, &host.paths.here).iter().map(ToString::to_string).collect();
    // What is there may still not be shown: it lies in the mount, or behind a link that an agent made.
    directories.extend(host.projects.faults());
    directories.extend(host.views.faults());
    *host.health.directories.write() = directories;
    look_at_programs(host);
}

fn look_at_programs(host: &HostState) {
    let _turn = host.health.turn.lock();
    let faults = presence::programs(&host.current.spec(), &host.paths.here);
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let before = host.health.programs.read().clone();
    for fault in faults.iter().filter(|fault| !before.contains(fault)) {
        tracing::warn!(fault, "a program of the mountspec cannot be started");
    }
    *host.health.programs.write() = faults;
}

/// Looks again, in the background, at programs that were missing: one that is there by now can be called.
pub fn look_again(host: &Arc<HostState>) {
    if host.health.programs.read().is_empty() || host.health.looking.swap(true, Ordering::AcqRel) {
        return;
    }
    let looked = host.clone();
    host.context.runtime.spawn_blocking(move || {
        look_at_programs(&looked);
        looked.health.looking.store(false, Ordering::Release);
    });
}

/// Asks the server of the symbols now and then whether it answers, as long as the host lives.
pub fn follow_symbols(host: &Arc<HostState>) {
    if host.current.mounted_with.symbols.backend != SymbolsBackend::Redis {
        return;
    }
    let weak = Arc::downgrade(host);
    host.context.runtime.spawn(async move {
        while let Some(symbols) = weak.upgrade().map(|host| host.shared.symbols.clone()) {
            let why = symbols.backend().answers().await.err().map(|error| error.message);
            drop(symbols);
            match weak.upgrade() {
                Some(host) => *host.health.symbols.write() = why,
                None => return,
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    });
}
