//! Services: a name, a command type, and the function that runs a command.
//!
//! The directory of a service is built here from its types, the same for every service. Used by `agent`, `services` and
//! `host`. Uses `contract`, `policy`, `jobs` and `events`.

mod context;
mod cx;
mod directory;
mod instance;
#[cfg(test)]
pub mod test_access;
#[cfg(test)]
mod tests;

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contract::{Contract, Operation, ServiceCall};
use acheron_base::{Error, Result};
use acheron_vfs::Node;

pub use context::{Latest, ServiceAccess, ServiceContext};
pub use cx::Cx;
pub use directory::{directory, static_directory};
pub use instance::ServiceInstance;

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

    /// Files of the service itself, beside those that every service has.
    fn files(&self) -> Vec<(String, Node)> {
        Vec::new()
    }

    /// Runs one command. Several commands may run at once. The future is dropped when the call is cancelled or exceeds
    /// its deadline: processes and requests that it started must end with it.
    async fn invoke(&self, cx: &Cx, command: Self::Command) -> Result<Self::Output>;
}

/// A service whose types are known only at run time: a program from the mountspec, or a [`Service`] wrapped by
/// [`typed`].
#[async_trait]
pub trait Serve: Send + Sync + 'static {
    fn contract(&self) -> &Contract;

    fn files(&self) -> Vec<(String, Node)> {
        Vec::new()
    }

    /// Runs one call that was checked against the contract.
    async fn invoke(&self, cx: &Cx, call: &ServiceCall) -> Result<Value>;
}

/// Wraps a [`Service`] so that it can be served.
pub fn typed<S: Service>(service: S) -> Result<Arc<dyn Serve>> {
    let contract = contract_of::<S>(service.flags())?;
    Ok(Arc::new(TypedService { service, contract }))
}

struct TypedService<S> {
    service: S,
    contract: Arc<Contract>,
}

type ContractCache = HashMap<(TypeId, Vec<&'static str>), Arc<Contract>>;

/// The contract of a service type, built once for all agents.
fn contract_of<S: Service>(flags: Vec<&'static str>) -> Result<Arc<Contract>> {
    static CACHE: LazyLock<Mutex<ContractCache>> = LazyLock::new(Mutex::default);
    let key = (TypeId::of::<S>(), flags);
    let mut cache = CACHE.lock();
    if let Some(contract) = cache.get(&key) {
        return Ok(contract.clone());
    }
    let contract = Contract::of::<S::Command, S::Output>(S::NAME, S::ABOUT, S::operations())?;
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

    async fn invoke(&self, cx: &Cx, call: &ServiceCall) -> Result<Value> {
        let command = self.contract.command(call)?;
        let output = self.service.invoke(cx, command).await?;
        serde_json::to_value(output).map_err(|err| Error::internal(format!("the result is not JSON: {err}")))
    }
}
