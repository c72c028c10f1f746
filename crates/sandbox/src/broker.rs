//! Changes files for a program in the directories that Landlock grants to nobody, because a name in them is reserved.
//!
//! The kernel stops a program at each call that could change such a directory and asks here, in the init. A call that
//! concerns another directory, or a reserved name, goes on: then the kernel decides, and for a reserved name it refuses. So
//! nothing is lost when a program changes the words of its call while they are looked at. All other calls are carried out
//! here, on a directory that is held open, and the program gets the result. The [`init`](super::init) uses it.

mod calls;
mod listener;
mod perform;

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::io::Errno;

use super::write_grants::WritableTree;
use calls::Call;
pub(super) use calls::{OPEN_FLAGS, OPENINGS, WATCHED};
pub(super) use listener::{Listener, install};
use perform::{Caller, ELSEWHERE, Outcome, Room};

/// Answers the calls of one sandbox.
pub(super) struct Broker {
    listener: Listener,
    trees: Vec<WritableTree>,
    /// The directories in which nothing is served, of those that are the sandbox's own.
    elsewhere: Vec<&'static str>,
    /// The files and directories that were made.
    pub made: MadeFiles,
}

/// Counts the files and directories that are made in the trees.
pub(super) struct MadeFiles {
    pub count: u64,
    limit: u64,
}

impl MadeFiles {
    /// Counts one more, if it may be made.
    fn take(&mut self) -> bool {
        let may = self.count < self.limit;
        self.count += u64::from(may);
        may
    }
}

impl Broker {
    /// `inside` says whether the programs have a root of their own; `limit` is how many files and directories may be made.
    pub fn new(listener: Listener, trees: Vec<WritableTree>, inside: bool, limit: u64) -> Broker {
        let free = |place: &&&str| inside && !trees.iter().any(|tree| tree.lies_in(Path::new(place)));
        let elsewhere = ELSEWHERE.iter().filter(free).copied().collect();
        Broker { listener, trees, elsewhere, made: MadeFiles { count: 0, limit } }
    }

    /// Ready when a program waits.
    pub fn waiting(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers the next call. A program that was killed in the meantime needs no answer. `full` says that nothing more may
    /// be written.
    pub fn answer(&mut self, full: bool) {
        let Some(stopped) = self.listener.next() else { return };
        let caller = Caller { thread: stopped.thread, elsewhere: &self.elsewhere };
        let outcome = match Call::read(stopped.number, &stopped.arguments) {
            Some(call) => {
                let room = Room { full, made: &mut self.made };
                perform::decide(&self.trees, &caller, &call, room, || self.listener.valid(&stopped))
            }
            None => Outcome::Native,
        };
        match outcome {
            Outcome::Native => self.listener.go_on(&stopped),
            Outcome::Done(Ok(())) => self.listener.result(&stopped, Ok(())),
            Outcome::Done(Err(errno)) => self.listener.result(&stopped, Err(errno)),
            Outcome::Opened { file, close_on_exec } => {
                if let Err(errno) = self.listener.hand_over(&stopped, file.as_fd(), close_on_exec) {
                    // Gone, or it has all the files that it may have.
                    self.listener.result(&stopped, Err(if errno == Errno::NOENT { Errno::INTR } else { errno }));
                }
            }
        }
    }
}
