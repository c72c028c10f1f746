//! The bytes of mirrored files: read and written on the file itself, cached by the kernel as long as the file is
//! unchanged. Part of the passthrough.

use std::fs::File;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use fuser::{FileHandle, FopenFlags, ReplyData, ReplyEmpty, ReplyLseek, ReplyOpen, ReplyWrite};
use rustix::fs::{Access as Mode, FallocateFlags, OFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};

use super::{Passthrough, Requester, errno};
use acheron_base::host_dir::{FileInfo, OsResult, reopen};
use acheron_vfs::Access;

/// An open mirrored file.
pub struct OpenMirrorFile(File);

impl OpenMirrorFile {
    pub fn file(&self) -> &File {
        &self.0
    }
}

/// The flags of `open(2)` with which the file itself is opened. Appending is requested with each write, because mapped
/// pages must be written to their own offset; the kernel handles the other flags.
pub fn flags(flags: i32) -> OFlags {
    let kept = libc::O_ACCMODE | libc::O_TRUNC | libc::O_SYNC | libc::O_DSYNC | libc::O_NOATIME;
    OFlags::from_bits_retain((flags & kept) as u32)
}

/// Whether opening with `flags` changes the file or allows to change it.
pub fn writes(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC)
}

impl Passthrough {
    pub fn open(&self, requester: Requester, ino: u64, flags: i32, reply: ReplyOpen) {
        self.in_pool(move |mirror| match mirror.opened(requester, ino, self::flags(flags)) {
            Ok((fh, flags)) => reply.opened(FileHandle(fh), flags),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn opened(&self, requester: Requester, ino: u64, flags: OFlags) -> OsResult<(u64, FopenFlags)> {
        let held = self.find_file(ino)?;
        if writes(flags) {
            self.may(requester, Access::Write, &held.view, held.path())?;
            held.changeable()?;
        }
        if !flags.contains(OFlags::WRONLY) {
            self.may(requester, Access::Read, &held.view, held.path())?;
        }
        let mut wanted = if flags.contains(OFlags::WRONLY) { Mode::empty() } else { Mode::READ_OK };
        wanted.set(Mode::WRITE_OK, writes(flags));
        self.check_mode(requester, &held.info, wanted)?;
        let file = reopen(held.fd()?, flags)?;
        let keep = self.inodes().cache_is_valid(ino, &FileInfo::of(&file)?);
        let keep = if keep { FopenFlags::FOPEN_KEEP_CACHE } else { FopenFlags::empty() };
        Ok((self.keep(ino, file.into()), keep))
    }

    /// Adds an open file to the table; returns its number.
    pub fn keep(&self, ino: u64, file: File) -> u64 {
        let fh = self.0.mirrors.files.add(OpenMirrorFile(file));
        if let Ok(held) = self.0.mirrors.files.get(fh) {
            self.inodes().opened(ino, &held);
        }
        fh
    }

    fn open_file(&self, fh: u64) -> OsResult<Arc<OpenMirrorFile>> {
        self.0.mirrors.files.get(fh).map_err(|_| Errno::BADF)
    }

    pub fn read(&self, fh: u64, offset: u64, size: u32, reply: ReplyData) {
        self.in_pool(move |mirror| {
            match mirror.open_file(fh).and_then(|held| read(held.file(), offset, size as usize)) {
                Ok(bytes) => reply.data(&bytes),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    /// `append`: writes at the current end of the file.
    pub fn write(&self, fh: u64, offset: u64, data: &[u8], append: bool, reply: ReplyWrite) {
        let data = data.to_vec();
        self.in_pool(move |mirror| {
            match mirror.open_file(fh).and_then(|held| write(held.file(), offset, &data, append)) {
                Ok(()) => reply.written(data.len() as u32),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub fn fsync(&self, fh: u64, only_data: bool, reply: ReplyEmpty) {
        self.finish(fh, reply, move |file| match only_data {
            true => rustix::fs::fdatasync(file),
            false => rustix::fs::fsync(file),
        });
    }

    pub fn fallocate(&self, fh: u64, offset: u64, length: u64, mode: i32, reply: ReplyEmpty) {
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        self.finish(fh, reply, move |file| rustix::fs::fallocate(file, mode, offset, length));
    }

    fn finish(&self, fh: u64, reply: ReplyEmpty, work: impl FnOnce(&File) -> OsResult<()> + Send + 'static) {
        self.in_pool(move |mirror| match mirror.open_file(fh).and_then(|held| work(held.file())) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        });
    }

    /// The offset of the next data or the next hole.
    pub fn lseek(&self, fh: u64, offset: i64, whence: i32, reply: ReplyLseek) {
        self.in_pool(move |mirror| {
            let sought = mirror.open_file(fh).and_then(|held| {
                let from = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
                let from = match whence {
                    libc::SEEK_DATA => SeekFrom::Data(from),
                    libc::SEEK_HOLE => SeekFrom::Hole(from),
                    _ => return Err(Errno::INVAL),
                };
                rustix::fs::seek(held.file(), from)
            });
            match sought {
                Ok(at) => reply.offset(at as i64),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub fn release(&self, fh: u64, reply: ReplyEmpty) {
        let held = self.0.mirrors.files.remove(fh);
        self.in_pool(move |_| {
            drop(held);
            reply.ok();
        });
    }
}

fn read(file: &File, offset: u64, size: usize) -> OsResult<Vec<u8>> {
    let mut bytes = vec![0; size];
    let mut filled = 0;
    while filled < size {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => (),
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn write(file: &File, offset: u64, data: &[u8], append: bool) -> OsResult<()> {
    let how = if append { ReadWriteFlags::APPEND } else { ReadWriteFlags::empty() };
    let mut written = 0;
    while written < data.len() {
        match rustix::io::pwritev2(file.as_fd(), &[IoSlice::new(&data[written..])], offset + written as u64, how) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => written += count,
            Err(Errno::INTR) => (),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
