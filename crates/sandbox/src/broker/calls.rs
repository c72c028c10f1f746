//! The calls that make, replace or remove a name, or open a file to change it. Pure.

/// Stopped with any arguments.
pub(crate) const WATCHED: &[libc::c_long] = &[
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
];

/// Stopped if one of [`OPEN_FLAGS`] is in the argument of this number.
pub(crate) const OPENINGS: &[(libc::c_long, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// Flags of an opening that changes something.
pub(crate) const OPEN_FLAGS: [libc::c_int; 4] = [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC];

/// A path in the memory of a program, from a directory that it holds open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathArg {
    pub at: i32,
    pub address: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Open { path: PathArg, flags: i32, mode: u32 },
    MakeDirectory { path: PathArg, mode: u32 },
    MakeNode { path: PathArg, mode: u32 },
    Symlink { to: u64, path: PathArg },
    Link { from: PathArg, path: PathArg, flags: u32 },
    Rename { from: PathArg, path: PathArg, flags: u32 },
    Remove { path: PathArg, directory: bool },
}

impl Call {
    /// The name under which it makes a file or a directory, if it makes one. Another name for a file is none.
    pub fn made(&self) -> Option<PathArg> {
        match *self {
            Call::Open { path, flags, .. } => {
                (flags & (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY) != 0).then_some(path)
            }
            Call::MakeDirectory { path, .. } | Call::MakeNode { path, .. } | Call::Symlink { path, .. } => Some(path),
            Call::Link { .. } | Call::Rename { .. } | Call::Remove { .. } => None,
        }
    }

    /// The call of a number; `None` if it is none of these.
    pub fn read(number: i32, arguments: &[u64; 6]) -> Option<Call> {
        let [a, b, c, d, e, _] = *arguments;
        let at = |at: u64, address: u64| PathArg { at: at as i32, address };
        #[cfg(target_arch = "x86_64")]
        let here = |address: u64| PathArg { at: libc::AT_FDCWD, address };
        #[cfg(target_arch = "x86_64")]
        let creating = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
        Some(match libc::c_long::from(number) {
            libc::SYS_openat => Call::Open { path: at(a, b), flags: c as i32, mode: d as u32 },
            libc::SYS_mkdirat => Call::MakeDirectory { path: at(a, b), mode: c as u32 },
            libc::SYS_mknodat => Call::MakeNode { path: at(a, b), mode: c as u32 },
            libc::SYS_symlinkat => Call::Symlink { to: a, path: at(b, c) },
            libc::SYS_linkat => Call::Link { from: at(a, b), path: at(c, d), flags: e as u32 },
            libc::SYS_renameat => Call::Rename { from: at(a, b), path: at(c, d), flags: 0 },
            libc::SYS_renameat2 => Call::Rename { from: at(a, b), path: at(c, d), flags: e as u32 },
            libc::SYS_unlinkat => Call::Remove { path: at(a, b), directory: c as i32 & libc::AT_REMOVEDIR != 0 },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => Call::Open { path: here(a), flags: b as i32, mode: c as u32 },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => Call::Open { path: here(a), flags: creating, mode: b as u32 },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => Call::MakeDirectory { path: here(a), mode: b as u32 },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod => Call::MakeNode { path: here(a), mode: b as u32 },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => Call::Symlink { to: a, path: here(b) },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => Call::Link { from: here(a), path: here(b), flags: 0 },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => Call::Rename { from: here(a), path: here(b), flags: 0 },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => Call::Remove { path: here(a), directory: false },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rmdir => Call::Remove { path: here(a), directory: true },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_that_is_stopped_can_be_read() {
        for number in WATCHED.iter().copied().chain(OPENINGS.iter().map(|(number, _)| *number)) {
            assert!(Call::read(i32::try_from(number).unwrap(), &[0; 6]).is_some(), "{number}");
        }
        assert_eq!(Call::read(-1, &[0; 6]), None);
        let made = |number: libc::c_long, flags: u64| {
            Call::read(i32::try_from(number).unwrap(), &[0, 7, flags, 0, 0, 0]).unwrap().made().is_some()
        };
        assert!(made(libc::SYS_openat, (libc::O_CREAT | libc::O_WRONLY) as u64));
        assert!(made(libc::SYS_openat, (libc::O_TMPFILE | libc::O_RDWR) as u64));
        assert!(!made(libc::SYS_openat, libc::O_WRONLY as u64));
        assert!(made(libc::SYS_mkdirat, 0) && made(libc::SYS_symlinkat, 0) && !made(libc::SYS_unlinkat, 0));
    }
}
