//! The directory of a service, with the same file names for every service.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::ServiceInstance;
use super::instance::LastCall;
use crate::contract::{Contract, ContractPages, Envelope};
use crate::jobs::Job;
use crate::jobs::files::{self, ResultPage};
use acheron_base::{Error, Result};
use acheron_vfs::{
    Answer, Caller, CommandContext, CommandSink, Control, Listing, Reply, ReplyFn, lazy_text, line, live, pretty, text,
    waiting,
};

/// Builds the directory of one service.
pub fn directory(instance: &Arc<ServiceInstance>) -> Listing {
    let (status, permissions, result) = (instance.clone(), instance.clone(), instance.clone());
    let mut listing = lazy_pages(instance)
        .file("PERMISSIONS.json", live(move |caller| Ok(pretty(&permissions.permissions(caller)))))
        .file("status.json", live(move |caller| Ok(line(&status.status(caller)))))
        .file("result.json", waiting(move |caller| last_result(&result, caller)))
        .dir("control", control(instance));
    for (name, node) in instance.serve().files() {
        listing = listing.with(&name, node);
    }
    for (name, node) in instance.serve().unlisted_files() {
        listing = listing.unlisted(&name, node);
    }
    listing
}

/// The directory of something that has a contract but takes no calls.
pub fn static_directory(
    contract: &Contract,
    permissions: impl Fn(&Caller) -> Value + Send + Sync + 'static,
) -> Listing {
    pages(contract).file("PERMISSIONS.json", live(move |caller| Ok(pretty(&permissions(caller)))))
}

/// The pages of a contract, rendered when they are asked for: few of them are ever read.
fn lazy_pages(instance: &Arc<ServiceInstance>) -> Listing {
    let page = |of: fn(&ContractPages) -> &Bytes| {
        let instance = instance.clone();
        lazy_text(move || of(instance.contract().pages()).clone())
    };
    Listing::default()
        .file("README.md", page(|pages| &pages.readme))
        .file("SCHEMA.json", page(|pages| &pages.schema))
        .file("CAPS.json", page(|pages| &pages.caps))
        .file("OPS.json", page(|pages| &pages.ops))
}

fn pages(contract: &Contract) -> Listing {
    let pages = contract.pages();
    Listing::default()
        .file("README.md", text(pages.readme.clone()))
        .file("SCHEMA.json", text(pages.schema.clone()))
        .file("CAPS.json", text(pages.caps.clone()))
        .file("OPS.json", text(pages.ops.clone()))
}

fn control(instance: &Arc<ServiceInstance>) -> Listing {
    let contract = instance.contract();
    let invoke = Control::new(Arc::new(InvokeFile(instance.clone())));
    let own = instance.clone();
    let readme = lazy_text(move || own.contract().pages().control.clone());
    let mut listing = Listing::default().file("README.md", readme).file("invoke.json", invoke);
    for operation in &contract.operations {
        let control = Control::new(Arc::new(OperationFile { instance: instance.clone(), op: operation.name.clone() }));
        listing = listing.file(&format!("{}.json", operation.name), control);
    }
    listing
}

/// `result.json`: waits while the last call runs.
fn last_result(instance: &ServiceInstance, caller: &Caller) -> Answer<Bytes> {
    match instance.last(caller) {
        None => refusal(None, &Error::not_found("nothing was called yet")),
        Some(LastCall::Refused { operation, error, .. }) => refusal(operation.as_deref(), &error),
        Some(LastCall::Job(job)) => answer(&job),
    }
}

fn answer(job: &Arc<Job>) -> Answer<Bytes> {
    files::at_end(job, files::answer)
}

fn refusal(operation: Option<&str>, error: &Error) -> Answer<Bytes> {
    Answer::ok(line(&ResultPage { ok: false, operation, job_id: None, result: None, error: Some(error) }))
}

/// `control/invoke.json`.
struct InvokeFile(Arc<ServiceInstance>);

impl CommandSink for InvokeFile {
    fn template(&self) -> Bytes {
        line(&self.0.contract().envelope_template())
    }

    fn submit(&self, asked: &CommandContext, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        let calls = commands.into_iter().map(|value| self.0.contract().envelope(value)).collect();
        begin(&self.0, asked, calls, Some("invoke.json"))
    }

    fn refused(&self, asked: &CommandContext, error: &Error) {
        self.0.refused(&asked.caller, None, error);
    }
}

/// `control/<op>.json`.
struct OperationFile {
    instance: Arc<ServiceInstance>,
    op: String,
}

impl CommandSink for OperationFile {
    fn template(&self) -> Bytes {
        let contract = self.instance.contract();
        let template = contract.operation(&self.op).map(|operation| contract.template(operation));
        line(&template.unwrap_or_default())
    }

    fn expects(&self) -> String {
        let contract = self.instance.contract();
        let template = contract.operation(&self.op).map(|operation| contract.template(operation)).unwrap_or_default();
        let op = &self.op;
        format!("{op}.json takes the arguments of {op} as one JSON object, such as {}", sketch(&template))
    }

    fn submit(&self, asked: &CommandContext, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        let calls = commands.into_iter().map(|value| self.instance.contract().arguments(&self.op, value));
        begin(&self.instance, asked, calls.collect(), None)
    }

    fn refused(&self, asked: &CommandContext, error: &Error) {
        self.instance.refused(&asked.caller, Some(self.op.clone()), error);
    }
}

/// A value in one line; the keys alone if it is long.
fn sketch(value: &Value) -> String {
    let whole = value.to_string();
    match value.as_object() {
        Some(object) if whole.len() > 160 => {
            let keys: Vec<String> = object.keys().map(|key| format!("{key:?}: …")).collect();
            format!("{{{}}}", keys.join(", "))
        }
        _ => whole,
    }
}

fn begin(
    instance: &Arc<ServiceInstance>,
    asked: &CommandContext,
    calls: Result<Vec<Envelope>>,
    file: Option<&str>,
) -> Answer<Vec<Arc<dyn Reply>>> {
    let calls = match calls {
        Ok(calls) => calls,
        Err(error) => return Answer::refuse(error),
    };
    let (contract, reads) = (instance.clone(), asked.how.read);
    let reply = move |job: Arc<Job>| -> Arc<dyn Reply> {
        let operation = contract.contract().operation(&job.call.operation);
        match reads && operation.is_ok_and(|operation| operation.for_its_reader) {
            true => Arc::new(ReaderReply(job)),
            false => Arc::new(ReplyFn(move || answer(&job))),
        }
    };
    instance.begin_at(&asked.caller, calls, file).map(move |jobs| jobs.into_iter().map(reply).collect())
}

/// The reply to a call that is made for the reader of this handle: if the handle goes before the call has ended, as when the
/// program with the handle is killed, the call is cancelled.
struct ReaderReply(Arc<Job>);

impl Reply for ReaderReply {
    fn read(&self) -> Answer<Bytes> {
        answer(&self.0)
    }
}

impl Drop for ReaderReply {
    fn drop(&mut self) {
        if !self.0.settled() {
            self.0.stop(Error::cancelled("the program that waited for this call has closed its handle"));
        }
    }
}
