//! Hears when somebody edits files of a folder. Editors write in several steps, so a burst of news is one.
//!
//! Knows nothing of what is done with the news.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::error::{Error, Result};

/// How long a burst may pause, and how long it may last until it is told.
const CALM: Duration = Duration::from_millis(50);
const AT_MOST: Duration = Duration::from_millis(500);

/// ChangeKind comes as long as this is held.
pub struct Following {
    _watcher: RecommendedWatcher,
}

/// Tells `heard` of every burst of edits below `folder`, on a thread of its own, until it breaks.
pub fn folder(folder: &Path, heard: impl FnMut() -> ControlFlow<()> + Send + 'static) -> Result<Following> {
    follow(folder, RecursiveMode::Recursive, |_| true, heard)
}

/// As [`folder`], for one file: also when it is replaced by another, as many editors do when they save.
pub fn file(file: &Path, heard: impl FnMut() -> ControlFlow<()> + Send + 'static) -> Result<Following> {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(Error::invalid(format!("{} is not a file", file.display())));
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let name = name.to_owned();
    follow(folder, RecursiveMode::NonRecursive, move |path| path.file_name() == Some(&name), heard)
}

fn follow(
    folder: &Path,
    mode: RecursiveMode,
    concerns: impl Fn(&Path) -> bool + Send + 'static,
    mut heard: impl FnMut() -> ControlFlow<()> + Send + 'static,
) -> Result<Following> {
    let (tell, news) = channel();
    let told = |err: notify::Error| Error::unavailable(format!("{} cannot be watched: {err}", folder.display()));
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        if event.need_rescan() || finished(event.kind) && event.paths.iter().any(|path| concerns(path)) {
            _ = tell.send(()); // nobody listens any more
        }
    })
    .map_err(told)?;
    watcher.watch(folder, mode).map_err(told)?;
    std::thread::Builder::new().name("follow".to_owned()).spawn(move || {
        while news.recv().is_ok() {
            let begun = Instant::now();
            while begun.elapsed() < AT_MOST && news.recv_timeout(CALM).is_ok() {}
            if heard().is_break() {
                return;
            }
        }
    })?;
    Ok(Following { _watcher: watcher })
}

/// A file that is only opened for writing may still be empty: what counts is that it was closed.
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
mod tests {
    use super::*;
    use std::fs;
    use std::sync::mpsc::Receiver;

    fn heard() -> (Receiver<()>, impl FnMut() -> ControlFlow<()>) {
        let (tell, news) = channel();
        (news, move || if tell.send(()).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }

    #[test]
    fn a_file_is_followed_when_it_is_written_and_when_it_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spec.json");
        fs::write(&path, "1").unwrap();
        let (news, tell) = heard();
        let _following = file(&path, tell).unwrap();
        fs::write(&path, "2").unwrap();
        news.recv_timeout(Duration::from_secs(60)).expect("it was written");
        fs::write(folder.path().join("other"), "3").unwrap();
        fs::rename(folder.path().join("other"), &path).unwrap();
        news.recv_timeout(Duration::from_secs(60)).expect("it was replaced");
    }

    #[test]
    fn other_files_of_its_folder_are_no_news() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spec.json");
        fs::write(&path, "1").unwrap();
        let (news, tell) = heard();
        let following = file(&path, tell).unwrap();
        fs::write(folder.path().join("other"), "3").unwrap();
        drop(following); // what was heard until now is told, and the thread ends
        assert_eq!(news.iter().count(), 0);
    }

    #[test]
    fn a_folder_is_followed_with_all_below_it() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("a")).unwrap();
        let (news, tell) = heard();
        let _following = folder(top.path(), tell).unwrap();
        fs::write(top.path().join("a/b"), "1").unwrap();
        news.recv_timeout(Duration::from_secs(60)).expect("something was written");
    }
}
