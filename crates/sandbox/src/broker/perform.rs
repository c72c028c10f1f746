//! Decides about a call, and carries it out.

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use super::MadeFiles;
use super::calls::{Call, PathArg};
use crate::write_grants::{Relation, WritableTree};

/// The answer to a call.
pub(super) enum Outcome {
    /// The kernel carries it out, or refuses it.
    Native,
    Done(Result<(), Errno>),
    Opened {
        file: OwnedFd,
        close_on_exec: bool,
    },
}

/// The thread that made a call.
pub(super) struct Caller<'a> {
    pub thread: i32,
    /// Where nothing is served.
    pub elsewhere: &'a [&'static str],
}

/// A name in a directory that is held open.
struct Name {
    directory: OwnedFd,
    name: OsString,
    /// Both, without links.
    path: PathBuf,
    /// Whether it was written with a slash at its end: then it must be a directory.
    slash: bool,
}

/// Paths of the sandbox itself and of the tree: nothing in them is reserved, and they are left alone.
pub(super) const ELSEWHERE: [&str; 8] = ["/agents", "/dev", "/global", "/meta", "/nodes", "/proc", "/tmp", "/usr"];

/// What may still be written and made in the trees.
pub(super) struct Room<'a> {
    /// Nothing more may be written.
    pub full: bool,
    pub made: &'a mut MadeFiles,
}

impl Room<'_> {
    /// Whether a call that makes `name` may be carried out. A name that is there already is not made; a link may lead to one
    /// that is not.
    fn allows(&mut self, trees: &[WritableTree], name: &Name) -> bool {
        if !on_disk(trees, &name.path) {
            return true;
        }
        let there = rustix::fs::statat(&name.directory, &name.name, AtFlags::SYMLINK_NOFOLLOW);
        there.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::Symlink) || self.made.take()
    }
}

/// Decides about a call; `valid` says whether its caller is still there after its memory was read.
pub(super) fn decide(
    trees: &[WritableTree],
    caller: &Caller<'_>,
    call: &Call,
    mut room: Room<'_>,
    valid: impl Fn() -> bool,
) -> Outcome {
    let made = call.made().and_then(|path| caller.name(path));
    if made.as_ref().is_some_and(|name| !room.allows(trees, name)) {
        return Outcome::Done(Err(Errno::DQUOT));
    }
    let done = match *call {
        Call::Open { path, flags, mode } => {
            let Some(name) = made.or_else(|| caller.name(path)).filter(|_| valid()) else { return Outcome::Native };
            if room.full && on_disk(trees, &name.path) {
                return Outcome::Done(Err(Errno::DQUOT));
            }
            return open(trees, caller, &name, flags, mode);
        }
        Call::MakeDirectory { mode, .. } => made.filter(|name| may_lead(trees, name)).map(|name| {
            let mode = caller.mode(mode);
            run(&valid, || rustix::fs::mkdirat(&name.directory, &name.name, mode))
        }),
        Call::MakeNode { mode, .. } => made.filter(|name| free(trees, name)).and_then(|name| {
            let kind = FileType::from_raw_mode(mode);
            // Devices are the kernel's to refuse.
            let plain = matches!(kind, FileType::RegularFile | FileType::Fifo | FileType::Socket) || mode >> 12 == 0;
            let kind = if mode >> 12 == 0 { FileType::RegularFile } else { kind };
            let mode = caller.mode(mode);
            plain.then(|| run(&valid, || rustix::fs::mknodat(&name.directory, &name.name, kind, mode, 0)))
        }),
        Call::Symlink { to, .. } => made.filter(|name| free(trees, name)).and_then(|name| {
            let to = caller.text(to)?;
            Some(run(&valid, || rustix::fs::symlinkat(&to, &name.directory, &name.name)))
        }),
        Call::Link { from, path, flags } => both(trees, caller, from, path).and_then(|(from, name)| {
            // A link to what a descriptor refers to needs the descriptors of the caller.
            (flags == 0).then(|| {
                run(&valid, || {
                    let flags = AtFlags::empty();
                    rustix::fs::linkat(&from.directory, &from.name, &name.directory, &name.name, flags)
                })
            })
        }),
        Call::Rename { from, path, flags } => both(trees, caller, from, path).map(|(from, name)| {
            let flags = RenameFlags::from_bits_retain(flags);
            run(&valid, || rustix::fs::renameat_with(&from.directory, &from.name, &name.directory, &name.name, flags))
        }),
        Call::Remove { path, directory } => {
            let may = |name: &Name| if directory { may_lead(trees, name) } else { free(trees, name) };
            let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            caller
                .name(path)
                .filter(may)
                .map(|name| run(&valid, || rustix::fs::unlinkat(&name.directory, &name.name, flags)))
        }
    };
    done.map_or(Outcome::Native, Outcome::Done)
}

fn run(valid: &impl Fn() -> bool, change: impl FnOnce() -> rustix::io::Result<()>) -> Result<(), Errno> {
    if valid() { change() } else { Err(Errno::INTR) }
}

/// Whether a path lies on a disk of the host; a project may lie in a directory of the sandbox's own.
fn on_disk(trees: &[WritableTree], path: &Path) -> bool {
    let holding = trees.iter().filter(|tree| tree.holds(path));
    holding.max_by_key(|tree| (tree.depth(), tree.on_disk())).is_some_and(WritableTree::on_disk)
}

/// The tree that serves a path, if Landlock does not grant what is in its directory.
fn serving<'a>(trees: &'a [WritableTree], path: &Path) -> Option<&'a WritableTree> {
    let tree = trees.iter().filter(|tree| tree.holds(path)).max_by_key(|tree| tree.depth())?;
    path.parent().filter(|directory| !tree.granted_in(directory)).map(|_| tree)
}

fn relation(trees: &[WritableTree], name: &Name) -> Option<Relation> {
    serving(trees, &name.path).map(|tree| tree.relation(&name.path))
}

/// Whether a name is served here and has nothing to do with a reserved one.
fn free(trees: &[WritableTree], name: &Name) -> bool {
    !name.slash && relation(trees, name) == Some(Relation::Free)
}

/// The same for a directory, which may lead to a reserved name: that name is refused in its turn.
fn may_lead(trees: &[WritableTree], name: &Name) -> bool {
    matches!(relation(trees, name), Some(Relation::Free | Relation::Above))
}

/// Two names, of which one is served here, and none has to do with a reserved one.
fn both(trees: &[WritableTree], caller: &Caller<'_>, from: PathArg, path: PathArg) -> Option<(Name, Name)> {
    let (from, name) = (caller.name(from)?, caller.name(path)?);
    let reserved =
        |name: &Name| trees.iter().any(|tree| tree.holds(&name.path) && tree.relation(&name.path) != Relation::Free);
    let served = serving(trees, &from.path).is_some() || serving(trees, &name.path).is_some();
    let plain = !from.slash && !name.slash;
    (served && plain && !reserved(&from) && !reserved(&name)).then_some((from, name))
}

fn open(trees: &[WritableTree], caller: &Caller<'_>, name: &Name, flags: i32, mode: u32) -> Outcome {
    let Some(tree) = serving(trees, &name.path) else { return Outcome::Native };
    // An unnamed file has no name that could be reserved.
    let unnamed = flags & libc::O_TMPFILE == libc::O_TMPFILE;
    if name.slash || unnamed || tree.relation(&name.path) != Relation::Free || tree.granted(&name.path) {
        return Outcome::Native;
    }
    let there = rustix::fs::statat(&name.directory, &name.name, AtFlags::SYMLINK_NOFOLLOW);
    if let Ok(there) = there
        && !matches!(FileType::from_raw_mode(there.st_mode), FileType::RegularFile | FileType::Directory)
    {
        // A link leads elsewhere, and a pipe would keep everyone waiting.
        return Outcome::Native;
    }
    let close_on_exec = flags & libc::O_CLOEXEC != 0;
    let flags = OFlags::from_bits_retain(flags as u32) | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    match rustix::fs::openat(&name.directory, &name.name, flags, caller.mode(mode)) {
        Ok(file) => Outcome::Opened { file, close_on_exec },
        // A link was put there since.
        Err(Errno::LOOP) => Outcome::Native,
        Err(errno) => Outcome::Done(Err(errno)),
    }
}

impl Caller<'_> {
    /// The name that a call concerns; `None` if it is none that is served here.
    fn name(&self, path: PathArg) -> Option<Name> {
        let text = self.text(path.address)?;
        let bytes = text.as_bytes();
        let whole = Path::new(OsStr::from_bytes(bytes));
        if self.elsewhere.iter().any(|elsewhere| whole.starts_with(elsewhere)) {
            return None;
        }
        let trimmed = &bytes[..bytes.iter().rposition(|byte| *byte != b'/')? + 1];
        let cut = trimmed.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let (above, name) = (&trimmed[..cut], OsStr::from_bytes(&trimmed[cut..]));
        if name == "." || name == ".." {
            return None;
        }
        let above = if above.is_empty() { Path::new(".") } else { Path::new(OsStr::from_bytes(above)) };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let base = match (whole.is_absolute(), path.at) {
            (true, _) => rustix::fs::open("/", flags, Mode::empty()),
            (false, libc::AT_FDCWD) => rustix::fs::open(self.file("cwd"), flags, Mode::empty()),
            (false, fd) => rustix::fs::open(self.file(&format!("fd/{fd}")), flags, Mode::empty()),
        };
        // What a magic link leads to belongs to whoever follows it.
        let resolve = ResolveFlags::NO_MAGICLINKS;
        let directory = rustix::fs::openat2(base.ok()?, above, flags, Mode::empty(), resolve).ok()?;
        let at = rustix::fs::readlink(format!("/proc/self/fd/{}", number(&directory)), Vec::new()).ok()?;
        let path = Path::new(OsStr::from_bytes(at.as_bytes())).join(name);
        Some(Name { directory, name: name.to_owned(), path, slash: trimmed.len() < bytes.len() })
    }

    fn file(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.thread)
    }

    /// A text in the memory of the caller.
    fn text(&self, mut address: u64) -> Option<CString> {
        let memory = fs::File::open(self.file("mem")).ok()?;
        let mut bytes = Vec::new();
        while bytes.len() < libc::PATH_MAX as usize {
            let mut room = [0; 512];
            // Less than asked for at the end of what the caller has.
            let read = memory.read_at(&mut room, address).ok().filter(|read| *read > 0)?;
            if let Some(end) = room[..read].iter().position(|byte| *byte == 0) {
                bytes.extend(&room[..end]);
                return CString::new(bytes).ok();
            }
            bytes.extend(&room[..read]);
            address += read as u64;
        }
        None
    }

    /// A mode as the caller's mask leaves it.
    fn mode(&self, mode: u32) -> Mode {
        let status = fs::read_to_string(self.file("status")).unwrap_or_default();
        let mask = status.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("Umask:")?.trim(), 8).ok());
        Mode::from_raw_mode(mode & 0o7777 & !mask.unwrap_or(0o077))
    }
}

fn number(file: &OwnedFd) -> i32 {
    use std::os::fd::AsRawFd;
    file.as_fd().as_raw_fd()
}
