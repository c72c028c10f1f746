//! Extended attributes of mirrored files.

use std::ffi::OsStr;

use fuser::{ReplyEmpty, ReplyXattr};
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::{Passthrough, Who, errno};
use acheron_base::host_dir::{Outcome, by_number};
use acheron_vfs::Access;

impl Passthrough {
    pub fn getxattr(&self, who: Who, ino: u64, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        self.away(move |real| {
            let value = real.hold_for(who, ino).and_then(|held| {
                let path = by_number(held.fd.as_ref().ok_or(Errno::NODATA)?);
                whole(|buffer| rustix::fs::getxattr(&path, &*name, buffer))
            });
            answer(value, size, reply);
        });
    }

    pub fn listxattr(&self, who: Who, ino: u64, size: u32, reply: ReplyXattr) {
        self.away(move |real| {
            let names = real.hold_for(who, ino).and_then(|held| match &held.fd {
                Some(fd) => whole(|buffer| rustix::fs::listxattr(by_number(fd), buffer)),
                None => Ok(Vec::new()),
            });
            answer(names, size, reply);
        });
    }

    pub fn setxattr(&self, who: Who, ino: u64, name: &OsStr, value: &[u8], flags: i32, reply: ReplyEmpty) {
        let (name, value) = (name.to_owned(), value.to_vec());
        let flags = XattrFlags::from_bits_retain(flags as u32);
        self.away(move |real| {
            done(real.set_attribute(who, ino, |path| rustix::fs::setxattr(path, &*name, &value, flags)), reply);
        });
    }

    pub fn removexattr(&self, who: Who, ino: u64, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.away(move |real| done(real.set_attribute(who, ino, |path| rustix::fs::removexattr(path, &*name)), reply));
    }

    fn set_attribute(&self, who: Who, ino: u64, set: impl FnOnce(&std::path::Path) -> Outcome<()>) -> Outcome<()> {
        let held = self.hold(ino)?;
        self.may(who, Access::Write, &held.view, held.path())?;
        let fd = held.changeable()?;
        set(&by_number(fd))
    }
}

/// All of what a call with a buffer gives: no attribute has more than 64 KiB, nor all their names.
fn whole(call: impl FnOnce(&mut [u8]) -> Outcome<usize>) -> Outcome<Vec<u8>> {
    let mut buffer = vec![0; 64 << 10];
    let length = call(&mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}

fn answer(value: Outcome<Vec<u8>>, size: u32, reply: ReplyXattr) {
    match value {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(fuser::Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(errno(error)),
    }
}

fn done(outcome: Outcome<()>, reply: ReplyEmpty) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}
