//! `sources/`: one file for each thing that can be waited for; a read waits.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::wait::Armed;
use super::{EventLog, Selector, SignalType, Waiter};
use crate::jobs::Jobs;
use acheron_base::Result;
use acheron_vfs::{
    Answer, Caller, Dir as _, File, Handle, Kind, Listing, Node, Open, Reply, VirtualDir, replies, text,
};

const README: &str = "\
# sources

A file for everything that can be waited for. They are not listed, so that a program that reads a whole tree does not wait
here for ever; name the one that you want, and reading it waits:

- `user.json`, `agent.json`, `hook.json`: any signal of that type; `user/go.json`: the signal `go`.
- `mail.json`: the next message that comes to this agent's inbox.
- `time/after/1000.json`: in a second; `time/at/1767225600000.json`: at that time, in milliseconds since 1970.
";

/// The directory of selectors. None is listed: reading one waits, on an idle tree for ever.
pub fn directory(event_log: &Arc<EventLog>, jobs: &Arc<Jobs>) -> VirtualDir {
    let mut listed = Listing::default().file("README.md", text(README));
    for kind in SignalType::ALL {
        listed = listed.dir(kind.name(), below(event_log, jobs, vec![kind.name()]));
    }
    let times = ["after", "at"]
        .into_iter()
        .fold(Listing::default(), |listing, when| listing.dir(when, below(event_log, jobs, vec!["time", when])));
    let listed = listed.dir("time", times);
    let names: Vec<String> = listed.list().into_iter().map(|(name, _)| name).collect();
    let (all, any) = (names.len(), below(event_log, jobs, Vec::new()));
    VirtualDir::new(move || names.clone(), move |name| listed.lookup(name).or_else(|| any.lookup(name)))
        .counted(move || all)
}

fn below(event_log: &Arc<EventLog>, jobs: &Arc<Jobs>, under: Vec<&'static str>) -> VirtualDir {
    let (event_log, jobs) = (event_log.clone(), jobs.clone());
    VirtualDir::new(Vec::new, move |name| {
        let names: Vec<&str> = under.iter().copied().chain([name]).collect();
        Selector::source(&names).ok().map(|selector| Node::file(SourceFile::new(&event_log, &jobs, selector)))
    })
}

struct SourceFile {
    event_log: Arc<EventLog>,
    jobs: Arc<Jobs>,
    selector: Selector,
}

impl SourceFile {
    fn new(event_log: &Arc<EventLog>, jobs: &Arc<Jobs>, selector: Selector) -> Self {
        SourceFile { event_log: event_log.clone(), jobs: jobs.clone(), selector }
    }
}

impl File for SourceFile {
    fn kind(&self) -> Kind {
        Kind::Waiting
    }

    /// Armed on open, so that events between the open and the read are not lost.
    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        let armed = Armed {
            selectors: [self.selector.clone()].into(),
            cursor: self.event_log.last(),
            armed_at_ms: self.event_log.clock.now_ms(),
            fired: BTreeSet::new(),
            turn: self.event_log.turn(),
            watched: Arc::default(),
        };
        let once: Arc<dyn Reply> = Arc::new(Once(Waiter::new(&self.event_log, &self.jobs, armed, None)));
        let answers = replies::Replies::default();
        answers.add(0, [once]);
        Ok(Box::new(SourceReader(answers)))
    }
}

/// A timer fires once; after that, the file is at its end.
struct Once(Waiter);

impl Reply for Once {
    fn read(&self) -> Answer<Bytes> {
        self.0.read()
    }

    fn readable(&self) -> Answer<()> {
        self.0.readable()
    }
}

struct SourceReader(replies::Replies);

impl Handle for SourceReader {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        self.0.read(offset, size)
    }

    fn readable(&self) -> Answer<()> {
        self.0.readable()
    }

    fn buffered_bytes(&self) -> usize {
        self.0.buffered_bytes()
    }

    fn discard_buffer(&self) {
        self.0.discard_buffer();
    }
}
