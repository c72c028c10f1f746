//! The files of a project as a resource: a snapshot is a copy beside the project, a restore makes the project like it.
//!
//! Links are not copied. One that is new is removed by a restore, one that changed stays as it is.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Resource;
use acheron_base::confined_dir::{ConfinedDir, Kind};
use acheron_base::{Error, Result};

/// A larger project cannot be taken back, and a tool that could spoil it is not run.
const BYTES: u64 = 64 << 20;
const NAMES: usize = 20_000;

pub struct ProjectFiles {
    /// The directory, if it may be written now: rules and binds may have changed since the last time.
    project: Box<dyn Fn() -> Result<OpenedProject> + Send + Sync>,
    copies: ConfinedDir,
    /// Gives each copy a name of its own.
    fresh: Box<dyn Fn() -> String + Send + Sync>,
}

/// The directory of a project, and the paths in it that stay as they are: they are neither copied nor taken back.
pub struct OpenedProject {
    pub directory: ConfinedDir,
    pub kept: Vec<String>,
}

impl OpenedProject {
    fn keeps(&self, path: &str) -> bool {
        self.kept.iter().any(|kept| Path::new(path).starts_with(kept))
    }

    /// Whether something in a directory stays, and so the directory.
    fn keeps_in(&self, path: &str) -> bool {
        self.kept.iter().any(|kept| Path::new(kept).starts_with(path) && self.directory.exists(kept).unwrap_or(true))
    }
}

/// The header of a copy; the bytes of the files follow in this order.
#[derive(Serialize, Deserialize)]
struct CopyHeader {
    dirs: Vec<String>,
    links: Vec<String>,
    files: Vec<(String, u64)>,
}

struct ProjectCopy {
    head: CopyHeader,
    bytes: BTreeMap<String, Vec<u8>>,
}

impl ProjectFiles {
    /// `project` opens the directory anew for each use.
    pub fn new(
        project: impl Fn() -> Result<OpenedProject> + Send + Sync + 'static,
        copies: ConfinedDir,
        fresh: impl Fn() -> String + Send + Sync + 'static,
    ) -> ProjectFiles {
        // A directory may be replaced by a link between the check and the read or write.
        let project = move || {
            let OpenedProject { directory, kept } = project()?;
            Ok(OpenedProject { directory: directory.without_links(), kept })
        };
        ProjectFiles { project: Box::new(project), copies, fresh: Box::new(fresh) }
    }

    fn look(project: &OpenedProject) -> Result<ProjectCopy> {
        let mut head = CopyHeader { dirs: Vec::new(), links: Vec::new(), files: Vec::new() };
        let mut bytes = BTreeMap::new();
        let mut left = BYTES;
        for entry in project.directory.walk("")? {
            let path = entry.name;
            if project.keeps(&path) {
                continue;
            }
            if head.dirs.len() + head.links.len() + head.files.len() >= NAMES {
                return Err(Error::too_large(format!("a project of more than {NAMES} names cannot be rolled back")));
            }
            match entry.kind {
                Kind::Dir => head.dirs.push(path),
                Kind::Link => head.links.push(path),
                Kind::Other => {}
                Kind::File => {
                    let content = project.directory.read_up_to(&path, left).map_err(|_| {
                        Error::too_large(format!("a project of more than {BYTES} bytes cannot be rolled back"))
                    })?;
                    left -= content.len() as u64;
                    head.files.push((path.clone(), content.len() as u64));
                    bytes.insert(path, content);
                }
            }
        }
        Ok(ProjectCopy { head, bytes })
    }

    fn open(&self, snapshot: &Value) -> Result<ProjectCopy> {
        let lost = || Error::invalid("this is not a snapshot of a project's files");
        let name = snapshot.get("copy").and_then(Value::as_str).ok_or_else(lost)?;
        let all = self.copies.read_up_to(name, 2 * BYTES)?;
        let end = all.iter().position(|&byte| byte == b'\n').ok_or_else(lost)?;
        let head: CopyHeader = serde_json::from_slice(&all[..end]).map_err(|_| lost())?;
        let mut bytes = BTreeMap::new();
        let mut at = end + 1;
        for (path, size) in &head.files {
            let size = usize::try_from(*size).map_err(|_| lost())?;
            let content = at.checked_add(size).and_then(|next| all.get(at..next)).ok_or_else(lost)?;
            bytes.insert(path.clone(), content.to_vec());
            at += size;
        }
        Ok(ProjectCopy { head, bytes })
    }
}

impl Resource for ProjectFiles {
    fn snapshot(&self) -> Result<Option<Value>> {
        let copied = Self::look(&(self.project)()?)?;
        let mut all = serde_json::to_vec(&copied.head).map_err(|error| Error::internal(error.to_string()))?;
        all.push(b'\n');
        for (path, _) in &copied.head.files {
            all.extend(&copied.bytes[path]);
        }
        let name = (self.fresh)();
        self.copies.write(&name, &all)?;
        Ok(Some(json!({"copy": name, "files": copied.head.files.len()})))
    }

    fn prepare(&self, snapshot: &Value) -> Result<()> {
        (self.project)()?;
        self.open(snapshot).map(drop)
    }

    fn restore(&self, snapshot: &Value) -> Result<()> {
        let project = (self.project)()?;
        let (mut was, is) = (self.open(snapshot)?, Self::look(&project)?);
        // What is protected now may not have been when the copy was made.
        was.bytes.retain(|path, _| !project.keeps(path));
        was.head.dirs.retain(|path| !project.keeps(path));
        let directory = &project.directory;
        for path in is.head.files.iter().map(|(path, _)| path).filter(|path| !was.bytes.contains_key(*path)) {
            directory.remove(path)?;
        }
        for path in is.head.links.iter().filter(|path| !was.head.links.contains(path)) {
            directory.remove(path)?;
        }
        // Deepest first, so that each is empty when its turn comes.
        let gone = is.head.dirs.iter().rev().filter(|path| !was.head.dirs.contains(path));
        for path in gone.filter(|path| !project.keeps_in(path)) {
            directory.remove(path)?;
        }
        for path in &was.head.dirs {
            directory.make_dir(path)?;
        }
        for (path, content) in &was.bytes {
            if is.bytes.get(path) != Some(content) {
                directory.write(path, content)?;
            }
        }
        Ok(())
    }

    fn forget(&self, snapshot: &Value) {
        if let Some(name) = snapshot.get("copy").and_then(Value::as_str) {
            let _ = self.copies.remove(name); // a copy too many does no harm
        }
    }
}
