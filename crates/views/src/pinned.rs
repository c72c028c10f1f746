//! Files that the kernel goes on showing after a refresh, because a program has them open: it forgets no name that is in use. So
//! the name is given to a copy of what the base has, which is then taken out of the upper; the program keeps what it has open.
//! Used by `src/services/views` after a refresh; uses `prune`.
//!
//! Nothing is lost and no reader finds a gap: copy and old file are exchanged in one step, and if that brings out what a program
//! has put there meanwhile, they are exchanged again. A directory in which a program stands is not let go.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::change::EntryType;
use super::prune;
use super::root::{EntryFacts, Root, facts_at};
use super::walk::Layers;
use acheron_base::{Error, Result};

/// Lets go of those of the paths that the view mounted at `at` still shows as the base had them before. `aside` is an empty
/// directory on the file system of the upper. Returns their number.
pub fn let_go(
    layers: &Layers<'_>,
    at: &Path,
    paths: &[PathBuf],
    aside: &Path,
    refresh: &dyn Fn() -> Result<()>,
) -> Result<usize> {
    let view = Root::open(at)?;
    let mut freed = 0;
    for path in paths {
        let Some(shown) = view.facts(path)? else { continue };
        let real = layers.base.facts(path)?;
        // A file with several names would become the view's own under all of them.
        let old = shown.kind == EntryType::File && shown.links <= 1 && !is_shown(&shown, real.as_ref());
        if old && layers.upper.facts(path)?.is_none() && swap_out(layers, &view, path, &shown, real.as_ref())? {
            // What a program writes already is the view's own from now on.
            match prune::drop_changes(layers, std::slice::from_ref(path), aside, &|| Ok(())) {
                Err(error) if error.code != acheron_base::Code::Busy => return Err(error),
                _ => freed += 1,
            }
        }
    }
    if freed > 0 {
        refresh()?;
    }
    Ok(freed)
}

/// Whether this is the file of the base. An overlay may put a number of its own into the upper bits of an inode.
fn is_shown(shown: &EntryFacts, real: Option<&EntryFacts>) -> bool {
    let mark = |facts: &EntryFacts| (facts.kind, facts.inode as u32, facts.size, facts.modified_ns);
    real.is_some_and(|real| mark(real) == mark(shown))
}

/// Takes the old file away from its name; returns whether it did.
fn swap_out(
    layers: &Layers<'_>,
    view: &Root,
    path: &Path,
    shown: &EntryFacts,
    real: Option<&EntryFacts>,
) -> Result<bool> {
    let told = |errno| view.told(path, errno);
    let (dir, name) = view.parent(path).map_err(told)?;
    let beside = format!(".acheron-{}-{}", std::process::id(), shown.inode);
    let remove = || rustix::fs::unlinkat(&dir, beside.as_str(), AtFlags::empty());
    let copied = match real.filter(|real| real.kind == EntryType::File) {
        Some(real) => {
            copy(layers.base.open_file(path)?, &dir, &beside, real).inspect_err(|_| _ = remove())?;
            true
        }
        None => false,
    };
    let swap = |from: &OsStr, to: &OsStr| {
        let flags = if copied { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        rustix::fs::renameat_with(&dir, from, &dir, to, flags)
    };
    let aside = OsStr::new(&beside);
    let swapped = if copied { swap(aside, name) } else { swap(name, aside) };
    if let Err(errno) = swapped {
        _ = remove(); // a copy, if there is one
        return if errno == Errno::NOENT { Ok(false) } else { Err(told(errno)) };
    }
    let out = facts_at(dir.as_fd(), aside).map_err(told)?;
    let same = (out.kind, out.size, out.modified_ns) == (shown.kind, shown.size, shown.modified_ns);
    if !same {
        swap(aside, name).map_err(told)?;
    }
    if same || copied {
        remove().map_err(told)?;
    }
    Ok(same)
}

/// Copies a file of the base into an open directory of the view.
fn copy(mut from: File, dir: &OwnedFd, name: &str, facts: &EntryFacts) -> Result<()> {
    let told = |errno: Errno| Error::from(std::io::Error::from(errno)).about(name);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut to = File::from(rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR).map_err(told)?);
    std::io::copy(&mut from, &mut to).map_err(|err| Error::from(err).about(name))?;
    match rustix::fs::fchown(&to, Some(Uid::from_raw(facts.uid)), Some(Gid::from_raw(facts.gid))) {
        Ok(()) | Err(Errno::PERM) => (),
        Err(errno) => return Err(told(errno)),
    }
    rustix::fs::fchmod(&to, Mode::from_raw_mode(facts.mode)).map_err(told)?;
    let at = Timespec {
        tv_sec: facts.modified_ns.div_euclid(1_000_000_000),
        tv_nsec: facts.modified_ns.rem_euclid(1_000_000_000) as _,
    };
    rustix::fs::futimens(&to, &Timestamps { last_access: at, last_modification: at }).map_err(told)
}

#[cfg(test)]
mod tests;
