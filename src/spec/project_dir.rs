//! A directory of this machine at its place in a project. The host, the sandbox of an agent and the search use this one
//! type; it uses only `acheron-base`.

use std::path::{Path, PathBuf};

use acheron_base::host_dir::{Id, Source};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectDir {
    pub project: String,
    /// Its place under the project's `fs`, as the mountspec writes it: `/` or `/docs`.
    pub at: String,
    pub source: PathBuf,
    /// The identity of the source when it was bound; `None` before that, and for a part of the mount.
    pub id: Option<Id>,
    pub read_only: bool,
    /// `None` for the search, which reads the source itself.
    pub served_by: Option<ServedBy>,
}

/// What answers requests below the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// The kernel: the directory is mounted over the tree.
    Kernel,
    /// The mount, which reads the directory.
    Mirror,
    /// The mount, and the source is a path below the mountpoint.
    Mount,
}

impl ProjectDir {
    /// Its path in the tree: `/projects/here/fs/docs`.
    pub fn path(&self) -> PathBuf {
        let below = self.at.trim_start_matches('/');
        Path::new("/projects").join(&self.project).join("fs").join(below).components().collect()
    }

    /// The path in the tree of `rel`, which is relative to the directory.
    pub fn path_of(&self, rel: &str) -> String {
        let at = self.at.trim_end_matches('/');
        let separator = if rel.is_empty() { "" } else { "/" };
        format!("/projects/{}/fs{at}{separator}{rel}", self.project)
    }

    /// The directory itself, which must be the one that was bound.
    pub fn source(&self) -> Option<Source> {
        self.id.map(|id| Source { path: self.source.clone(), id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_one_path_however_it_is_written() {
        for (at, path) in [("/", "/projects/p/fs"), ("/docs", "/projects/p/fs/docs"), ("/a/b/", "/projects/p/fs/a/b")] {
            let (project, source) = ("p".to_owned(), PathBuf::from("/srv"));
            let dir = ProjectDir {
                project,
                at: at.into(),
                source,
                id: None,
                read_only: true,
                served_by: Some(ServedBy::Kernel),
            };
            assert_eq!((dir.path(), dir.path_of("")), (path.into(), path.to_owned()));
            assert_eq!(dir.path_of("x/y"), format!("{path}/x/y"));
        }
    }
}
