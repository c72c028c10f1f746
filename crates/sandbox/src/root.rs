//! The root that a sandbox sees: a small one in memory, into which a few trees of the host are bound. Every tree is
//! opened by descriptor before anything is hidden, and mounted by descriptor without following a link, so that no name
//! can be swapped in between. The init uses it; it uses the masks, the path rules and the list of the system.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};

use super::masks::Masks;
use super::mount_attributes::{MountAttributes, set_mount_attributes};
use super::owner_map::MappedMounts;
use super::plan::{Link, Plan, inside};
use super::{path_rules, system};
use acheron_base::host_dir::Id;
use acheron_base::mountinfo::Mount;
use acheron_base::{Error, Result};

/// A directory that every system has: the new root is mounted over it for a moment.
const BASE: &str = "/tmp";

/// A mount of the host, held by a descriptor, and its place under the new root.
struct MountTree {
    held: OwnedFd,
    target: PathBuf,
    directory: bool,
}

/// Builds the new root, makes it `/` and leaves the old one.
/// `mapped` are the mounts to use in place of binds of the plan, by their targets.
pub(super) fn build(plan: &Plan, mut mapped: MappedMounts) -> Result<(Root, Covers)> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|err| said("making mounts private", err))?;
    let mounts = acheron_base::mountinfo::read()?;
    let (system, foreign) = system_trees(plan, &mounts)?;
    let devices = device_trees()?;
    let bound = plan.ordered().into_iter().map(|bind| {
        let attributes = if bind.read_only { libc::MOUNT_ATTR_RDONLY } else { 0 };
        if let Some(mapped) = mapped.remove(&bind.target) {
            return taken(Ok(mapped), &bind.source, inside(&bind.target)?, attributes | QUIET);
        }
        let held = bind.id.map(|id| acheron_base::host_dir::same(&bind.source, id)).transpose()?;
        match held {
            Some(held) => take_held(held.as_fd(), &bind.source, inside(&bind.target)?, attributes | QUIET),
            None => take(&bind.source, inside(&bind.target)?, attributes | QUIET),
        }
    });
    let bound = bound.collect::<Result<Vec<MountTree>>>()?;
    let covered = masked_paths(plan, &mounts);

    let scratch = format!("mode=755,size={},nr_inodes=65536", plan.limits.scratch_bytes);
    filesystem("tmpfs", BASE, MountFlags::NOSUID | MountFlags::NODEV, "mode=755,size=8m")?;
    std::env::set_current_dir(BASE)?;
    for name in ["tmp", "home", "dev", "etc", "proc"] {
        fs::create_dir(name)?;
    }
    let masks = Masks::make("home", "tmp")?;
    for name in ["tmp", "home"] {
        filesystem("tmpfs", name, MountFlags::NOSUID | MountFlags::NODEV, &scratch)?;
    }
    for (name, text) in system::written(rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()) {
        fs::write(Path::new("etc").join(name), text)?;
    }
    links()?;
    let top = rustix::fs::open(".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|err| said("opening the new root", err))?;
    let own = [".", "tmp", "home"].map(|name| Ok(rustix::fs::stat(name)?.st_dev));
    let own = own.into_iter().collect::<rustix::io::Result<Vec<u64>>>().map_err(|err| said("the new root", err))?;
    for tree in system.into_iter().chain(devices) {
        mount_tree(top.as_fd(), tree, &own)?;
    }
    for place in foreign {
        masks.mask(top.as_fd(), &place)?;
    }
    device_directories(&scratch)?;
    let proc = proc(plan)?;
    for name in system::UNREADABLE.iter().filter(|_| proc.proc) {
        masks.mask(top.as_fd(), &Path::new("proc").join(name))?;
    }
    for tree in bound {
        mount_tree(top.as_fd(), tree, &own)?;
    }
    for place in covered {
        masks.mask(top.as_fd(), &place)?;
    }
    path_rules::apply(top.as_fd(), &plan.path_rules, &masks)?;
    let in_bind = |link: &&Link| plan.binds.iter().any(|bind| link.path.starts_with(&bind.target));
    for link in plan.links.iter().filter(|link| !in_bind(link)) {
        make_link(link)?;
    }
    attributes(top.as_fd(), libc::MOUNT_ATTR_RDONLY, false).map_err(|err| said("closing the new root", err))?;

    // The new root and the old one share a place for a moment, so no directory is needed for the old one.
    rustix::process::pivot_root(".", ".").map_err(|err| said("pivot_root", err))?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(|err| said("leaving the old root", err))?;
    std::env::set_current_dir("/")?;
    Ok((proc, Covers { top, masks }))
}

/// Makes a link in the new root. A name that something else has, or that lies in a bind, is left out: links are named by
/// agents, and one must not keep another's programs from starting.
fn make_link(link: &Link) -> Result<()> {
    let path = inside(&link.path)?;
    let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| symlink(&link.to, path));
    match made.map_err(|err| (err.kind(), err)) {
        Ok(()) => Ok(()),
        Err((ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::ReadOnlyFilesystem, _)) => Ok(()),
        Err((ErrorKind::PermissionDenied, _)) => Ok(()),
        Err((_, err)) => Err(Error::invalid(format!("the link `{}`: {err}", link.path.display()))),
    }
}

/// What is needed to cover a path again.
pub(super) struct Covers {
    top: OwnedFd,
    masks: Masks,
}

impl Covers {
    /// Covers again what a change outside has uncovered.
    pub fn renew(&self, plan: &Plan) -> Result<()> {
        path_rules::renew(self.top.as_fd(), &plan.path_rules, &self.masks)
    }
}

/// No set-user-id programs and no devices in any bind.
const QUIET: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// A device can be read and written on a read-only mount; read-only protects its mode and times.
const DEVICE: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;

/// The directories of the system, and the paths in them that must be masked.
fn system_trees(plan: &Plan, mounts: &[Mount]) -> Result<(Vec<MountTree>, Vec<PathBuf>)> {
    let (mut trees, mut covered) = (Vec::new(), plan.hidden.clone());
    let directories = system::DIRECTORIES.iter().map(|name| Path::new("/").join(name));
    let directories = directories.filter(|path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir()));
    let more = system::etc(plan.network).chain(system::extra(&plan.system).cloned()).filter(|path| path.exists());
    for path in directories.chain(more) {
        let held = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let held = held.map_err(|err| unbound(&path, err))?;
        // The real path: a directory that the mountspec names may be a link.
        let source = if path.is_symlink() { path.canonicalize()? } else { path.clone() };
        let below: Vec<&Mount> = system::below(&source, mounts).collect();
        // In a user namespace the kernel does not copy a mount without those below it: then all are copied, and those
        // that must not be visible are masked.
        let copied = if below.is_empty() { copy_alone(held.as_fd()) } else { copy(held.as_fd()) };
        let target = path.strip_prefix("/").unwrap_or(&path);
        trees.push(taken(copied, &path, target, libc::MOUNT_ATTR_RDONLY | QUIET)?);
        let foreign = below.into_iter().filter(|mount| system::foreign(mount, &plan.system, mounts));
        covered.extend(foreign.filter_map(|mount| Some(path.join(mount.point.strip_prefix(&source).ok()?))));
    }
    let covered = system::outermost(covered).into_iter();
    Ok((trees, covered.filter_map(|place| Some(place.strip_prefix("/").ok()?.to_owned())).collect()))
}

fn device_trees() -> Result<Vec<MountTree>> {
    let names = system::DEVICES.iter().map(|name| (Path::new("/dev").join(name), Path::new("dev").join(name)));
    let mut trees = Vec::new();
    for (source, target) in names.filter(|(source, _)| source.exists()) {
        trees.push(take(&source, &target, DEVICE)?);
    }
    let terminal = [0, 1, 2].into_iter().find(|fd| {
        // SAFETY: the three streams are open for as long as the process lives.
        rustix::termios::isatty(unsafe { BorrowedFd::borrow_raw(*fd) })
    });
    if let Some(named) = terminal.and_then(|fd| fs::read_link(format!("/proc/self/fd/{fd}")).ok()) {
        // The name of the terminal is in the host's /dev/pts, which is not here; `tty` finds it as the console.
        trees.extend(take(&named, Path::new("dev/console"), DEVICE));
    }
    Ok(trees)
}

fn links() -> Result<()> {
    for name in system::DIRECTORIES {
        if let Ok(to) = fs::read_link(Path::new("/").join(name)) {
            symlink(to, name)?;
        }
    }
    for (name, to) in
        [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"), ("ptmx", "pts/ptmx")]
    {
        symlink(to, Path::new("dev").join(name))?;
    }
    Ok(())
}

/// The terminals that the programs of one sandbox may open: the machine has a few thousand for all.
const TERMINALS: u32 = 16;

fn device_directories(scratch: &str) -> Result<()> {
    fs::create_dir("dev/shm")?;
    filesystem("tmpfs", "dev/shm", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, scratch)?;
    fs::create_dir("dev/pts")?;
    let options = format!("newinstance,ptmxmode=0666,mode=0620,max={TERMINALS}");
    filesystem("devpts", "dev/pts", MountFlags::NOSUID | MountFlags::NOEXEC, &options)
}

/// The root that was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Root {
    /// Whether it has a `/proc`.
    proc: bool,
    /// Whether `pid_max` belongs to the pid namespace (since Linux 6.14). Before, writing it would change that of the
    /// host.
    pub own_pid_max: bool,
    /// Whether the watches of its programs are bounded apart from those of the host's user.
    own_watches: bool,
}

impl Root {
    pub fn describe(self) -> String {
        if !self.proc {
            return "private root without /proc: this host hides a part of its own".to_owned();
        }
        let more = [(self.own_pid_max, ", pid_max"), (self.own_watches, ", inotify")];
        let more = more.iter().filter(|(there, _)| *there).map(|(_, name)| *name);
        format!("private root{}", more.collect::<String>())
    }
}

/// What programs of one sandbox may use of inotify. They count with the user of the host too, who could watch nothing more.
const WATCHES: [(&str, u32); 2] = [("max_inotify_instances", 32), ("max_inotify_watches", 16_384)];

/// Mounts a `/proc` for the processes of the sandbox, read-only: some of its settings obey root of the host in any
/// namespace. Where the `/proc` of the host is partly covered the kernel refuses a new one, and there is none.
fn proc(plan: &Plan) -> Result<Root> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    if rustix::mount::mount("proc", "proc", "proc", flags, None).is_err() {
        return Ok(Root { proc: false, own_pid_max: false, own_watches: false });
    }
    // These belong to the user namespace.
    let bounded = |(name, most): (&str, u32)| fs::write(format!("proc/sys/user/{name}"), most.to_string()).is_ok();
    let own_watches = WATCHES.into_iter().all(bounded);
    let limited = if own_pid_max(&rustix::system::uname().release().to_string_lossy()) {
        // The kernel accepts nothing below 301.
        fs::write("proc/sys/kernel/pid_max", plan.limits.processes.max(301).to_string()).is_ok()
    } else {
        false
    };
    let proc = rustix::fs::open("proc", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|err| said("opening /proc", err))?;
    attributes(proc.as_fd(), libc::MOUNT_ATTR_RDONLY, true).map_err(|err| said("closing /proc", err))?;
    Ok(Root { proc: true, own_pid_max: limited, own_watches })
}

/// Whether `pid_max` belongs to the pid namespace (since Linux 6.14). Before, writing it would change the host's.
fn own_pid_max(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 14)
}

/// A copy of the mount at `source` with the mounts below it: the kernel does not let us reveal what such a mount hides.
fn take(source: &Path, target: &Path, attribute: u64) -> Result<MountTree> {
    let held = rustix::fs::open(source, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    take_held(held.map_err(|err| unbound(source, err))?.as_fd(), source, target, attribute)
}

fn unbound(source: &Path, err: rustix::io::Errno) -> Error {
    let error = Error::from(std::io::Error::from(err));
    Error::new(error.code, format!("`{}` cannot be bound: {}", source.display(), error.message))
}

/// The same for an open directory; `source` is its name, for errors.
fn take_held(held: BorrowedFd<'_>, source: &Path, target: &Path, attribute: u64) -> Result<MountTree> {
    taken(copy(held), source, target, attribute)
}

/// A copied tree, with its attributes.
fn taken(copied: rustix::io::Result<OwnedFd>, source: &Path, target: &Path, attribute: u64) -> Result<MountTree> {
    let named = |err: rustix::io::Errno| unbound(source, err);
    let held = copied.map_err(named)?;
    attributes(held.as_fd(), attribute, true).map_err(named)?;
    let directory = rustix::fs::fstat(&held).map_err(named)?.st_mode & libc::S_IFMT == libc::S_IFDIR;
    Ok(MountTree { held, target: target.to_owned(), directory })
}

const COPY: OpenTreeFlags =
    OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC).union(OpenTreeFlags::AT_EMPTY_PATH);

/// A copy of an open tree with the mounts below it.
pub(super) fn copy(held: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    rustix::mount::open_tree(held, c"", COPY | OpenTreeFlags::AT_RECURSIVE)
}

/// A copy without the mounts below it.
pub(super) fn copy_alone(held: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    rustix::mount::open_tree(held, c"", COPY)
}

/// A copy of the directory that a bind names, without the mounts below it. For a process outside.
pub(super) fn copy_alone_of(source: &Path, id: Option<Id>) -> Result<OwnedFd> {
    let held = match id {
        Some(id) => acheron_base::host_dir::same(source, id)?,
        None => rustix::fs::open(source, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(|err| unbound(source, err))?,
    };
    copy_alone(held.as_fd()).map_err(|err| unbound(source, err))
}

/// Opens a path under the new root, without following a link.
pub(super) fn find(top: BorrowedFd<'_>, place: &Path) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(top, place, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// Mounts a tree on a path.
pub(super) fn put(tree: &OwnedFd, place: &OwnedFd) -> rustix::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree, c"", place, c"", flags)
}

/// `own` are the file systems of the new root itself.
fn mount_tree(top: BorrowedFd<'_>, tree: MountTree, own: &[u64]) -> Result<()> {
    let named = |err: rustix::io::Errno| said(&format!("mounting '/{}'", tree.target.display()), err);
    let find = || find(top, &tree.target);
    let place = match find() {
        Ok(place) => place,
        Err(rustix::io::Errno::NOENT) => {
            prepare(top, &tree, own).map_err(named)?;
            let gone = || format!("'/{}' is not there, and nothing is made in what is bound", tree.target.display());
            find().map_err(|err| match err {
                rustix::io::Errno::NOENT => Error::not_found(gone()),
                err => named(err),
            })?
        }
        Err(err) => return Err(named(err)),
    };
    put(&tree.held, &place).map_err(named)
}

/// Makes the mount point of a tree, in the new root itself and its directories in memory: a bind belongs to the host, and
/// nothing is made in it.
fn prepare(top: BorrowedFd<'_>, tree: &MountTree, own: &[u64]) -> rustix::io::Result<()> {
    let mut at = find(top, Path::new("."))?;
    let mut names = tree.target.iter().peekable();
    while let Some(name) = names.next() {
        let last = names.peek().is_none();
        if !own.contains(&rustix::fs::fstat(&at)?.st_dev) {
            return Ok(());
        }
        let made = match last && !tree.directory {
            true => rustix::fs::mknodat(&at, name, FileType::RegularFile, Mode::from_raw_mode(0o644), 0),
            false => rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o755)),
        };
        if let Err(err) = made
            && err != rustix::io::Errno::EXIST
        {
            return Err(err);
        }
        at = find(at.as_fd(), Path::new(name))?;
    }
    Ok(())
}

/// The paths under the new root where a mount below a bind would be visible but must not be.
fn masked_paths(plan: &Plan, mounts: &[Mount]) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for bind in plan.binds.iter().filter(|bind| bind.alone) {
        let source = bind.source.canonicalize().unwrap_or_else(|_| bind.source.clone());
        for mount in mounts.iter().filter(|mount| mount.point != source) {
            if let (Ok(below), Ok(target)) = (mount.point.strip_prefix(&source), inside(&bind.target)) {
                places.push(target.join(below));
            }
        }
    }
    // A path below a masked one cannot be found.
    system::outermost(places)
}

fn filesystem(kind: &str, target: &str, flags: MountFlags, options: &str) -> Result<()> {
    let options = std::ffi::CString::new(options).map_err(|err| Error::internal(err.to_string()))?;
    rustix::mount::mount(kind, target, kind, flags, Some(options.as_c_str()))
        .map_err(|err| said(&format!("mounting {kind} on {target}"), err))
}

/// Sets attributes on a mount, or on it and all below.
fn attributes(mount: BorrowedFd<'_>, set: u64, recursive: bool) -> rustix::io::Result<()> {
    set_mount_attributes(mount, MountAttributes { set, recursive, ..MountAttributes::default() })
}

pub(super) fn said(what: &str, err: rustix::io::Errno) -> Error {
    Error::unavailable(format!("{what}: {}", std::io::Error::from(err)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mounted_below_a_bind_is_covered() {
        let mounts = acheron_base::mountinfo::parse(
            b"21 1 8:1 / / rw - ext4 /dev/a rw\n22 21 8:2 / /srv/p rw - ext4 /dev/b rw\n\
              23 22 0:9 / /srv/p/ns rw - fuse x rw\n24 23 0:8 / /srv/p/ns/deep rw - tmpfs x rw\n",
        );
        let mut plan = Plan::new("charon", ["true"]).bind("/srv/p", "/projects/p/fs", true).bind("/srv", "/all", true);
        assert_eq!(masked_paths(&plan, &mounts), Vec::<PathBuf>::new());
        plan.binds[0].alone = true;
        assert_eq!(masked_paths(&plan, &mounts), [PathBuf::from("projects/p/fs/ns")]);
    }

    #[test]
    fn the_limit_of_processes_is_written_only_where_it_belongs_to_the_namespace() {
        for (release, expected) in [
            ("6.18.44-fc-v445", true),
            ("6.14", true),
            ("7.0.1", true),
            ("6.1.0-37-amd64", false),
            ("5.15", false),
            ("", false),
        ] {
            assert_eq!(own_pid_max(release), expected, "{release}");
        }
    }
}
