//! `approvals/`: the requests that wait for the operator, and those that were decided. `policy` shows none of it to agents.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Approval, Approvals};
use crate::policy::PrincipalCaller as _;
use acheron_approvals::GivenAnswer;
use acheron_base::{Error, Result};
use acheron_vfs::{
    Answer, Caller, File, Handle, Kind, Listing, Node, Open, VirtualDir, line, live, pretty, slice, text, waiting,
};

const README: &str = "\
# approvals

Rules with `ask` in the mountspec make an agent wait for you. Each request is a directory here, newest last.

- `next.json` (not listed) waits for the oldest request without a decision and shows it. Reading takes nothing away.
- `<id>/request.json` is everything that you need: who, what with all arguments, facts of risk, the rule that asks, and what
  each answer would write. `summary` is by the host; `stated_reason` is what the model says.
- `<id>/decision` takes your answer: `allow`, `deny: reason`, `allow for 10m`, `allow always`.
- `<id>/status.json` waits until the request is decided, has expired, or was withdrawn.
- `status.json` lists the requests that wait, and never waits itself.

    cat next.json
    echo 'deny: not on a Friday' > <id>/decision

An answer counts for exactly what `request.json` shows. `allow for` and `allow always` are exceptions of the rule that asked, for
that agent alone; `/agents/<agent>/permissions/always.json` lists them, and removing one there revokes it. Nobody answers: the
request expires, nothing is done, and the agent is told that this is not a denial. No agent sees this directory.
";

const TEMPLATE: &str = "allow | deny: reason | allow for 10m | allow always\n";

/// The longest write to `decision`, in bytes.
const LONGEST: usize = 4096;

pub fn directory(approvals: &Arc<Approvals>) -> VirtualDir {
    let (names, counted, found) = (approvals.clone(), approvals.clone(), approvals.clone());
    let (status, next) = (approvals.clone(), approvals.clone());
    let readme = Node::file(text(README));
    let status = Node::file(live(move |_| Ok(pretty(&status_page(&status)))));
    let next = Node::file(waiting(move |_| next_request(&next)));
    let names = move || {
        let fixed = ["README.md", "status.json"].into_iter().map(str::to_owned);
        fixed.chain(names.all().iter().map(|approval| approval.id.clone())).collect()
    };
    VirtualDir::new(names, move |name| match name {
        "README.md" => Some(readme.clone()),
        "status.json" => Some(status.clone()),
        "next.json" => Some(next.clone()),
        id => found.get(id).map(|approval| Node::dir(request_directory(&found, &approval))),
    })
    .counted(move || counted.all().len())
    .notifying(approvals.notifier.clone())
}

fn request_directory(approvals: &Arc<Approvals>, approval: &Arc<Approval>) -> Listing {
    let (asked, about) = (approvals.clone(), approval.clone());
    let ended = approval.clone();
    let at = {
        let approval = approval.clone();
        move || time(approval.status().decision.map_or(approval.created_at_ms, |decision| decision.at_ms))
    };
    let request = live(move |_| Ok(pretty(&asked.request_page(&about)))).modified_at(at.clone());
    let status = waiting(move |_| match ended.status().state.settled() {
        true => Answer::ok(line(&ended.status_page())),
        false => {
            let ended = ended.clone();
            Answer::later(async move {
                ended.settled().await;
                Ok(line(&ended.status_page()))
            })
        }
    });
    Listing::default()
        .file("request.json", request)
        .file("decision", DecisionFile { approvals: approvals.clone(), approval: approval.clone() })
        .file("status.json", status.modified_at(at))
}

fn time(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

/// `status.json`: what waits, and why the last decision was refused.
fn status_page(approvals: &Approvals) -> Value {
    let all = approvals.all();
    let waiting: Vec<Value> = all
        .iter()
        .filter(|approval| !approval.status().state.settled())
        .map(|approval| {
            json!({
                "id": approval.id,
                "agent": approval.request.agent,
                "summary": approval.request.subject.summary(&approval.request.agent),
                "created_at_ms": approval.created_at_ms,
                "expires_at_ms": approval.expires_at_ms,
            })
        })
        .collect();
    json!({
        "waiting": waiting.len(),
        "requests": waiting,
        "listeners": approvals.listeners(),
        "error": *approvals.refused.lock(),
    })
}

/// Counts a reader that would show a request.
struct Listening(Arc<AtomicUsize>);

impl Listening {
    fn begin(approvals: &Approvals) -> Listening {
        approvals.listeners.fetch_add(1, Ordering::SeqCst);
        Listening(approvals.listeners.clone())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The oldest request without a decision, as soon as there is one.
fn next_request(approvals: &Arc<Approvals>) -> Answer<Bytes> {
    if let Some(approval) = approvals.oldest() {
        return Answer::ok(pretty(&approvals.request_page(&approval)));
    }
    let approvals = approvals.clone();
    let listening = Listening::begin(&approvals);
    Answer::later(async move {
        let _listening = listening;
        let mut changes = approvals.changed.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(approval) = approvals.oldest() {
                return Ok(pretty(&approvals.request_page(&approval)));
            }
            if changes.changed().await.is_err() {
                return Err(Error::unavailable("the host is going down"));
            }
        }
    })
}

/// `decision`: one write is one answer.
#[derive(Clone)]
struct DecisionFile {
    approvals: Arc<Approvals>,
    approval: Arc<Approval>,
}

impl File for DecisionFile {
    fn kind(&self) -> Kind {
        Kind::Control
    }

    fn open(&self, caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(DecisionHandle { file: self.clone(), by: caller.principal().to_string() }))
    }
}

struct DecisionHandle {
    file: DecisionFile,
    by: String,
}

impl DecisionHandle {
    fn page(&self) -> Bytes {
        match self.file.approval.status().decision {
            Some(decision) => format!("{}\n", decision.answer).into(),
            None => Bytes::from_static(TEMPLATE.as_bytes()),
        }
    }

    fn decide(&self, data: &[u8]) -> Answer<()> {
        if data.len() > LONGEST {
            return Answer::refuse(Error::too_large(format!("a decision has at most {LONGEST} bytes")));
        }
        let DecisionFile { approvals, approval } = &self.file;
        let given = std::str::from_utf8(data).map_err(|_| Error::invalid("a decision is UTF-8 text"));
        let decided =
            given.and_then(GivenAnswer::parse).and_then(|given| approvals.decide(&approval.id, given, &self.by));
        match decided {
            Ok(written) => Answer::soon(written),
            Err(error) => Answer::refuse(error),
        }
    }
}

impl Handle for DecisionHandle {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        Answer::ok(slice(&self.page(), offset, size))
    }

    fn length(&self) -> Answer<Option<u64>> {
        Answer::ok(Some(self.page().len() as u64))
    }

    /// Durable when the write returns.
    fn write(&self, _offset: u64, data: &[u8]) -> Answer<()> {
        let approvals = self.file.approvals.clone();
        self.decide(data).then(move |decided| decided.inspect_err(|error| approvals.refused(error)))
    }
}
