//! Reloads the library when its folder changes.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Weak};

use super::Library;
use acheron_base::Result;
use acheron_base::watch::FileWatcher;

/// Follows the folder of a library; `reloaded` is called after each reload. A library without a folder has nothing to follow.
pub fn watch(library: &Arc<Library>, reloaded: impl Fn(&Library) + Send + 'static) -> Result<Option<FileWatcher>> {
    let Some(folder) = library.folder().map(Path::to_owned).filter(|folder| folder.is_dir()) else { return Ok(None) };
    let library: Weak<Library> = Arc::downgrade(library);
    let following = acheron_base::watch::folder(&folder, move || {
        let Some(library) = library.upgrade() else { return ControlFlow::Break(()) };
        library.reload();
        reloaded(&library);
        ControlFlow::Continue(())
    })?;
    Ok(Some(following))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn an_edit_is_seen_without_being_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("say")).unwrap();
        std::fs::write(folder.path().join("say/hello.md"), "one").unwrap();
        let library = Arc::new(Library::open(Some(folder.path())));
        let (told, take_reply) = std::sync::mpsc::channel();
        let _watch = watch(&library, move |library| {
            let _ = told.send(library.render("say", "hello", &json!({})).map(|rendered| rendered.text));
        })
        .unwrap()
        .unwrap();
        std::fs::write(folder.path().join("say/hello.md"), "two").unwrap();
        let mut seen = Vec::new();
        while seen.last() != Some(&Ok("two".to_owned())) {
            seen.push(take_reply.recv_timeout(Duration::from_secs(60)).expect("no reload in a minute"));
        }
    }
}
