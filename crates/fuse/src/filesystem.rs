//! One method per request of the kernel. Each is framed by [`Server::request`] and passed to the server or, for a
//! mirrored directory, to [`Passthrough`]. Requests that the tree does not define are refused here with the error
//! number that the kernel expects. The crate root uses it.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileHandle, Filesystem, INodeNo, InitFlags, IoctlFlags, KernelConfig, LockOwner,
    OpenFlags, PollEvents, PollFlags, PollNotifier, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::passthrough::{AttributeChange, Passthrough, is_mirrored};
use super::request_counts::Operation;
use super::server::Server;

pub struct FuseAdapter(pub Arc<Server>);

impl FuseAdapter {
    /// The handler for a mirrored file; `None` for a file of the tree.
    fn mirrored(&self, ino: INodeNo) -> Option<Passthrough> {
        is_mirrored(ino.0).then(|| Passthrough(self.0.clone()))
    }
}

/// The capabilities requested from the kernel. Never the caching of symbolic links (their targets differ between
/// callers), of writes, nor explicit invalidation of data (growth would read as zeros): cached bytes are dropped when a
/// file is seen to have changed.
const WANTED: [InitFlags; 5] = [
    InitFlags::FUSE_AUTO_INVAL_DATA,
    InitFlags::FUSE_ATOMIC_O_TRUNC,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
];

impl Filesystem for FuseAdapter {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for wanted in WANTED {
            // An older kernel lacks some of them; all of them only improve speed.
            let _ = config.add_capabilities(wanted);
        }
        Ok(())
    }

    fn lookup(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.0.request(Operation::Lookup, req, parent.0, || match self.mirrored(parent) {
            Some(mirrored) => mirrored.lookup(req.into(), parent.0, name, reply),
            None => self.0.lookup(req, parent.0, name, reply),
        });
    }

    fn forget(&self, req: &Request, ino: INodeNo, nlookup: u64) {
        self.0.request(Operation::Forget, req, ino.0, || self.0.forget(ino.0, nlookup));
    }

    fn getattr(&self, req: &Request, ino: INodeNo, fh: Option<FileHandle>, reply: ReplyAttr) {
        self.0.request(Operation::Getattr, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.getattr(ino.0, reply),
            None => self.0.getattr(req.into(), ino.0, fh.map(|fh| fh.0), reply),
        });
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        self.0.request(Operation::Setattr, req, ino.0, || match size {
            _ if is_mirrored(ino.0) => {
                let by = fh.map(|fh| fh.0);
                let change = AttributeChange { mode, uid, gid, size, accessed: atime, modified: mtime, by };
                Passthrough(self.0.clone()).setattr(req.into(), ino.0, change, reply);
            }
            _ if mode.is_some() || uid.is_some() || gid.is_some() => self.0.set_mode(req.into(), ino.0, mode, reply),
            Some(size) => self.0.truncate(req, ino.0, fh.map(|fh| fh.0), size, reply),
            None => self.0.set_times(req, ino.0, reply),
        });
    }

    fn readlink(&self, req: &Request, ino: INodeNo, reply: ReplyData) {
        self.0.request(Operation::Readlink, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.readlink(req.into(), ino.0, reply),
            None => self.0.readlink(req, ino.0, reply),
        });
    }

    fn open(&self, req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.0.request(Operation::Open, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.open(req.into(), ino.0, flags.0, reply),
            None => self.0.open(req, ino.0, flags.0, reply),
        });
    }

    fn read(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.0.request(Operation::Read, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.read(fh.0, offset, size, reply),
            None => self.0.read(req, fh.0, offset, size, flags.0, reply),
        });
    }

    fn write(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.0.request(Operation::Write, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => {
                // A mapped page is written back to its own offset.
                let delayed = write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
                let append = flags.0 & libc::O_APPEND != 0 && !delayed;
                mirrored.write(fh.0, offset, data, append, reply);
            }
            None => self.0.write(req, fh.0, offset, data, flags.0, reply),
        });
    }

    fn flush(&self, req: &Request, ino: INodeNo, fh: FileHandle, _lock_owner: LockOwner, reply: ReplyEmpty) {
        self.0.request(Operation::Flush, req, ino.0, || match is_mirrored(ino.0) {
            true => reply.ok(), // what was written is in the file
            false => self.0.flush(req, fh.0, reply),
        });
    }

    fn fsync(&self, req: &Request, ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        self.0.request(Operation::Fsync, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.fsync(fh.0, datasync, reply),
            None => self.0.fsync(req, fh.0, reply),
        });
    }

    fn release(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.0.request(Operation::Release, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.release(fh.0, reply),
            None => self.0.release(fh.0, reply),
        });
    }

    fn opendir(&self, req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.0.request(Operation::Opendir, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.opendir(req.into(), ino.0, reply),
            None => self.0.opendir(req, ino.0, reply),
        });
    }

    fn readdir(&self, req: &Request, ino: INodeNo, fh: FileHandle, offset: u64, reply: ReplyDirectory) {
        self.0.request(Operation::Readdir, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.readdir(req.into(), fh.0, offset, reply),
            None => self.0.readdir(ino.0, fh.0, offset, reply),
        });
    }

    fn readdirplus(&self, req: &Request, ino: INodeNo, fh: FileHandle, offset: u64, reply: ReplyDirectoryPlus) {
        self.0.request(Operation::Readdirplus, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.readdirplus(req.into(), fh.0, offset, reply),
            None => self.0.readdirplus(ino.0, fh.0, offset, reply),
        });
    }

    fn releasedir(&self, req: &Request, ino: INodeNo, fh: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        self.0.request(Operation::Releasedir, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.releasedir(fh.0, reply),
            None => self.0.releasedir(fh.0, reply),
        });
    }

    fn fsyncdir(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn statfs(&self, req: &Request, ino: INodeNo, reply: ReplyStatfs) {
        self.0.request(Operation::Statfs, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.statfs(ino.0, reply),
            None => reply.statfs(0, 0, 0, self.0.inodes.len() as u64, 0, 4096, 255, 4096),
        });
    }

    fn poll(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        ph: PollNotifier,
        events: PollEvents,
        flags: PollFlags,
        reply: ReplyPoll,
    ) {
        self.0.request(Operation::Poll, req, ino.0, || match is_mirrored(ino.0) {
            // A file on a disk can always be read and written.
            true => {
                reply.poll(PollEvents::POLLIN | PollEvents::POLLRDNORM | PollEvents::POLLOUT | PollEvents::POLLWRNORM);
            }
            false => self.0.poll(fh.0, &ph, events, flags, reply),
        });
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        self.0.request(Operation::Create, req, parent.0, || match self.mirrored(parent) {
            Some(mirrored) => mirrored.create(req.into(), parent.0, name, mode, flags, reply),
            None => self.0.create(req, parent.0, name, flags, reply),
        });
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        self.0.request(Operation::Mkdir, req, parent.0, || match self.mirrored(parent) {
            Some(mirrored) => mirrored.mkdir(req.into(), parent.0, name, mode, reply),
            None => self.0.mkdir(req, parent.0, name, reply),
        });
    }

    fn unlink(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.0.request(Operation::Remove, req, parent.0, || match self.mirrored(parent) {
            Some(mirrored) => mirrored.unlink(req.into(), parent.0, name, reply),
            None => self.0.unlink(req, parent.0, name, reply),
        });
    }

    fn rmdir(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.0.request(Operation::Remove, req, parent.0, || match self.mirrored(parent) {
            Some(mirrored) => mirrored.rmdir(req.into(), parent.0, name, reply),
            None => self.0.rmdir(req, parent.0, name, reply),
        });
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        self.0.request(Operation::Create, req, parent.0, || match self.mirrored(parent) {
            Some(mirrored) => mirrored.mknod(req.into(), parent.0, name, mode, rdev, reply),
            None => reply.error(Errno::EACCES),
        });
    }

    fn symlink(&self, req: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        self.0.request(Operation::Link, req, parent.0, || match self.mirrored(parent) {
            Some(mirrored) => mirrored.symlink(req.into(), parent.0, name, target, reply),
            None => reply.error(Errno::EACCES),
        });
    }

    fn link(&self, req: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        self.0.request(Operation::Link, req, ino.0, || match (self.mirrored(ino), self.mirrored(newparent)) {
            (Some(mirrored), Some(_)) => mirrored.link(req.into(), ino.0, newparent.0, newname, reply),
            (None, None) => reply.error(Errno::EACCES),
            _ => reply.error(Errno::EXDEV),
        });
    }

    fn rename(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        self.0.request(Operation::Rename, req, parent.0, || match (self.mirrored(parent), self.mirrored(newparent)) {
            (Some(mirrored), Some(_)) => {
                mirrored.rename(req.into(), (parent.0, name), (newparent.0, newname), flags.bits(), reply);
            }
            (None, None) => self.0.rename(req, (parent.0, name), (newparent.0, newname), flags.bits(), reply),
            _ => reply.error(Errno::EXDEV),
        });
    }

    /// `isatty` sends this for every file; success would make it a terminal.
    fn ioctl(
        &self,
        req: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        self.0.request(Operation::Ioctl, req, ino.0, || reply.error(Errno::ENOTTY));
    }

    fn fallocate(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.0.request(Operation::Allocate, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.fallocate(fh.0, offset, length, mode, reply),
            None => reply.error(Errno::EOPNOTSUPP),
        });
    }

    // For files of the tree these answer "not supported" once, and the kernel does not ask again. Where directories are
    // mirrored it must keep asking.

    fn access(&self, req: &Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        self.0.request(Operation::Access, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.access(req.into(), ino.0, mask.bits(), reply),
            None if self.0.mirroring => reply.ok(),
            None => reply.error(Errno::ENOSYS),
        });
    }

    fn getxattr(&self, req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        self.0.request(Operation::Attribute, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.getxattr(req.into(), ino.0, name, size, reply),
            None => reply.error(self.0.no_attributes()),
        });
    }

    fn listxattr(&self, req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.0.request(Operation::Attribute, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.listxattr(req.into(), ino.0, size, reply),
            None => reply.error(self.0.no_attributes()),
        });
    }

    fn setxattr(
        &self,
        req: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        self.0.request(Operation::Attribute, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.setxattr(req.into(), ino.0, name, value, flags, reply),
            None => reply.error(self.0.no_attributes()),
        });
    }

    fn removexattr(&self, req: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.0.request(Operation::Attribute, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.removexattr(req.into(), ino.0, name, reply),
            None => reply.error(self.0.no_attributes()),
        });
    }

    fn lseek(&self, req: &Request, ino: INodeNo, fh: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        self.0.request(Operation::Seek, req, ino.0, || match self.mirrored(ino) {
            Some(mirrored) => mirrored.lseek(fh.0, offset, whence, reply),
            None if self.0.mirroring => reply.error(Errno::EINVAL),
            None => reply.error(Errno::ENOSYS),
        });
    }
}
