//! `sources/`: a file for everything that can be waited for; reading one waits.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::wait::Armed;
use super::{EventLog, Selector, Voice, Watching};
use crate::jobs::Jobs;
use acheron_base::Result;
use acheron_vfs::{Answer, Caller, File, Handle, Kind, Listing, Node, Open, Reply, VirtualDir, replies};

/// The directory of selectors. Those with a number or a parameter are without end, so they are found but not listed.
pub fn directory(event_log: &Arc<EventLog>, book: &Arc<Jobs>) -> Listing {
    let mut listing = Listing::default();
    for kind in Voice::ALL {
        listing = listing
            .file(&format!("{}.json", kind.name()), Source::new(event_log, book, Selector::Signal(kind, None)))
            .dir(kind.name(), below(event_log, book, vec![kind.name()]));
    }
    let times = ["after", "at"]
        .into_iter()
        .fold(Listing::default(), |listing, when| listing.dir(when, below(event_log, book, vec!["time", when])));
    listing.dir("time", times)
}

fn below(event_log: &Arc<EventLog>, book: &Arc<Jobs>, under: Vec<&'static str>) -> VirtualDir {
    let (event_log, book) = (event_log.clone(), book.clone());
    VirtualDir::new(Vec::new, move |name| {
        let names: Vec<&str> = under.iter().copied().chain([name]).collect();
        Selector::source(&names).ok().map(|selector| Node::file(Source::new(&event_log, &book, selector)))
    })
}

struct Source {
    event_log: Arc<EventLog>,
    book: Arc<Jobs>,
    selector: Selector,
}

impl Source {
    fn new(event_log: &Arc<EventLog>, book: &Arc<Jobs>, selector: Selector) -> Self {
        Source { event_log: event_log.clone(), book: book.clone(), selector }
    }
}

impl File for Source {
    fn kind(&self) -> Kind {
        Kind::Waiting
    }

    /// Armed when it is opened: what happens between the opening and the reading is heard.
    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        let armed = Armed {
            selectors: vec![self.selector.clone()],
            cursor: self.event_log.last(),
            armed_at_ms: self.event_log.clock.now_ms(),
            fired: BTreeSet::new(),
            turn: self.event_log.turn(),
        };
        let once: Arc<dyn Reply> = Arc::new(Once(Watching::new(&self.event_log, &self.book, armed, None)));
        let answers = replies::Replies::default();
        answers.add(0, [once]);
        Ok(Box::new(Reader(answers)))
    }
}

/// A timer fires once; then the file is at its end.
struct Once(Watching);

impl Reply for Once {
    fn read(&self) -> Answer<Bytes> {
        self.0.read()
    }
}

struct Reader(replies::Replies);

impl Handle for Reader {
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
