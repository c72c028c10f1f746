//! Services: a name, a command type, and the function that runs a command.
//!
//! The directory of a service is built here from its types, the same for every service. Used by `agent`, `services` and
//! `host`. Uses `contract`, `policy`, `jobs`, `events` and `approvals`.

mod context;
mod cx;
mod directory;
mod files;
mod instance;
mod place;
pub mod runner;
#[cfg(test)]
pub mod test_access;
#[cfg(test)]
pub mod test_context;
#[cfg(test)]
mod tests;

use std::any::TypeId;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contract::{Contract, Effect, Operation};
use crate::jobs::Call;
use acheron_approvals::SubjectFacts;
use acheron_base::{Error, Result};
use acheron_vfs::{Caller, Node};

pub use context::{Latest, ServiceAccess, ServiceContext};
pub use cx::{Cx, WriteCx};
pub use directory::{directory, static_directory};
pub use files::{ChangeFiles, WithoutCall};
pub use instance::ServiceInstance;
pub use place::ServicePlace;

/// The trait that the author of a service implements.
#[async_trait]
pub trait Service: Send + Sync + 'static {
    /// The name of the service's directory.
    const NAME: &'static str;
    /// The purpose of the service, as in its README. The first line is one sentence, which SERVICES.json shows.
    const ABOUT: &'static str;

    /// The content of `control/invoke.json`: an enum tagged `op` with content `arguments`; every variant has a doc
    /// comment.
    type Command: DeserializeOwned + JsonSchema + Send + 'static;
    /// The value under `result` in `result.json`.
    type Output: Serialize + JsonSchema + Send + 'static;

    /// The effect of each command, and an example that works when pasted.
    fn operations() -> Vec<Operation>;

    /// Further flags of CAPS.json, such as `network`.
    fn flags(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Whether the operations of effect `write` change only the database of this host. If not, they are `execute`.
    fn is_local(&self) -> bool {
        true
    }

    /// Files of the service itself, beside those that every service has.
    fn files(&self) -> Vec<(String, Node)> {
        Vec::new()
    }

    /// Files that are found by name and not listed, because a read of them may wait for ever.
    fn unlisted_files(&self) -> Vec<(String, Node)> {
        Vec::new()
    }

    /// How far work in the background is, for `status.json`. Quick: the thread that all callers share asks.
    fn progress(&self) -> Option<Value> {
        None
    }

    /// The place of a call among those that must run one after another; none if it may run at once.
    fn turn(&self, _call: &Call) -> Option<CallTurn> {
        None
    }

    /// Checks what the caller and the arguments alone tell and neither a schema nor the path of the control file can
    /// express. A refusal fails the write. Quick: the thread that all callers share asks.
    fn check(&self, _caller: &Caller, _command: Self::Command) -> Result<()> {
        Ok(())
    }

    /// Paths beside the control file on which a caller of this command needs `invoke` as well. A rule there may ask the
    /// operator, like one on the control file.
    fn invoked_paths(&self, _command: Self::Command) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// What is known of a command, for the operator who is asked about it.
    fn facts(&self, _operation: &Operation) -> SubjectFacts {
        SubjectFacts::default()
    }

    /// Runs one command. Several commands may run at once. The future is dropped when the call is cancelled or exceeds
    /// its deadline: processes and requests that it started must end with it.
    async fn invoke(&self, cx: &Cx, command: Self::Command) -> Result<Self::Output>;

    /// Does one command of effect `write`: a function of the transaction and the arguments. What it changes, its job and
    /// its events are one commit; it does no I/O and cannot be cancelled.
    fn write(&self, cx: &WriteCx<'_>, command: Self::Command) -> Result<Self::Output> {
        _ = command;
        Err(Error::internal(format!("{} has no operation of effect `write` but declares one", cx.job.call.service)))
    }
}

/// The place of a call that waits for others. Waiting takes no slot, and the deadline of the call begins after it.
pub struct CallTurn {
    /// Resolves when all calls before it have ended.
    pub first: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Dropped when the call has ended.
    pub place: Box<dyn Send>,
}

/// A service whose types are known only at run time: a program from the mountspec, or a [`Service`] wrapped by
/// [`typed`].
#[async_trait]
pub trait Serve: Send + Sync + 'static {
    fn contract(&self) -> &Contract;

    fn files(&self) -> Vec<(String, Node)> {
        Vec::new()
    }

    /// Files that are found by name and not listed.
    fn unlisted_files(&self) -> Vec<(String, Node)> {
        Vec::new()
    }

    /// How far work in the background is, for `status.json`.
    fn progress(&self) -> Option<Value> {
        None
    }

    /// The service stands in the tree now, at `place`. One whose contract changes while it runs keeps the place; one that was
    /// only built, for an edit that changes nothing of it, is never told.
    fn placed(&self, _place: ServicePlace) {}

    /// The place of a call among those that must run one after another.
    fn turn(&self, _call: &Call) -> Option<CallTurn> {
        None
    }

    /// Checks what the caller and the arguments of a call alone tell, beyond the contract.
    fn check(&self, _caller: &Caller, _operation: &str, _arguments: &Value) -> Result<()> {
        Ok(())
    }

    /// Paths beside the control file on which a caller of this call needs `invoke` as well.
    fn invoked_paths(&self, _operation: &str, _arguments: &Value) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// The identity of what a call runs beside its arguments, such as the file of a program, and what is known of it, for the
    /// operator who is asked about it. May look at files: it blocks.
    fn described(&self, call: &Call) -> (Value, SubjectFacts) {
        (Value::Null, known_facts(self.contract(), &call.operation, SubjectFacts::default()))
    }

    /// Runs one call that was checked against the contract.
    async fn invoke(&self, cx: &Cx, call: &Call) -> Result<Value>;

    /// Does one call of effect `write`, in a transaction.
    fn write(&self, cx: &WriteCx<'_>, call: &Call) -> Result<Value> {
        Err(Error::internal(format!("{} cannot do {} in a transaction", cx.job.call.service, call.operation)))
    }
}

/// Wraps a [`Service`] so that it can be served.
pub fn typed<S: Service>(service: S) -> Result<Arc<dyn Serve>> {
    let contract = contract_of::<S>(service.flags(), service.is_local())?;
    Ok(Arc::new(TypedService { service, contract }))
}

struct TypedService<S> {
    service: S,
    contract: Arc<Contract>,
}

type ContractCache = HashMap<(TypeId, Vec<&'static str>, bool), Arc<Contract>>;

/// The contract of a service type, built once for all agents.
fn contract_of<S: Service>(flags: Vec<&'static str>, is_local: bool) -> Result<Arc<Contract>> {
    static CACHE: LazyLock<Mutex<ContractCache>> = LazyLock::new(Mutex::default);
    let key = (TypeId::of::<S>(), flags, is_local);
    let mut cache = CACHE.lock();
    if let Some(contract) = cache.get(&key) {
        return Ok(contract.clone());
    }
    let mut operations = S::operations();
    for operation in operations.iter_mut().filter(|operation| !is_local && operation.effect == Effect::Write) {
        operation.effect = Effect::Execute;
    }
    let contract = Contract::of::<S::Command, S::Output>(S::NAME, S::ABOUT, operations)?;
    let contract = Arc::new(key.1.iter().fold(contract, |contract, flag| contract.flag(flag)));
    cache.insert(key, contract.clone());
    Ok(contract)
}

#[async_trait]
impl<S: Service> Serve for TypedService<S> {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn files(&self) -> Vec<(String, Node)> {
        self.service.files()
    }

    fn unlisted_files(&self) -> Vec<(String, Node)> {
        self.service.unlisted_files()
    }

    fn progress(&self) -> Option<Value> {
        self.service.progress()
    }

    fn turn(&self, call: &Call) -> Option<CallTurn> {
        self.service.turn(call)
    }

    fn described(&self, call: &Call) -> (Value, SubjectFacts) {
        let facts = self.contract.operation(&call.operation).map(|operation| self.service.facts(operation));
        (Value::Null, known_facts(&self.contract, &call.operation, facts.unwrap_or_default()))
    }

    fn check(&self, caller: &Caller, operation: &str, arguments: &Value) -> Result<()> {
        self.service.check(caller, self.contract.command(operation, arguments)?)
    }

    fn invoked_paths(&self, operation: &str, arguments: &Value) -> Result<Vec<String>> {
        self.service.invoked_paths(self.contract.command(operation, arguments)?)
    }

    async fn invoke(&self, cx: &Cx, call: &Call) -> Result<Value> {
        let command = self.contract.command(&call.operation, &call.arguments)?;
        json(self.service.invoke(cx, command).await?)
    }

    fn write(&self, cx: &WriteCx<'_>, call: &Call) -> Result<Value> {
        let command = self.contract.command(&call.operation, &call.arguments)?;
        json(self.service.write(cx, command)?)
    }
}

/// The facts about a call that its contract tells, after those that the service knows.
pub fn known_facts(contract: &Contract, operation: &str, mut facts: SubjectFacts) -> SubjectFacts {
    let effect = contract.operation(operation).map(|operation| operation.effect);
    facts.risk.extend(match effect {
        Ok(Effect::Write) => Some("changes the state of this host".to_owned()),
        Ok(Effect::Execute) => Some("may start programs, ask models or change files".to_owned()),
        _ => None,
    });
    for (flag, risk) in [
        ("network", "can reach the network: what it is given may leave the machine"),
        ("unconfined", "runs outside of the sandbox, with the rights of the operator"),
    ] {
        if contract.flags.contains_key(flag) {
            facts.risk.push(risk.to_owned());
        }
    }
    facts
}

/// The output of a call as its result.
pub fn json(output: impl Serialize) -> Result<Value> {
    serde_json::to_value(output).map_err(|err| Error::internal(format!("the result is not JSON: {err}")))
}
