//! The tools on a mounted tree, for programs outside of this process.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::perform::{EntryKind, ListedEntry, ReadBytes, ToolBackend};
use super::tagged::{job_of, tagged};
use super::{FileWrite, cannot_be_made};
use acheron_base::{Code, Error, Result, blocking};
use acheron_vfs::Smallest;

pub struct MountTools {
    root: PathBuf,
    /// Generates correlation ids.
    id: Arc<dyn Fn() -> String + Send + Sync>,
}

impl MountTools {
    pub fn new(root: impl Into<PathBuf>, id: Arc<dyn Fn() -> String + Send + Sync>) -> Self {
        MountTools { root: root.into(), id }
    }

    /// Resolves a path of the namespace. `..` stops at the root, as in the tree.
    fn place(&self, path: &str) -> MountPath {
        let mut inner: Vec<&std::ffi::OsStr> = Vec::new();
        for part in Path::new(path).components() {
            match part {
                Component::Normal(name) => inner.push(name),
                Component::ParentDir => _ = inner.pop(),
                _ => (),
            }
        }
        MountPath { root: self.root.clone(), inner: inner.iter().collect() }
    }
}

/// A path below the root.
struct MountPath {
    root: PathBuf,
    inner: PathBuf,
}

impl MountPath {
    /// Opens the path. A link that leads out of the root, or out of its project, is not followed: it may have been
    /// created by someone who works in the project, and would be followed with the rights of the caller.
    fn open(&self, flags: OFlags) -> std::io::Result<OwnedFd> {
        let root = rustix::fs::open(&self.root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        match self.in_project(&root) {
            Some((project, inner)) => {
                beneath(&beneath(&root, &project, OFlags::PATH | OFlags::DIRECTORY)?, &inner, flags)
            }
            None => beneath(&root, &self.inner, flags),
        }
    }

    /// Opens a file to read or write it. A pipe is refused where opening it would wait for the other end, perhaps for ever:
    /// anybody who works in a project can put one there. What is opened is what was looked at.
    fn open_file(&self, flags: OFlags) -> std::io::Result<File> {
        if flags.contains(OFlags::NONBLOCK) {
            return Ok(File::from(self.open(flags)?));
        }
        let found = self.open(OFlags::PATH)?;
        let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
        if kind == rustix::fs::FileType::Fifo {
            return Err(std::io::Error::new(ErrorKind::InvalidInput, PIPE));
        }
        let again = format!("/proc/self/fd/{}", found.as_raw_fd());
        Ok(File::from(rustix::fs::open(again, flags | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// The root of the project's files and the path below it, also for names of the tree that lead there.
    fn in_project(&self, root: &OwnedFd) -> Option<(PathBuf, PathBuf)> {
        // `projects/<project>/fs`, or `agents/<agent>/<name>`: this many names belong to the tree.
        const OWN: usize = 3;
        let top: PathBuf = self.inner.components().take(OWN).collect();
        let path = |held: &OwnedFd| fs::read_link(format!("/proc/self/fd/{}", held.as_raw_fd())).ok();
        let held = beneath(root, &top, OFlags::PATH).ok()?;
        let real = path(&held)?.strip_prefix(path(root)?).ok()?.to_owned();
        let project: PathBuf = real.components().take(OWN).collect();
        let inside = project.starts_with("projects") && project.ends_with("fs") && project.components().count() == OWN;
        let rest: PathBuf = real.components().chain(self.inner.components().skip(OWN)).skip(OWN).collect();
        inside.then_some((project, rest))
    }

    /// Creates missing parent directories.
    fn make_parents(&self) -> std::io::Result<()> {
        let mut above: Vec<&Path> = self.inner.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty()).collect();
        above.reverse();
        for inner in above {
            let (Some(parent), Some(name)) = (inner.parent(), inner.file_name()) else { continue };
            let parent = MountPath { root: self.root.clone(), inner: parent.to_owned() };
            match rustix::fs::mkdirat(parent.open(OFlags::PATH | OFlags::DIRECTORY)?, name, Mode::from_raw_mode(0o755))
            {
                Ok(()) | Err(Errno::EXIST) => (),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}

fn beneath(dir: &OwnedFd, inner: &Path, flags: OFlags) -> std::io::Result<OwnedFd> {
    let inner = if inner.as_os_str().is_empty() { Path::new(".") } else { inner };
    let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o644) } else { Mode::empty() };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    loop {
        match rustix::fs::openat2(dir, inner, flags | OFlags::CLOEXEC, mode, resolve) {
            // A rename on the way causes EAGAIN; so does a file that is not ready.
            Err(Errno::AGAIN) if !flags.contains(OFlags::NONBLOCK) => (),
            Err(Errno::INTR) => (),
            opened => return Ok(opened?),
        }
    }
}

/// The file with the reason of a refusal, for a control file.
fn status_of(path: &str) -> Option<String> {
    let (dir, file) = path.rsplit_once("/control/")?;
    (!file.contains('/')).then(|| format!("{dir}/status.json"))
}

/// The sentence in `status.json`, if it is about this error: another caller may have been refused since.
fn refusal(status: &MountPath, error: &std::io::Error) -> Option<Error> {
    let mut text = String::new();
    status.open_file(OFlags::NONBLOCK).ok()?.take(MAX_STATUS).read_to_string(&mut text).ok()?;
    let status: serde_json::Value = serde_json::from_str(&text).ok()?;
    let refusal: Error = serde_json::from_value(status.get("error")?.clone()).ok()?;
    (Some(refusal.errno()) == error.raw_os_error()).then_some(refusal)
}

/// The most of `status.json` that is read.
const MAX_STATUS: u64 = 1 << 20;

const PIPE: &str = "it is a pipe, which may wait for ever; set wait_until_ready to false";

fn wait_flags(wait: bool) -> OFlags {
    if wait { OFlags::empty() } else { OFlags::NONBLOCK }
}

fn explained(path: &str) -> impl Fn(std::io::Error) -> Error {
    let path = path.to_owned();
    move |error| {
        let code = match error.raw_os_error() {
            None if error.kind() == ErrorKind::InvalidInput => Code::InvalidPayload,
            Some(libc::EINVAL) => Code::InvalidPayload,
            Some(libc::EOPNOTSUPP) => Code::UnknownOperation,
            Some(libc::ECANCELED) => Code::Cancelled,
            Some(libc::ENXIO) => Code::Unavailable,
            Some(libc::ESTALE) => Code::Conflict,
            Some(libc::EXDEV) => return Error::forbidden(format!("`{path}` leads out of the tree, or of its project")),
            _ => {
                let Error { code, message } = error.into();
                return Error::new(code, format!("`{path}`: {message}"));
            }
        };
        Error::new(code, format!("`{path}`: {error}"))
    }
}

#[async_trait]
impl ToolBackend for MountTools {
    async fn read(&self, path: &str, max: usize, wait: bool) -> Result<ReadBytes> {
        let (place, path) = (self.place(path), path.to_owned());
        blocking(move || {
            let file = place.open_file(wait_flags(wait)).map_err(explained(&path))?;
            let mut bytes = Vec::new();
            file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(explained(&path))?;
            let more = bytes.len() > max;
            bytes.truncate(max);
            Ok(ReadBytes { bytes, more })
        })
        .await
    }

    async fn write(&self, call: &FileWrite) -> Result<Option<String>> {
        let (place, call) = (self.place(&call.path), call.clone());
        let tagged = tagged(&call.path, &call.content, &(self.id)());
        let link = tagged.as_ref().map(|(_, link)| self.place(link));
        let status = status_of(&call.path).map(|status| self.place(&status));
        blocking(move || {
            let explain = explained(&call.path);
            let refused =
                |error| status.as_ref().and_then(|status| refusal(status, &error)).unwrap_or_else(|| explain(error));
            if call.create_parents {
                place.make_parents().map_err(&explain)?;
            }
            let how = if call.append { OFlags::APPEND } else { OFlags::TRUNC };
            let how = how | OFlags::WRONLY | wait_flags(call.wait_until_ready);
            let mut file = match place.open_file(how) {
                Err(missing) if missing.kind() == ErrorKind::NotFound => {
                    // A pipe that was put there meanwhile is not waited for.
                    let made = place.open(how | OFlags::CREATE | OFlags::NONBLOCK);
                    let made = made.map_err(|error| match error.raw_os_error() {
                        Some(libc::EPERM | libc::EACCES) => cannot_be_made(&call.path),
                        _ => explain(error),
                    })?;
                    if call.wait_until_ready {
                        rustix::fs::fcntl_setfl(&made, how).map_err(|errno| explain(errno.into()))?;
                    }
                    File::from(made)
                }
                opened => opened.map_err(&refused)?,
            };
            let content = tagged.as_ref().map_or(&call.content, |(content, _)| content);
            file.write_all(content.as_bytes()).map_err(&refused)?;
            // Regular files are acknowledged by fsync, and control files refuse what is incomplete; a device knows no fsync.
            match file.sync_all() {
                Err(error)
                    if status.is_some() || !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) =>
                {
                    return Err(refused(error));
                }
                _ => drop(file),
            }
            let target = link.and_then(|link| fs::read_link(link.root.join(link.inner)).ok());
            Ok(target.and_then(|target| job_of(&target.to_string_lossy())))
        })
        .await
    }

    async fn list(&self, path: &str, most: usize) -> Result<Vec<ListedEntry>> {
        let (place, path) = (self.place(path), path.to_owned());
        blocking(move || {
            let held = place.open(OFlags::DIRECTORY).map_err(explained(&path))?;
            let here = format!("/proc/self/fd/{}", held.as_raw_fd());
            // Stat only the names that are returned: there may be a million.
            let mut names = Smallest::new(most);
            for entry in fs::read_dir(&here).map_err(explained(&path))? {
                names.take(entry.map_err(explained(&path))?.file_name());
            }
            let shown = |name: std::ffi::OsString| {
                let meta = fs::symlink_metadata(Path::new(&here).join(&name)).ok()?; // it may be gone meanwhile
                let name = name.to_string_lossy().into_owned();
                Some(match meta.file_type() {
                    kind if kind.is_dir() => ListedEntry { name, kind: EntryKind::Directory, size: 0 },
                    kind if kind.is_symlink() => ListedEntry { name, kind: EntryKind::Link, size: 0 },
                    _ => ListedEntry { name, kind: EntryKind::File, size: meta.len() },
                })
            };
            Ok(names.sorted().into_iter().filter_map(shown).collect())
        })
        .await
    }
}

#[cfg(test)]
mod tests;
