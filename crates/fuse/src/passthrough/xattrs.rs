//! Extended attributes of mirrored files. Part of the passthrough.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fuser::{ReplyEmpty, ReplyXattr};
use rustix::fs::{Access as Mode, XattrFlags};
use rustix::io::Errno;

use super::{Passthrough, Requester, errno};
use acheron_base::host_dir::{OsResult, by_number};
use acheron_vfs::Access;

impl Passthrough {
    pub fn getxattr(&self, requester: Requester, ino: u64, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        self.in_pool(move |mirror| {
            let value = mirror.find_visible(requester, ino).and_then(|found| {
                if is_users(&name) {
                    mirror.check_mode(requester, &found.info, Mode::READ_OK)?;
                }
                let path = by_number(found.fd.as_ref().ok_or(Errno::NODATA)?);
                whole(|buffer| rustix::fs::getxattr(&path, &*name, buffer))
            });
            answer(value, size, reply);
        });
    }

    pub fn listxattr(&self, requester: Requester, ino: u64, size: u32, reply: ReplyXattr) {
        self.in_pool(move |mirror| {
            let names = mirror.find_visible(requester, ino).and_then(|found| match &found.fd {
                Some(fd) => whole(|buffer| rustix::fs::listxattr(by_number(fd), buffer)),
                None => Ok(Vec::new()),
            });
            answer(names, size, reply);
        });
    }

    pub fn setxattr(&self, requester: Requester, ino: u64, name: &OsStr, value: &[u8], flags: i32, reply: ReplyEmpty) {
        let (name, value) = (name.to_owned(), value.to_vec());
        let flags = XattrFlags::from_bits_retain(flags as u32);
        self.in_pool(move |mirror| {
            let set = |path: &Path| rustix::fs::setxattr(path, &*name, &value, flags);
            done(mirror.set_attribute(requester, ino, &name, set), reply);
        });
    }

    pub fn removexattr(&self, requester: Requester, ino: u64, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.in_pool(move |mirror| {
            let remove = |path: &Path| rustix::fs::removexattr(path, &*name);
            done(mirror.set_attribute(requester, ino, &name, remove), reply);
        });
    }

    fn set_attribute(
        &self,
        requester: Requester,
        ino: u64,
        name: &OsStr,
        set: impl FnOnce(&Path) -> OsResult<()>,
    ) -> OsResult<()> {
        let found = self.find_file(ino)?;
        self.may(requester, Access::Write, &found.view, found.path())?;
        let fd = found.changeable()?;
        match is_users(name) {
            true => self.check_mode(requester, &found.info, Mode::WRITE_OK)?,
            false => self.check_owner(requester, &found.info)?,
        }
        set(&by_number(fd))
    }
}

/// Whether the mode of the file says who may use an attribute of this name.
fn is_users(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"user.")
}

/// Calls with a buffer that is large enough: the kernel limits an attribute, and the list of names, to 64 KiB.
fn whole(call: impl FnOnce(&mut [u8]) -> OsResult<usize>) -> OsResult<Vec<u8>> {
    let mut buffer = vec![0; 64 << 10];
    let length = call(&mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}

fn answer(value: OsResult<Vec<u8>>, size: u32, reply: ReplyXattr) {
    match value {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(fuser::Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(errno(error)),
    }
}

fn done(outcome: OsResult<()>, reply: ReplyEmpty) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}
