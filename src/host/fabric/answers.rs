//! Does what other hosts ask: calls of what this host offers, waits for them, their end. Who asks is what the subject says and
//! the agent that it names; the policy of this host decides, and what it refuses is audited. A call has the id that the asking
//! host gave it: it is the correlation id of the job here, so that the journal knows a repeated one.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::HostState;
use crate::contract::Envelope;
use crate::host::nodes::NODE;
use crate::jobs::{Job, JobEntry, JobRow};
use crate::policy::{Principal, PrincipalCaller};
use crate::service::ServiceInstance;
use crate::spec::{OFFERED_MAIL, OfferSpec};
use acheron_base::{Error, Result, quoted};
use acheron_fabric::messages::{self, CallOutcome, HostAnswer, HostRequest, RequestedThing, SaidError};
use acheron_fabric::names::FarAgent;
use acheron_nats::{AskedRequest, AskedRequests, Link};
use acheron_vfs::{Access, AccessControl, Caller};

/// Requests that are answered at once; further ones are refused.
const MOST: usize = 1024;
/// Calls are accepted one after another in each of these: a repeated one finds the first.
const LANES: usize = 64;

/// Answers requests until the connection ends.
pub async fn serve(host: &Weak<HostState>, link: &Link, requests: &mut AskedRequests) {
    let slots = Arc::new(Semaphore::new(MOST));
    let lanes: Arc<Vec<tokio::sync::Mutex<()>>> = Arc::new((0..LANES).map(|_| Default::default()).collect());
    while let Some(request) = requests.next().await {
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            let busy =
                HostAnswer::Refused { error: SaidError::from(&Error::busy("the host answers too many requests")) };
            link.answer(&request, said(&busy)).await;
            continue;
        };
        let (weak, link, lanes) = (host.clone(), link.clone(), lanes.clone());
        tokio::spawn(async move {
            let _slot = slot;
            let Some(host) = weak.upgrade() else { return };
            let answer = answer(&host, &lanes, &request).await;
            let answer = answer.unwrap_or_else(|error| HostAnswer::Refused { error: SaidError::from(&error) });
            link.answer(&request, said(&answer)).await;
        });
    }
}

fn said(answer: &HostAnswer) -> Bytes {
    serde_json::to_vec(answer).map(Bytes::from).unwrap_or_default()
}

async fn answer(host: &Arc<HostState>, lanes: &[tokio::sync::Mutex<()>], asked: &AskedRequest) -> Result<HostAnswer> {
    let request: HostRequest = serde_json::from_slice(&asked.body).map_err(|err| {
        Error::invalid(format!("the request cannot be read: {err}; the hosts have different versions"))
    })?;
    let who = FarAgent::new(&asked.from, &request.agent)?;
    if !host.fabric.note_token(&asked.from, request.token) {
        return Err(Error::fenced(format!("another host has taken the name {}", quoted(&asked.from))));
    }
    let key = format!("far-{}-{}", who.node, request.id);
    match request.about {
        RequestedThing::Hello => Ok(HostAnswer::Here),
        RequestedThing::Call { service, operation, arguments } => {
            let lane = &lanes[lane_of(&key)];
            let _turn = lane.lock().await;
            if let Some(known) = find(host, &key, &who).await? {
                return Ok(known.answer());
            }
            let job = begin(host, &who, &service, operation, arguments, key).await?;
            Ok(KnownCall::Here(job).answer())
        }
        RequestedThing::Wait { wait_ms } => {
            let Some(known) = find(host, &key, &who).await? else { return Ok(HostAnswer::UnknownCall) };
            if let KnownCall::Here(job) = &known {
                let most = Duration::from_millis(wait_ms.min(messages::LONGEST_WAIT));
                _ = tokio::time::timeout(most, job.end()).await;
            }
            Ok(known.answer())
        }
        RequestedThing::Cancel => {
            let Some(known) = find(host, &key, &who).await? else { return Ok(HostAnswer::UnknownCall) };
            if let KnownCall::Here(job) = &known
                && !job.settled()
            {
                let error = Error::cancelled(format!("host {} cancelled the call", who.node));
                job.stop(error.clone());
                host.context.jobs.store().stopped(&job.id, error).await?;
            }
            Ok(known.answer())
        }
        RequestedThing::Piece { from } => {
            let Some(known) = find(host, &key, &who).await? else { return Ok(HostAnswer::UnknownCall) };
            let text = known.result().map(|result| result.to_string()).unwrap_or_default();
            Ok(HostAnswer::Piece { text: piece(&text, from) })
        }
    }
}

fn lane_of(key: &str) -> usize {
    key.bytes().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % LANES
}

/// Part of a text from a byte on, without cutting a character.
fn piece(text: &str, from: usize) -> String {
    let Some(rest) = text.get(from..) else { return String::new() };
    let end = (0..=messages::PIECE.min(rest.len())).rev().find(|end| rest.is_char_boundary(*end));
    rest[..end.unwrap_or(0)].to_owned()
}

/// A call that this host knows.
enum KnownCall {
    Here(Arc<Job>),
    /// Ended long ago.
    Archived(Box<JobRow>),
}

impl KnownCall {
    fn result(&self) -> Option<Value> {
        match self {
            KnownCall::Here(job) => job.now().outcome.and_then(|outcome| outcome.as_ref().as_ref().ok().cloned()),
            KnownCall::Archived(row) => row.result.clone(),
        }
    }

    fn answer(&self) -> HostAnswer {
        let (job, state, outcome) = match self {
            KnownCall::Here(job) => {
                let now = job.now();
                let (id, state) = (job.id.clone(), now.state.name().to_owned());
                match now.outcome.filter(|_| now.state.settled()) {
                    Some(outcome) => (id, state, (*outcome).clone()),
                    None => return HostAnswer::Running { job: id, state, progress: now.progress },
                }
            }
            KnownCall::Archived(row) => {
                let outcome = match &row.error {
                    Some(error) => Err(error.clone()),
                    None => Ok(row.result.clone().unwrap_or_default()),
                };
                (row.id.clone(), row.state.name().to_owned(), outcome)
            }
        };
        let outcome = match outcome {
            Err(error) => CallOutcome::Error(SaidError::from(&error)),
            Ok(value) => match value.to_string() {
                text if text.len() > messages::PIECE => {
                    let sha256 = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
                    CallOutcome::Large { bytes: text.len(), sha256 }
                }
                _ => CallOutcome::Result(value),
            },
        };
        HostAnswer::Ended { job, state, outcome }
    }
}

/// The call of this agent with this id, if it came before.
async fn find(host: &HostState, key: &str, who: &FarAgent) -> Result<Option<KnownCall>> {
    let principal = Principal::Far(who.to_string());
    for agent in host.context.jobs.agents() {
        let jobs = host.context.jobs.of(&agent);
        let Some(id) = jobs.by_correlation_id(key) else { continue };
        return Ok(match jobs.get(&id) {
            Some(JobEntry::Loaded(job)) => (job.call.principal == principal).then_some(KnownCall::Here(job)),
            Some(JobEntry::Archived) => {
                let row = host.context.jobs.store().fetch(&id).wait().await?;
                row.filter(|row| Principal::named(&row.principal) == principal)
                    .map(|row| KnownCall::Archived(Box::new(row)))
            }
            None => None,
        });
    }
    Ok(None)
}

/// The instance behind an offer.
pub fn instance(host: &HostState, service: &str, offer: &OfferSpec) -> Result<Arc<ServiceInstance>> {
    host.context.instance(offer.agent.as_deref().unwrap_or(NODE), service)
}

/// Starts a call, if the policy allows it.
async fn begin(
    host: &HostState,
    who: &FarAgent,
    service: &str,
    operation: String,
    arguments: Value,
    key: String,
) -> Result<Arc<Job>> {
    let caller = Caller::of(Principal::Far(who.to_string()));
    let spec = &host.current.mounted_with;
    let offer = spec.fabric.as_ref().and_then(|fabric| fabric.offer.get(service)).filter(|_| service != OFFERED_MAIL);
    let Some(offer) = offer else {
        // Decided like everything else, and written down: what is not offered, no rule allows.
        let path = format!("/{NODE}/services/{service}/control/{operation}.json");
        host.access.check(&caller, Access::Invoke, &path)?;
        return Err(Error::not_found(format!("there is no service {}", quoted(service))));
    };
    let instance = instance(host, service, offer)?;
    instance.contract().check(&operation, &arguments)?;
    let call = Envelope { op: operation, arguments, correlation_id: Some(key), reason: None };
    let mut jobs = instance.begin(&caller, vec![call]).wait().await?;
    jobs.pop().ok_or_else(|| Error::internal("a call without a job"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_comes_in_pieces_that_cut_no_character() {
        let text = "é".repeat(messages::PIECE);
        let mut whole = String::new();
        while whole.len() < text.len() {
            let more = piece(&text, whole.len());
            assert!(!more.is_empty() && more.len() <= messages::PIECE);
            whole.push_str(&more);
        }
        assert_eq!(whole, text);
        assert_eq!(piece(&text, text.len()), "");
        assert_eq!(piece(&text, text.len() + 9), "");
        assert_eq!(piece(&text, 1), "", "not at a character");
    }
}
