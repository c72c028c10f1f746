//! Reloads the library when its folder changes. Editors write in several steps, so a burst of news is one reload.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use notify::{RecursiveMode, Watcher as _};

use super::Library;
use crate::error::{Error, Result};

/// How long a burst may pause.
const CALM: Duration = Duration::from_millis(100);

/// Watching ends when this is dropped.
pub struct Watch {
    _watcher: notify::RecommendedWatcher,
}

/// Watches the folder of a library; `reloaded` hears of each reload. A library without a folder has nothing to watch.
pub fn watch(library: &Arc<Library>, reloaded: impl Fn(&Library) + Send + 'static) -> Result<Option<Watch>> {
    let Some(folder) = library.folder().map(Path::to_owned).filter(|folder| folder.is_dir()) else { return Ok(None) };
    let (news, heard) = std::sync::mpsc::channel();
    let failed = |error: notify::Error| Error::unavailable(format!("{} cannot be watched: {error}", folder.display()));
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading is no news: the reload itself would be.
        if event.is_ok_and(|event| !event.kind.is_access()) {
            let _ = news.send(()); // nobody listens any more
        }
    })
    .map_err(failed)?;
    watcher.watch(&folder, RecursiveMode::Recursive).map_err(failed)?;
    let library: Weak<Library> = Arc::downgrade(library);
    std::thread::Builder::new().name("prompts".to_owned()).spawn(move || {
        while heard.recv().is_ok() {
            while heard.recv_timeout(CALM).is_ok() {}
            let Some(library) = library.upgrade() else { return };
            library.reload();
            reloaded(&library);
        }
    })?;
    Ok(Some(Watch { _watcher: watcher }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_edit_is_seen_without_being_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("say")).unwrap();
        std::fs::write(folder.path().join("say/hello.md"), "one").unwrap();
        let library = Arc::new(Library::open(Some(folder.path())));
        let (told, hear) = std::sync::mpsc::channel();
        let _watch = watch(&library, move |library| {
            let _ = told.send(library.render("say", "hello", &json!({})).map(|rendered| rendered.text));
        })
        .unwrap()
        .unwrap();
        std::fs::write(folder.path().join("say/hello.md"), "two").unwrap();
        // A reload may come between the truncation and the writing; the last one counts.
        let mut seen = Vec::new();
        while seen.last() != Some(&Ok("two".to_owned())) {
            seen.push(hear.recv_timeout(Duration::from_secs(60)).expect("no reload in a minute"));
        }
    }
}
