//! What a service is: a name, a type of command, and what it does when commanded.
//!
//! The rest of its directory is made here, the same for every service, from the types it names.

mod context;
mod cx;
mod directory;
mod instance;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub mod trial;

use parking_lot::Mutex;
use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contract::{Call, Contract, Operation};
use acheron_base::{Error, Result};
use acheron_vfs::Node;

pub use context::{Latest, ServiceAccess, ServiceContext};
pub use cx::Cx;
pub use directory::{directory, silent};
pub use instance::ServiceInstance;

/// What an author writes.
#[async_trait]
pub trait Service: Send + Sync + 'static {
    /// The name of its directory.
    const NAME: &'static str;
    /// What it is for, in the words of its README. The first line is one sentence: it stands in SERVICES.json.
    const ABOUT: &'static str;

    /// What is written to `control/invoke.json`: an enum, tagged `op` with content `arguments`, each variant with a doc
    /// comment.
    type Command: DeserializeOwned + JsonSchema + Send + 'static;
    /// What is found under `result`.
    type Output: Serialize + JsonSchema + Send + 'static;

    /// The effect of each command, and an example that works when pasted.
    fn operations() -> Vec<Operation>;

    /// What CAPS.json says beside the operations, such as `network`.
    fn flags(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Names of its own, beside those that every service has.
    fn files(&self) -> Vec<(String, Node)> {
        Vec::new()
    }

    /// Obeys one command. Several may be under way at once. It is dropped when the call is cancelled or out of time: what
    /// it started must end with it.
    async fn invoke(&self, cx: &Cx, command: Self::Command) -> Result<Self::Output>;
}

/// A service whose types are known only at run time: a program named in the mountspec, or a [`Service`] behind [`typed`].
#[async_trait]
pub trait Serve: Send + Sync + 'static {
    fn contract(&self) -> &Contract;

    fn files(&self) -> Vec<(String, Node)> {
        Vec::new()
    }

    /// Obeys one call that was checked against the contract.
    async fn invoke(&self, cx: &Cx, call: &Call) -> Result<Value>;
}

/// A service, ready to be served.
pub fn typed<S: Service>(service: S) -> Result<Arc<dyn Serve>> {
    let contract = contract_of::<S>(service.flags())?;
    Ok(Arc::new(Typed { service, contract }))
}

struct Typed<S> {
    service: S,
    contract: Arc<Contract>,
}

type Made = HashMap<(TypeId, Vec<&'static str>), Arc<Contract>>;

/// The contract of a type of service: made once, however many agents have one.
fn contract_of<S: Service>(flags: Vec<&'static str>) -> Result<Arc<Contract>> {
    static MADE: LazyLock<Mutex<Made>> = LazyLock::new(Mutex::default);
    let key = (TypeId::of::<S>(), flags);
    let mut made = MADE.lock();
    if let Some(contract) = made.get(&key) {
        return Ok(contract.clone());
    }
    let contract = Contract::of::<S::Command, S::Output>(S::NAME, S::ABOUT, S::operations())?;
    let contract = Arc::new(key.1.iter().fold(contract, |contract, flag| contract.flag(flag)));
    made.insert(key, contract.clone());
    Ok(contract)
}

#[async_trait]
impl<S: Service> Serve for Typed<S> {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn files(&self) -> Vec<(String, Node)> {
        self.service.files()
    }

    async fn invoke(&self, cx: &Cx, call: &Call) -> Result<Value> {
        let command = self.contract.command(call)?;
        let output = self.service.invoke(cx, command).await?;
        serde_json::to_value(output).map_err(|err| Error::internal(format!("the result is not JSON: {err}")))
    }
}
