//! The baseline of every round trip: a file system of one file that says the same bytes to everybody, and one that
//! never says anything, on fuser and nothing else.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request,
    Session, WriteFlags,
};
use parking_lot::Mutex;

use super::house::{Scratch, again, ready};

const LONG: Duration = Duration::from_secs(3600);
const FILE: INodeNo = INodeNo(2);

const WAITS: INodeNo = INodeNo(3);
const KEPT: INodeNo = INodeNo(4);

/// What the file says, and those who wait for what never comes.
struct Bare(Vec<u8>, Mutex<Vec<ReplyData>>);

impl Bare {
    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let (kind, perm, size) = match ino {
            FILE | WAITS | KEPT => (FileType::RegularFile, 0o644, self.0.len() as u64),
            _ => (FileType::Directory, 0o755, 0),
        };
        FileAttr {
            ino,
            size,
            blocks: 1,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Bare {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.add_capabilities(InitFlags::FUSE_ATOMIC_O_TRUNC);
        Ok(())
    }

    fn lookup(&self, _req: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name.to_str() {
            Some("file") => reply.entry(&LONG, &self.attributes(FILE), Generation(0)),
            Some("kept") => reply.entry(&LONG, &self.attributes(KEPT), Generation(0)),
            Some("waits") => reply.entry(&LONG, &self.attributes(WAITS), Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&LONG, &self.attributes(ino));
    }

    fn open(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let how = if ino == KEPT { FopenFlags::FOPEN_KEEP_CACHE } else { FopenFlags::FOPEN_DIRECT_IO };
        reply.opened(FileHandle(1), how | FopenFlags::FOPEN_NOFLUSH);
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if ino == WAITS {
            return self.1.lock().push(reply);
        }
        reply.data(&self.0[..self.0.len().min(size as usize)]);
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        reply.written(data.len() as u32);
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }
}

/// The daemon's side: serves a file of `bytes` bytes on `dir` until it is killed.
pub fn serve(dir: &Path, bytes: usize) -> io::Result<()> {
    let mut config = Config::default();
    config.n_threads = Some(1);
    let session = Session::new(Bare(vec![b'x'; bytes], Mutex::default()), dir, &config)?;
    ready();
    session.run()
}

/// The bare file system, mounted, in a process of its own.
pub struct Mounted {
    daemon: Child,
    dir: PathBuf,
    _scratch: Scratch,
}

impl Mounted {
    pub fn start(bytes: usize) -> Mounted {
        let scratch = Scratch::new();
        let dir = scratch.make("mnt");
        let daemon = again(&["__bare", &dir.to_string_lossy(), &bytes.to_string()]);
        Mounted { daemon, dir, _scratch: scratch }
    }

    pub fn file(&self) -> PathBuf {
        self.dir.join("file")
    }

    /// Whose bytes the kernel keeps.
    pub fn kept(&self) -> PathBuf {
        self.dir.join("kept")
    }

    /// Whose readers wait until the mount goes.
    pub fn waits(&self) -> PathBuf {
        self.dir.join("waits")
    }

    pub fn pid(&self) -> u32 {
        self.daemon.id()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(&self.dir, nix::mount::MntFlags::MNT_DETACH);
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
