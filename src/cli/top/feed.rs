//! What the screen shows, fetched once a second on a thread of its own; and what the keys write, on another.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::super::Failure;
use super::super::host_view::HostView;
use super::super::log::{LogLine, LogSource};
use super::approvals::{self, PendingApproval};
use crate::host::overview::HostOverview;
use acheron_base::Error;

const PERIOD: Duration = Duration::from_secs(1);
/// The lines of the log that are kept.
pub const LINES: usize = 200;

/// What was fetched.
pub enum TopUpdate {
    Seen(Box<TopSnapshot>),
    /// What came of something that a key has begun.
    Done(String),
    /// The host is not there any more.
    Gone(String),
}

/// The host at one moment.
pub struct TopSnapshot {
    pub host: HostOverview,
    pub approvals: Vec<PendingApproval>,
    /// What was added to the log since the last one.
    pub lines: Vec<LogLine>,
}

pub struct Feed(Box<dyn Fn(TopUpdate) + Send + Sync + 'static>);

impl Feed {
    /// Fetches until nobody takes what it fetches.
    pub fn start<T: Send + 'static>(
        state: &Path,
        tell: Sender<T>,
        of: impl Fn(TopUpdate) -> T + Copy + Send + Sync + 'static,
    ) -> Result<Feed, Failure> {
        let mut host = HostView::of(state)?;
        let mut source = acheron_store::look_unlocked(state, |conn| LogSource::newest(conn, LINES as u64))?;
        let (state, to) = (state.to_owned(), tell.clone());
        std::thread::spawn(move || {
            loop {
                let update = match fetch(&mut host, &mut source, &state) {
                    Ok(seen) => TopUpdate::Seen(Box::new(seen)),
                    Err(error) => TopUpdate::Gone(error.message),
                };
                let is_last = matches!(update, TopUpdate::Gone(_));
                if to.send(of(update)).is_err() || is_last {
                    return;
                }
                std::thread::sleep(PERIOD);
            }
        });
        let tell = parking_lot::Mutex::new(tell);
        Ok(Feed(Box::new(move |update| _ = tell.lock().send(of(update)))))
    }

    /// Writes to a file of the tree, and tells what came of it.
    pub fn write(&self, path: PathBuf, text: String, said: String) {
        let written = std::fs::OpenOptions::new().write(true).open(&path);
        let written = written.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
        (self.0)(TopUpdate::Done(match written {
            Ok(()) => said,
            Err(error) => format!("{}: {error}", path.display()),
        }));
    }
}

fn fetch(host: &mut HostView, source: &mut LogSource, state: &Path) -> Result<TopSnapshot, Error> {
    let host = host.look().map_err(|failure| failure.error)?;
    let mut lines = std::collections::VecDeque::new();
    acheron_store::look_unlocked(state, |conn| {
        source.read(conn, |line| {
            if lines.len() == LINES {
                lines.pop_front();
            }
            lines.push_back(line);
            true
        })
    })?;
    let approvals = host.mountpoint.as_deref().map(approvals::pending).unwrap_or_default();
    Ok(TopSnapshot { host, approvals, lines: lines.into() })
}
