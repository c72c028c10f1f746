//! The contract of a service as data: its operations, their arguments and results, derived from Rust types or from a
//! spec.
//!
//! README, schemas and the check of every payload come from here, so that they cannot drift from the types. Every
//! module may use it. It uses `acheron-base` only: no files, no services, no callers.

pub mod call;
pub mod check;
mod pages;
pub mod schema;
mod tagged;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;
use std::time::Duration;

use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use call::Envelope;
pub use check::ValueFault;
pub use pages::ContractPages;

use acheron_base::nearest::hint;
use acheron_base::{Error, Result, quoted};

/// The effect of an operation. It decides how a call runs, and what a crash can do to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing. The call is not journaled.
    Read,
    /// Changes only the database of this host, in one transaction with the job and its event. It is done when the write of
    /// its call returns; after a crash it happened completely or not at all.
    Write,
    /// Anything else: it asks a model, starts a program, or changes files. Its beginning and its end are journaled; a crash
    /// between them leaves the job `interrupted`, unless the operation may be repeated.
    Execute,
}

impl Effect {
    pub fn name(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Execute => "execute",
        }
    }

    /// What the effect promises to a caller.
    pub fn promise(self) -> &'static str {
        match self {
            Effect::Read => "changes nothing",
            Effect::Write => "is done, or has failed and changed nothing, when the write returns",
            Effect::Execute => "is journaled before it begins and when it ends",
        }
    }

    /// The time limit of a call whose operation sets none.
    pub fn deadline(self) -> Duration {
        match self {
            Effect::Read | Effect::Write => Duration::from_secs(60),
            Effect::Execute => Duration::from_secs(600),
        }
    }
}

/// One operation of a service.
#[derive(Clone, Debug)]
pub struct Operation {
    pub name: String,
    pub effect: Effect,
    /// The time limit of a call; a call that exceeds it ends as `timed_out`.
    pub deadline: Duration,
    /// A call that was interrupted by a crash of the host may run again.
    pub idempotent: bool,
    /// Arguments and results stay out of the journal; such a call does not run again after a crash.
    pub private: bool,
    /// The operation only reads memory, so the calling thread runs it without waking another.
    pub quick: bool,
    /// The call waits for something to hand to its caller. A caller that opened the control file for reading as well and
    /// closes it before the end cancels the call.
    pub for_its_reader: bool,
    pub about: String,
    /// Arguments that work when pasted.
    pub example: Option<Value>,
    /// The schema of the arguments; `$ref`s lead into the contract's document.
    pub arguments: Value,
    pub result: Value,
    /// The variant has no fields, so serde expects no `arguments` for it.
    bare: bool,
    gives: Option<fn(&mut SchemaGenerator) -> Schema>,
}

impl Operation {
    pub fn new(name: impl Into<String>, effect: Effect) -> Self {
        Operation {
            name: name.into(),
            effect,
            deadline: effect.deadline(),
            idempotent: false,
            private: false,
            quick: false,
            for_its_reader: false,
            about: String::new(),
            example: None,
            arguments: json!({"type": "object"}),
            result: json!(true),
            bare: false,
            gives: None,
        }
    }

    pub fn read(name: &str) -> Self {
        Operation::new(name, Effect::Read)
    }

    pub fn write(name: &str) -> Self {
        Operation::new(name, Effect::Write)
    }

    pub fn execute(name: &str) -> Self {
        Operation::new(name, Effect::Execute)
    }

    pub fn example(self, arguments: Value) -> Self {
        Operation { example: Some(arguments), ..self }
    }

    pub fn deadline(self, deadline: Duration) -> Self {
        Operation { deadline, ..self }
    }

    pub fn idempotent(self) -> Self {
        Operation { idempotent: true, ..self }
    }

    /// Keeps arguments and results out of the journal, which then records only that there was a call.
    pub fn private(self) -> Self {
        Operation { private: true, ..self }
    }

    /// The operation takes microseconds: the thread that accepts the call runs it, and other calls on that thread wait.
    pub fn quick(self) -> Self {
        Operation { quick: true, ..self }
    }

    /// The call ends with the handle that waits for its answer.
    pub fn for_its_reader(self) -> Self {
        Operation { for_its_reader: true, ..self }
    }

    /// The result of this operation, where the service's `Output` is a union of several.
    pub fn gives<T: JsonSchema>(self) -> Self {
        Operation { gives: Some(|generator| generator.subschema_for::<T>()), ..self }
    }

    /// The description of an operation that no Rust type describes.
    pub fn about(self, about: impl Into<String>) -> Self {
        Operation { about: about.into(), ..self }
    }

    /// For an operation that no Rust type describes: the JSON Schema of its arguments.
    pub fn takes(self, arguments: Value) -> Self {
        Operation { arguments, ..self }
    }

    /// For an operation that no Rust type describes: the JSON Schema of its result.
    pub fn answers(self, result: Value) -> Self {
        Operation { result, ..self }
    }

    /// The operation's control file, relative to the directory of the service.
    pub fn control_path(&self) -> String {
        format!("control/{}.json", self.name)
    }
}

/// The complete contract of a service.
#[derive(Clone, Debug)]
pub struct Contract {
    pub name: String,
    /// The purpose of the service; the first paragraph of its README.
    pub about: String,
    pub version: String,
    pub operations: Vec<Operation>,
    /// Further keys of CAPS.json, beside `invoke` and `operations`: `network`, `interactive`, …
    pub flags: Map<String, Value>,
    /// The directory with one page per operation, where README.md would be too long with all of them.
    pages_in: Option<&'static str>,
    /// SCHEMA.json, the document that `$ref`s point into.
    document: Value,
    /// The pages of the service's directory, rendered at the first request.
    pages: OnceLock<ContractPages>,
}

impl Contract {
    /// The contract of the command type `C`, an enum tagged `op` with content `arguments`, whose results are `O`.
    ///
    /// Each variant needs an entry in `operations`, a doc comment, and an example if an argument is required. A
    /// mismatch is an error, so a test only has to build the contract.
    pub fn of<C: JsonSchema, O: JsonSchema>(name: &str, about: &str, operations: Vec<Operation>) -> Result<Contract> {
        let mut defs = Map::new();
        let described = schema::requests::<C>(&mut defs);
        let results = schema::results::<O>(operations.iter().map(|operation| operation.gives), &mut defs);
        let mut listed: Vec<_> = operations.into_iter().zip(results).collect();
        let mut whole = Vec::new();
        for request in described {
            let Some(at) = listed.iter().position(|(operation, _)| operation.name == request.name) else {
                return Err(broken(name, format!("{} is a command but not among the operations", request.name)));
            };
            let (operation, result) = listed.remove(at);
            let schema::Request { about, arguments, bare, .. } = request;
            whole.push(Operation { about, arguments, bare, result, ..operation });
        }
        if let Some((operation, _)) = listed.first() {
            return Err(broken(name, format!("{} is an operation but not a command, or listed twice", operation.name)));
        }
        if let Some(operation) = whole.iter().find(|operation| operation.about.is_empty()) {
            return Err(broken(name, format!("{} has no doc comment", operation.name)));
        }
        Contract::build(name, about, whole, defs, true)
    }

    /// A contract whose schemas come from somebody else: examples that follow from them need not work, and each
    /// operation has a page of its own in the directory `pages_in`.
    pub fn foreign(name: &str, about: &str, operations: Vec<Operation>, pages_in: &'static str) -> Result<Contract> {
        let (operations, defs) = lifted(name, operations)?;
        Ok(Contract { pages_in: Some(pages_in), ..Contract::build(name, about, operations, defs, false)? })
    }

    /// The contract of a service of another host, as that host tells it: its examples are believed.
    pub fn told(name: &str, about: &str, operations: Vec<Operation>) -> Result<Contract> {
        let (operations, defs) = lifted(name, operations)?;
        Contract::build(name, about, operations, defs, false)
    }

    /// The schema of an operation's arguments or result alone, with the definitions that it refers to.
    pub fn alone(&self, schema: &Value) -> Value {
        let mut schema = schema.clone();
        let own =
            |name: &str| self.operations.iter().any(|operation| name.starts_with(&format!("{}.", operation.name)));
        if let (Some(object), Some(defs)) = (schema.as_object_mut(), self.document["$defs"].as_object())
            && refers(object)
        {
            let types = defs.iter().filter(|(name, _)| !is_part(name) || !own(name));
            let types: Map<String, Value> = types.map(|(name, schema)| (name.clone(), schema.clone())).collect();
            object.insert("$defs".to_owned(), Value::Object(types));
        }
        schema
    }

    /// A contract from plain data, for a program that is not written in Rust.
    pub fn plain(name: &str, about: &str, operations: Vec<Operation>) -> Result<Contract> {
        let (operations, defs) = lifted(name, operations)?;
        Contract::build(name, about, operations, defs, true)
    }

    fn build(
        name: &str,
        about: &str,
        operations: Vec<Operation>,
        defs: Map<String, Value>,
        samples_work: bool,
    ) -> Result<Contract> {
        let misnamed =
            operations.iter().find(|operation| !schema::is_name(&operation.name) || operation.name == "invoke");
        if let Some(operation) = misnamed {
            return Err(broken(name, format!("{} cannot be the name of an operation", quoted(&operation.name))));
        }
        let document = schema::document(name, about, &operations, defs);
        schema::validate(&document).map_err(|fault| broken(name, fault))?;
        let contract = Contract {
            name: name.to_owned(),
            about: about.trim().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            operations,
            flags: Map::new(),
            pages_in: None,
            document,
            pages: OnceLock::new(),
        };
        for operation in contract.operations.iter().filter(|_| samples_work) {
            let example = contract.template(operation);
            contract
                .check(&operation.name, &example)
                .map_err(|err| broken(name, format!("the example of {} is refused: {err}", operation.name)))?;
        }
        Ok(contract)
    }

    /// Adds a flag to CAPS.json.
    pub fn flag(mut self, name: &str) -> Self {
        self.flags.insert(name.to_owned(), Value::Bool(true));
        self
    }

    /// Finds an operation by name. The error suggests the nearest known name.
    pub fn operation(&self, name: &str) -> Result<&Operation> {
        self.operations.iter().find(|operation| operation.name == name).ok_or_else(|| {
            let known = self.operations.iter().map(|operation| operation.name.as_str());
            let hint = hint(name, known, "operations");
            Error::unknown_operation(format!("{} has no operation {}{hint}", self.name, quoted(name)))
        })
    }

    /// Checks arguments against the schema of an operation. The error lists the faults and where they are.
    pub fn check(&self, operation: &str, arguments: &Value) -> Result<()> {
        let operation = self.operation(operation)?;
        let faults = check::faults(&operation.arguments, &self.document, arguments);
        match check::sentence(&faults) {
            None => Ok(()),
            Some(sentence) => Err(Error::invalid(format!("{}: {sentence}", operation.name))),
        }
    }
}

/// Operations that no Rust type describes, with their `$defs` in one map.
fn lifted(name: &str, operations: Vec<Operation>) -> Result<(Vec<Operation>, Map<String, Value>)> {
    let mut defs = Map::new();
    let mut whole: Vec<Operation> = Vec::new();
    for mut operation in operations {
        if whole.iter().any(|other| other.name == operation.name) {
            return Err(broken(name, format!("{} is listed twice", operation.name)));
        }
        let at = operation.name.clone();
        operation.arguments = schema::lift(operation.arguments, &format!("{at}.arguments"), &mut defs);
        operation.result = schema::lift(operation.result, &format!("{at}.result"), &mut defs);
        whole.push(operation);
    }
    Ok((whole, defs))
}

/// Whether a definition is that of a part of an operation, and not of a type.
fn is_part(name: &str) -> bool {
    [".request", ".arguments", ".result"].iter().any(|end| name.ends_with(end))
}

/// Whether a schema has a `$ref` somewhere.
fn refers(schema: &Map<String, Value>) -> bool {
    Value::Object(schema.clone()).to_string().contains("\"$ref\"")
}

fn broken(name: &str, what: String) -> Error {
    Error::internal(format!("the contract of {name} is broken: {what}"))
}
