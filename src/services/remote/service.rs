//! A service whose calls run on another host. The job here is written down before anything is sent; its id is the id of the call
//! over there, so whatever is sent again is the same call. An answer that does not come is asked for again; a host that is gone
//! ends the call with `unavailable`.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::HostLink;
use super::told::ToldContract;
use crate::contract::Contract;
use crate::jobs::Call;
use crate::policy::{Principal, PrincipalCaller};
use crate::service::{Cx, Serve};
use acheron_base::{Error, Result};
use acheron_fabric::messages::{self, CallOutcome, HostAnswer, HostRequest, RequestedThing};
use acheron_fabric::names::OPERATOR;
use acheron_fabric::subjects::Verb;
use acheron_nats::LinkFault;
use acheron_vfs::Caller;

/// How long the other host may take to say that it has a call.
const ACCEPT: Duration = Duration::from_secs(5);
/// A host that answers nothing for so long is gone: longer than an election of the servers takes.
const SILENCE: Duration = Duration::from_secs(20);
/// How often nobody must be there, and the pause between: a connection that is made anew takes a moment.
const NOBODY: u32 = 4;
const PAUSE: Duration = Duration::from_millis(300);

pub struct FarService {
    contract: Contract,
    node: String,
    service: String,
    link: HostLink,
}

impl FarService {
    pub fn new(node: &str, service: &str, told: &ToldContract, link: HostLink) -> Result<FarService> {
        let contract = told.contract(node, service)?;
        Ok(FarService { contract, node: node.to_owned(), service: service.to_owned(), link })
    }

    /// Asks until there is an answer, or the host is gone.
    async fn ask(&self, verb: Verb, request: &HostRequest, within: Duration) -> Result<HostAnswer> {
        let begun = tokio::time::Instant::now();
        let (mut nobody, mut silent) = (0, Duration::ZERO);
        loop {
            let request = |token| HostRequest { token, ..request.clone() };
            let asked = tokio::time::Instant::now();
            match self.link.ask(&self.node, verb, request, within).await? {
                Ok(answer) => return Ok(answer),
                Err(LinkFault::Nobody) => {
                    nobody += 1;
                    if nobody >= NOBODY {
                        return Err(self.gone());
                    }
                }
                Err(LinkFault::Unknown(_)) => {
                    silent += asked.elapsed();
                    if silent >= SILENCE.max(within) && begun.elapsed() >= SILENCE {
                        return Err(self.gone());
                    }
                }
                Err(fault) => return Err(fault.into()),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn gone(&self) -> Error {
        Error::unavailable(format!(
            "host {} does not answer; what it was asked may have happened. /nodes/{}/STATUS.json tells when it is back",
            self.node, self.node
        ))
    }

    async fn result(&self, request: &HostRequest, outcome: CallOutcome) -> Result<Value> {
        match outcome {
            CallOutcome::Result(value) => Ok(value),
            CallOutcome::Error(said) => Err(said.heard(&self.node)),
            CallOutcome::Large { bytes, sha256 } => self.pieces(request, bytes, &sha256).await,
        }
    }

    /// Fetches a long result.
    async fn pieces(&self, request: &HostRequest, bytes: usize, sha256: &str) -> Result<Value> {
        if bytes > messages::RESULT {
            return Err(Error::too_large(format!(
                "the result has {bytes} bytes; at most {} are fetched",
                messages::RESULT
            )));
        }
        let mut text = String::new();
        while text.len() < bytes {
            let piece = HostRequest { about: RequestedThing::Piece { from: text.len() }, ..request.clone() };
            match self.ask(Verb::Piece, &piece, ACCEPT).await? {
                HostAnswer::Piece { text: more } if !more.is_empty() => text.push_str(&more),
                _ => return Err(Error::unavailable(format!("host {} does not have the result any more", self.node))),
            }
        }
        let found: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        if found != sha256 {
            return Err(Error::failed(format!("the result of host {} came damaged", self.node)));
        }
        serde_json::from_str(&text).map_err(|err| Error::failed(format!("the result of host {}: {err}", self.node)))
    }
}

/// Cancels the call over there if nobody here waits for it any more.
struct CancelFar<'a> {
    service: &'a FarService,
    cx: &'a Cx,
    request: HostRequest,
    is_over: bool,
}

impl Drop for CancelFar<'_> {
    fn drop(&mut self) {
        // A host that goes down asks for it again at its next start.
        if self.is_over || self.cx.job.is_deferred() {
            return;
        }
        let (link, node) = (self.service.link.clone(), self.service.node.clone());
        let request = HostRequest { about: RequestedThing::Cancel, ..self.request.clone() };
        self.cx.context.runtime.spawn(async move {
            for _ in 0..3 {
                let asked =
                    link.ask(&node, Verb::Cancel, |token| HostRequest { token, ..request.clone() }, ACCEPT).await;
                if matches!(asked, Ok(Ok(_)) | Ok(Err(LinkFault::Nobody))) {
                    return;
                }
            }
        });
    }
}

/// The name by which another host knows who asks.
fn name_of(principal: &Principal) -> Result<String> {
    match principal {
        Principal::Operator => Ok(OPERATOR.to_owned()),
        Principal::Agent(id) => Ok(id.clone()),
        Principal::Far(far) => Err(Error::forbidden(format!("{far} cannot call other hosts through this one"))),
        Principal::Nobody => Err(Error::forbidden("the calling process has exited or is unknown")),
    }
}

#[async_trait]
impl Serve for FarService {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn check(&self, caller: &Caller, _operation: &str, arguments: &Value) -> Result<()> {
        name_of(caller.principal())?;
        self.link.current()?;
        match arguments.to_string().len() {
            bytes if bytes > messages::ARGUMENTS => Err(Error::too_large(format!(
                "the arguments have {bytes} bytes, and a call of another host has at most {}",
                messages::ARGUMENTS
            ))),
            _ => Ok(()),
        }
    }

    async fn invoke(&self, cx: &Cx, call: &Call) -> Result<Value> {
        let (service, operation, arguments) = (self.service.clone(), call.operation.clone(), call.arguments.clone());
        let about = RequestedThing::Call { service, operation, arguments };
        let request = HostRequest { agent: name_of(&call.principal)?, token: 0, id: cx.job_id().to_owned(), about };
        let mut guard = CancelFar { service: self, cx, request: request.clone(), is_over: false };
        let mut answer = self.ask(Verb::Call, &request, ACCEPT).await?;
        loop {
            match answer {
                HostAnswer::Running { job, state, progress } => {
                    cx.progress(json!({ "node": self.node, "job_id": job, "state": state, "progress": progress }));
                    let about = RequestedThing::Wait { wait_ms: messages::LONGEST_WAIT };
                    let wait = HostRequest { about, ..request.clone() };
                    let within = Duration::from_millis(messages::LONGEST_WAIT) + ACCEPT;
                    answer = self.ask(Verb::Wait, &wait, within).await?;
                }
                HostAnswer::Ended { job, state, outcome } => {
                    guard.is_over = true;
                    cx.progress(json!({ "node": self.node, "job_id": job, "state": state }));
                    cx.log(&format!("job {job} of host {} has ended: {state}", self.node));
                    return self.result(&request, outcome).await;
                }
                HostAnswer::Refused { error } => {
                    guard.is_over = true;
                    return Err(error.heard(&self.node));
                }
                HostAnswer::UnknownCall => {
                    guard.is_over = true;
                    return Err(Error::interrupted(format!("host {} has lost this call: it was restarted", self.node)));
                }
                HostAnswer::Here | HostAnswer::Piece { .. } => {
                    return Err(Error::failed(format!("host {} answers something else", self.node)));
                }
            }
        }
    }
}
