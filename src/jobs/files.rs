//! `jobs/`: one directory per job, with links by age and by correlation id.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::archive;
use super::cancel::Cancel;
use super::list::AgentJobs;
use super::steps;
use super::{Job, JobEntry, JobOutcome, JobSnapshot, JobStatus, JobStore, Jobs, TURN_SERVICE};
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller, ComputedFile, Link, Listing, Node, VirtualDir, line, live, text, waiting};

const README: &str = "\
# jobs

Every call of a service is a job with a directory of its own here, newest last.

- `last` links to the newest job, `by/<correlation_id>` to the job with that correlation id.
- `recent.json` is a list of the newest jobs with their states; it does not wait.
- `<job>/status.json`, `result.txt` and `result.json` wait until the job has ended; reading them again answers at once.
- `<job>/progress.json` shows the progress without waiting. `log.txt` grows while the job runs: `tail -f` works.
- `echo > <job>/control/cancel` stops the job.

Jobs of effect `read` are lost at a restart; the others are kept up to a limit of age and count.
";

const JOB: &str = "\
# One job

`status.json`, `result.txt` and `result.json` wait until the job has ended. `progress.json` does not wait.
`log.txt` grows while the job runs. `request.json` is the call. `files/` has images and the like that the call
left, as long as the job is in memory. A turn has `steps.ndjson`: its thoughts, calls and outcomes as they happen, and
`steps/README.md` says how to wait for the next; `transcript.ndjson` is the record of each answer of the model, each call
of a tool and its result. Write anything to `control/cancel` to stop it.
";

const CONTROL: &str = "- `cancel`: write anything to stop this job.\n";

/// The `jobs/` of one agent.
pub fn directory(jobs: &Arc<Jobs>, agent: &str) -> VirtualDir {
    let agent_jobs = jobs.of(agent);
    let (names, notifier) = (agent_jobs.clone(), agent_jobs.notifier.clone());
    let store = jobs.store().clone();
    let readme = Node::file(text(README));
    let recent = Node::file(super::recent::file(jobs, Some(agent)));
    let by = Node::dir(by_correlation_id(agent_jobs.clone()));
    let last = Node::link(LastJobLink(agent_jobs.clone()));
    let (here, counted, agent) = (agent_jobs.clone(), agent_jobs.clone(), agent.to_owned());
    let names = move || {
        let fixed = ["README.md", "by", "recent.json"].into_iter().chain(names.last().is_some().then_some("last"));
        fixed.map(str::to_owned).chain(names.ids()).collect()
    };
    VirtualDir::new(names, move |name| match name {
        "README.md" => Some(readme.clone()),
        "by" => Some(by.clone()),
        "recent.json" => Some(recent.clone()),
        "last" => agent_jobs.last().is_some().then(|| last.clone()),
        id => match agent_jobs.get(id)? {
            JobEntry::Loaded(job) => Some(Node::dir(job_directory(&job, &store))),
            JobEntry::Archived => Some(Node::dir(archive::directory(&store, &agent, id))),
        },
    })
    .counted(move || counted.count())
    .notifying(notifier)
    .modified_at(move || match here.last() {
        Some(id) => match here.get(&id) {
            Some(JobEntry::Loaded(job)) => time(job.created_at_ms),
            _ => acheron_vfs::STARTED,
        },
        None => acheron_vfs::STARTED,
    })
}

fn by_correlation_id(agent_jobs: Arc<AgentJobs>) -> VirtualDir {
    let (names, counted) = (agent_jobs.clone(), agent_jobs.clone());
    VirtualDir::new(
        move || names.correlations().into_iter().filter(|name| is_name(name)).collect(),
        move |name| agent_jobs.by_correlation_id(name).map(|id| Node::link(JobLink(format!("../{id}")))),
    )
    .counted(move || counted.count())
}

/// Whether the kernel can show a word as one file name.
fn is_name(word: &str) -> bool {
    !word.is_empty() && word.len() <= 255 && !word.contains(['/', '\0']) && word != "." && word != ".."
}

struct JobLink(String);

impl Link for JobLink {
    fn target(&self, _caller: &Caller) -> Result<String> {
        Ok(self.0.clone())
    }
}

struct LastJobLink(Arc<AgentJobs>);

impl Link for LastJobLink {
    fn target(&self, _caller: &Caller) -> Result<String> {
        self.0.last().ok_or_else(|| Error::not_found("there is no job yet"))
    }
}

fn job_directory(job: &Arc<Job>, store: &Arc<dyn JobStore>) -> Listing {
    let at = |job: &Arc<Job>| {
        let job = job.clone();
        move || time(job.now().updated_at_ms)
    };
    let (progress, created) = (job.clone(), job.created_at_ms);
    let asked = job.clone();
    // Made when it is read: a listing of many jobs with large arguments would take long.
    let request = move |_: &Caller| Ok(request(&asked.call.service, &asked.call.operation, &asked.call.arguments));
    let cancel = Cancel { job: job.clone(), store: store.clone() };
    let listing = Listing::default()
        .file("README.md", text(JOB))
        .file("status.json", ended(job, |job, now| line(&job.status(now))).modified_at(at(job)))
        .file("result.txt", ended(job, |_, now| result_text(now)).modified_at(at(job)))
        .file("result.json", ended(job, answer).modified_at(at(job)))
        .file("progress.json", live(move |_| Ok(progress_of(&progress))).modified_at(at(job)))
        .file("log.txt", job.log.clone())
        .file("log.txt.1", job.log.older())
        .file("request.json", live(request).modified_at(move || time(created)))
        .dir("control", Listing::default().file("README.md", text(CONTROL)).file("cancel", cancel));
    let listing = steps::shown(job, listing);
    let listing = match job.call.service == TURN_SERVICE {
        true => listing.file("transcript.ndjson", transcript(store, &job.call.agent, &job.id)),
        false => listing,
    };
    let files = job.files();
    match files.is_empty() {
        true => listing,
        false => listing.dir("files", kept_files(files)),
    }
}

/// `transcript.ndjson`: what a turn has done so far.
pub fn transcript(store: &Arc<dyn JobStore>, agent: &str, id: &str) -> ComputedFile {
    let (store, agent, id) = (store.clone(), agent.to_owned(), id.to_owned());
    ComputedFile::fetched(move |_| {
        store.transcript(&agent, &id).map(|records| {
            let lines = records.into_iter().map(|record| record + "\n");
            lines.collect::<String>().into()
        })
    })
}

/// `files/`: what the call left beside its result.
fn kept_files(files: Vec<(String, Bytes)>) -> Listing {
    files.into_iter().fold(Listing::default(), |listing, (name, bytes)| listing.file(&name, text(bytes)))
}

/// The request, in the form in which it can be made again.
pub fn request(service: &str, operation: &str, arguments: &Value) -> Bytes {
    line(&json!({ "service": service, "op": operation, "arguments": arguments }))
}

/// A file that waits for the end of its job.
fn ended(job: &Arc<Job>, show: fn(&Job, &JobSnapshot) -> Bytes) -> ComputedFile {
    let job = job.clone();
    waiting(move |caller| match job.may_be_awaited(caller) {
        Ok(()) => at_end(&job, show),
        Err(error) => Answer::refuse(error),
    })
}

/// The output of `show` once the job has ended; immediately if it has.
pub fn at_end(job: &Arc<Job>, show: fn(&Job, &JobSnapshot) -> Bytes) -> Answer<Bytes> {
    if job.settled() {
        return Answer::ok(show(job, &job.now()));
    }
    let job = job.clone();
    Answer::later(async move {
        let now = job.end().await;
        Ok(show(&job, &now))
    })
}

/// `progress.json`: the status and the reported progress.
fn progress_of(job: &Job) -> Bytes {
    #[derive(Serialize)]
    struct ProgressPage<'a> {
        #[serde(flatten)]
        status: JobStatus<'a>,
        progress: Option<&'a Value>,
    }
    job.look(|now| line(&ProgressPage { status: job.status(now), progress: now.progress.as_ref() }))
}

fn result_text(now: &JobSnapshot) -> Bytes {
    now.outcome.as_ref().map_or_else(Bytes::new, plain)
}

/// A result for people: text unchanged, anything else as JSON; for a failure, its message.
pub fn plain(outcome: &JobOutcome) -> Bytes {
    match outcome.as_ref() {
        Ok(Value::String(text)) if text.ends_with('\n') => Bytes::copy_from_slice(text.as_bytes()),
        Ok(Value::String(text)) => format!("{text}\n").into(),
        Ok(value) => line(value),
        Err(error) => format!("{error}\n").into(),
    }
}

/// `result.json` of a job or of a service.
#[derive(Serialize)]
pub struct ResultPage<'a> {
    pub ok: bool,
    pub operation: Option<&'a str>,
    pub job_id: Option<&'a str>,
    pub result: Option<&'a Value>,
    pub error: Option<&'a Error>,
}

/// `result.json` of a job that has ended.
pub fn answer(job: &Job, now: &JobSnapshot) -> Bytes {
    let (result, error) = match now.outcome.as_deref() {
        Some(Ok(result)) => (Some(result), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let (operation, job_id) = (Some(job.call.operation.as_str()), Some(job.id.as_str()));
    line(&ResultPage { ok: result.is_some(), operation, job_id, result, error })
}

pub fn time(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}
