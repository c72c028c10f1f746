//! Watches files of a folder for edits. Editors write in several steps, so a burst of changes is reported once. Any
//! crate may use it; it knows nothing of the use of the changes.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::error::{Error, Result};

/// The pause that ends a burst, and the longest burst.
const CALM: Duration = Duration::from_millis(50);
const AT_MOST: Duration = Duration::from_millis(500);

/// Changes are reported as long as this is held.
pub struct FileWatcher {
    _watcher: RecommendedWatcher,
}

/// Calls `changed` for every burst of edits below `folder`, on a thread of its own, until it breaks.
pub fn folder(folder: &Path, changed: impl FnMut() -> ControlFlow<()> + Send + 'static) -> Result<FileWatcher> {
    follow(folder, RecursiveMode::Recursive, |_| true, changed)
}

/// As [`folder`], for one file; also when another file replaces it, as many editors do.
pub fn file(file: &Path, changed: impl FnMut() -> ControlFlow<()> + Send + 'static) -> Result<FileWatcher> {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(Error::invalid(format!("{} is not a file", file.display())));
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let name = name.to_owned();
    follow(folder, RecursiveMode::NonRecursive, move |path| path.file_name() == Some(&name), changed)
}

fn follow(
    folder: &Path,
    mode: RecursiveMode,
    concerns: impl Fn(&Path) -> bool + Send + 'static,
    mut changed: impl FnMut() -> ControlFlow<()> + Send + 'static,
) -> Result<FileWatcher> {
    let (tell, news) = channel();
    let told = |err: notify::Error| Error::unavailable(format!("{} cannot be watched: {err}", folder.display()));
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        if event.need_rescan() || finished(event.kind) && event.paths.iter().any(|path| concerns(path)) {
            _ = tell.send(()); // the receiver may be gone
        }
    })
    .map_err(told)?;
    watcher.watch(folder, mode).map_err(told)?;
    std::thread::Builder::new().name("follow".to_owned()).spawn(move || {
        while news.recv().is_ok() {
            let begun = Instant::now();
            while begun.elapsed() < AT_MOST && news.recv_timeout(CALM).is_ok() {}
            if changed().is_break() {
                return;
            }
        }
    })?;
    Ok(FileWatcher { _watcher: watcher })
}

/// A file that was only opened for writing may still be empty: it counts when it is closed.
fn finished(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Remove(_)
            | EventKind::Modify(ModifyKind::Name(_))
            | EventKind::Create(CreateKind::Folder)
    )
}

#[cfg(test)]
mod tests;
