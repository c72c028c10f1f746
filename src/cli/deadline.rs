//! A host that is told to end ends, also one that hangs: a thread of its own hears the same signals, and waits for nothing
//! that the rest of the program holds. `acheron mount` uses it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::select_all;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{sleep, timeout};

use acheron_base::{Error, Result};

/// The time to end in; shorter than `acheron unmount` waits.
const PATIENCE: Duration = Duration::from_secs(10);
/// A signal within this time after the first is the same wish: a terminal that is closed sends several.
const SAME: Duration = Duration::from_secs(1);
/// The time that the last steps have, each of which might hang, too.
const LAST: Duration = Duration::from_secs(2);

/// The signals that end a host.
pub fn signals() -> Result<Vec<Signal>> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];
    Ok(kinds.into_iter().map(signal).collect::<std::io::Result<_>>()?)
}

/// Waits for any of them.
pub async fn heard(signals: &mut [Signal]) {
    select_all(signals.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
}

/// From now on a signal ends this process within [`PATIENCE`], a second one at once. What was acknowledged is on the disk;
/// the mount is detached.
pub fn watch(mountpoint: &Path) -> Result<()> {
    let mountpoint = mountpoint.to_owned();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::Builder::new().name("deadline".to_owned()).spawn(move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(tell.send(Err(error.into()))),
        };
        runtime.block_on(async {
            let mut signals = match signals() {
                Ok(signals) => signals,
                Err(error) => return drop(tell.send(Err(error))),
            };
            _ = tell.send(Ok(()));
            told_to_end(&mut signals).await;
            give_up(mountpoint);
        });
    })?;
    told.recv().map_err(|_| Error::internal("the thread that waits for signals has ended"))?
}

/// Returns when the time after a first signal is over, or at a second one.
async fn told_to_end(signals: &mut [Signal]) {
    heard(signals).await;
    let again = async {
        sleep(SAME).await;
        // What came meanwhile is heard at once, and was the same wish.
        while timeout(Duration::ZERO, heard(signals)).await.is_ok() {}
        heard(signals).await;
    };
    _ = timeout(PATIENCE, again).await;
}

/// Detaches the mount and ends the process, whatever its other threads do.
fn give_up(mountpoint: PathBuf) {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mounts = acheron_fuse::mounts_of("acheron").unwrap_or_default();
        for mount in mounts.iter().filter(|mount| mount.path == mountpoint) {
            // One that has gone meanwhile is no fault.
            _ = acheron_fuse::force_unmount(mount);
        }
        tracing::error!("the host hung when it was told to end: its mount was detached, and it was ended");
        _ = tell.send(());
    });
    _ = told.recv_timeout(LAST);
    // No destructor and no lock is waited for.
    _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGKILL);
}
