//! Requests about the bytes of files: answered now if possible, else parked. Part of the server; uses the tree.

use std::sync::{Arc, OnceLock};

use fuser::{
    FileHandle, FopenFlags, PollEvents, PollFlags, PollNotifier, ReplyAttr, ReplyData, ReplyEmpty, ReplyOpen,
    ReplyPoll, ReplyWrite, Request,
};

use super::attributes;
use super::handles::OpenFile;
use super::parking::Responder;
use super::poll_watch::PollWatch;
use super::server::{AfterNotices, AnswerMode, ChangedAttributes, PolledReply, Server, WriteReply, errno};
use acheron_base::{Code, Error, Result};
use acheron_vfs::{Answer, Handle, Kind, Node, Open, not_permitted};

impl Server {
    pub fn open(self: &Arc<Self>, req: &Request, ino: u64, flags: i32, reply: ReplyOpen) {
        let how = attributes::open_mode(flags);
        let opened = self.inodes.get(ino).and_then(|known| {
            let caller = self.caller(req);
            let handle = self.tree.open(&caller, &known.node, &known.path, how)?;
            let Node::File(file) = &known.node else { return Err(not_a_file(&known.path)) };
            let keep = file.kind() == Kind::Text && self.inodes.cache_is_valid(ino);
            let counted = attributes::is_counted(&known.node) && how.read && !how.write;
            let fh = self.opened(handle, file.kind(), how, caller.pid);
            Ok((fh, attributes::file_flags(&**file, how, keep), counted))
        });
        match opened {
            Ok((fh, flags, true)) => {
                let length = self.files.get(fh).map_or_else(Answer::refuse, |opened| opened.handle.length());
                let reply = CountedOpen { reply, server: self.clone(), ino, fh, flags };
                self.answer(req, AnswerMode { patient: false, begun: false }, length, reply);
            }
            Ok((fh, flags, false)) => reply.opened(FileHandle(fh), flags),
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub fn opened(&self, handle: Box<dyn Handle>, kind: Kind, how: Open, opener: u32) -> u64 {
        self.files.add(OpenFile { handle, kind, how, opener, length: OnceLock::new(), poll_watch: OnceLock::new() })
    }

    pub fn read(&self, req: &Request, fh: u64, offset: u64, size: u32, flags: i32, reply: ReplyData) {
        let opened = match self.files.get(fh) {
            Ok(opened) => opened,
            Err(error) => return reply.error(errno(&error)),
        };
        let how = AnswerMode { patient: flags & libc::O_NONBLOCK == 0, begun: false };
        let answer = opened.handle.read(offset, size as usize);
        // Answered directly where the page may be cached or mapped: a notice may be waiting for this very page.
        let straight = matches!(opened.kind, Kind::Text | Kind::Item | Kind::Log);
        match straight {
            true => self.answer_and_poll(req, how, answer, opened, reply),
            false => self.answer_and_poll(req, how, answer, opened, AfterNotices(reply, self.notices.clone())),
        }
    }

    pub fn write(&self, req: &Request, fh: u64, offset: u64, data: &[u8], flags: i32, reply: ReplyWrite) {
        let opened = match self.files.get(fh) {
            Ok(opened) => opened,
            Err(error) => return reply.error(errno(&error)),
        };
        let how = AnswerMode { patient: flags & libc::O_NONBLOCK == 0, begun: true };
        let answer = opened.handle.write(offset, data);
        self.answer_and_poll(
            req,
            how,
            answer,
            opened,
            AfterNotices(WriteReply(reply, data.len() as u32), self.notices.clone()),
        );
    }

    pub fn flush(&self, req: &Request, fh: u64, reply: ReplyEmpty) {
        match self.files.get(fh) {
            Ok(opened) => {
                // Compares processes, not threads. A process that cannot be seen (0) never counts as the opener.
                let closer = if opened.how.write { self.caller(req).pid } else { 0 };
                let answer = opened.handle.flush(closer != 0 && closer == opened.opener);
                self.done(req, answer, opened, reply);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub fn fsync(&self, req: &Request, fh: u64, reply: ReplyEmpty) {
        match self.files.get(fh) {
            Ok(opened) => self.done(req, opened.handle.sync(), opened, reply),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn done(&self, req: &Request, answer: Answer<()>, opened: Arc<OpenFile>, reply: ReplyEmpty) {
        let how = AnswerMode { patient: true, begun: true };
        self.answer_and_poll(req, how, answer, opened, AfterNotices(reply, self.notices.clone()));
    }

    /// Answers, and notifies the pollers of this handle.
    fn answer_and_poll<T, R>(&self, req: &Request, how: AnswerMode, answer: Answer<T>, opened: Arc<OpenFile>, reply: R)
    where
        T: Send + 'static,
        R: Responder<T>,
        PolledReply<R>: Responder<T>,
    {
        match opened.poll_watch.get() {
            None => self.answer(req, how, answer, reply),
            Some(_) => self.answer(req, how, answer, PolledReply(reply, opened)),
        }
    }

    pub fn release(&self, fh: u64, reply: ReplyEmpty) {
        if let Some(opened) = self.files.remove(fh) {
            if let Some(poll_watch) = opened.poll_watch.get() {
                poll_watch.stop();
            }
            opened.handle.closed();
        }
        reply.ok();
    }

    pub fn poll(&self, fh: u64, notifier: &PollNotifier, wanted: PollEvents, flags: PollFlags, reply: ReplyPoll) {
        let opened = match self.files.get(fh) {
            Ok(opened) => opened,
            Err(error) => return reply.error(errno(&error)),
        };
        let mut events = PollEvents::empty();
        if opened.how.write {
            events |= PollEvents::POLLOUT | PollEvents::POLLWRNORM;
        }
        if opened.how.read {
            let poll_watch = opened.poll_watch.get_or_init(|| PollWatch::new(self.turns.clone(), self.notices.clone()));
            let notify = flags.contains(PollFlags::FUSE_POLL_SCHEDULE_NOTIFY);
            // A caller that polls only for output may still write the rest of its message.
            let readable = match wanted.intersects(PollEvents::POLLIN | PollEvents::POLLRDNORM) {
                true => opened.handle.poll_input(),
                false => opened.handle.readable(),
            };
            if poll_watch.asked(notify.then(|| notifier.handle().0), readable) {
                events |= PollEvents::POLLIN | PollEvents::POLLRDNORM;
            }
        }
        reply.poll(events);
    }

    /// `truncate(2)`: by a handle, or by the path alone.
    pub fn truncate(self: &Arc<Self>, req: &Request, ino: u64, fh: Option<u64>, size: u64, reply: ReplyAttr) {
        let answer = match fh {
            Some(fh) => self.files.get(fh).map_or_else(Answer::refuse, |opened| opened.handle.truncate(size)),
            None => self.truncate_path(req, ino, size).unwrap_or_else(Answer::refuse),
        };
        let reply = AfterNotices(ChangedAttributes(reply, self.clone(), ino), self.notices.clone());
        self.answer(req, AnswerMode { patient: true, begun: true }, answer, reply);
    }

    /// Opens the file, truncates it and closes it again.
    fn truncate_path(&self, req: &Request, ino: u64, size: u64) -> Result<Answer<()>> {
        let known = self.inodes.get(ino)?;
        let caller = self.caller(req);
        let handle = self.tree.open(&caller, &known.node, &known.path, Open { write: true, ..Open::default() })?;
        let Node::File(file) = &known.node else { return Err(not_a_file(&known.path)) };
        if !matches!(file.kind(), Kind::Item | Kind::Scratch) {
            return Ok(Answer::ok(())); // commands have no length
        }
        Ok(Answer::soon(async move {
            handle.truncate(size).wait().await?;
            handle.sync().wait().await?;
            handle.closed();
            Ok(())
        }))
    }

    /// Accepts, without effect, new times of a file that may be written, because `touch` and `cp -p` set them.
    pub fn set_times(self: &Arc<Self>, req: &Request, ino: u64, reply: ReplyAttr) {
        let allowed = self.inodes.get(ino).and_then(|known| match &known.node {
            Node::File(file) if file.mode() & 0o200 != 0 => {
                self.tree.may_write(&self.caller(req), &**file, &known.path)
            }
            _ => Err(not_permitted("the times of this file cannot be set")),
        });
        match allowed {
            Ok(()) => self.getattr(req.into(), ino, None, reply),
            Err(error) => reply.error(errno(&error)),
        }
    }
}

/// The answer to an open whose bytes are counted first.
struct CountedOpen {
    reply: ReplyOpen,
    server: Arc<Server>,
    ino: u64,
    fh: u64,
    flags: FopenFlags,
}

impl Responder<Option<u64>> for CountedOpen {
    fn respond(self, outcome: Result<Option<u64>>) {
        let CountedOpen { reply, server, ino, fh, flags } = self;
        if let Err(error) = outcome.as_ref()
            && error.code == Code::Interrupted
        {
            if let Some(opened) = server.files.remove(fh) {
                opened.handle.closed();
            }
            return reply.error(errno(error));
        }
        if let (Ok(Some(length)), Ok(opened)) = (outcome, server.files.get(fh)) {
            _ = opened.length.set(length);
            if server.inodes.set_length(ino, length) {
                server.notices.attributes(ino);
            }
        }
        server.notices.after(move || reply.opened(FileHandle(fh), flags));
    }
}

fn not_a_file(path: &str) -> Error {
    Error::new(Code::Os(libc::EISDIR), format!("`{path}` is not a file"))
}
