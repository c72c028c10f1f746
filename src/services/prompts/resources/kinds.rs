//! From what a prompt declares to bindings: which needs count, and which kinds there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::{Resource, ResourceBinding, ResourceRegistry};
use acheron_base::{Error, Result};
use acheron_prompts::manifest::{Need, PartKind};
use acheron_prompts::prompt::Session;
use acheron_prompts::tree::PromptTemplate;

pub const FILESYSTEM: &str = "filesystem";
pub const SESSION: &str = "session";
pub const MEMORY: &str = "memory";

/// Makes a resource of one kind for one open prompt.
pub type MakeResource = Arc<dyn Fn(&Need) -> Result<Arc<dyn Resource>> + Send + Sync>;

/// The kinds that there are, by name. Rust code adds its own.
pub type ResourceKinds = BTreeMap<String, MakeResource>;

/// The needs of the prompt, by name: its own needs, then those of its sections depth first, then those of the bind; the
/// later one of a name is taken.
pub fn needs(template: &PromptTemplate, bound: &BTreeMap<String, Need>) -> BTreeMap<String, Need> {
    let mut needs = template.resources.clone();
    for section in template.nodes.iter().map(|node| &node.section) {
        if let (PartKind::Workspace, Some(project)) = (section.kind, &section.project) {
            let files = Need { kind: FILESYSTEM.to_owned(), project: Some(project.clone()), ..Need::default() };
            needs.insert(FILESYSTEM.to_owned(), files);
        }
        needs.extend(section.resources.clone());
    }
    needs.extend(bound.clone());
    needs
}

pub fn registry(needs: &BTreeMap<String, Need>, kinds: &ResourceKinds) -> Result<ResourceRegistry> {
    let mut bindings = Vec::new();
    for (name, need) in needs {
        let make = kinds.get(&need.kind).cloned().ok_or_else(|| {
            let known: Vec<&str> = kinds.keys().map(String::as_str).collect();
            Error::invalid(format!("resource `{name}` is of kind `{}`; there are {}", need.kind, known.join(", ")))
        })?;
        let wanted = need.clone();
        let mut binding = ResourceBinding::new(name, need.scope, move |_| make(&wanted));
        binding.eager = need.eager;
        bindings.push(binding);
    }
    ResourceRegistry::of(bindings)
}

/// The session of the open prompt as a resource: what a failed tool changed in it is taken back too.
pub struct SessionState {
    session: Arc<Mutex<Session>>,
}

impl SessionState {
    /// The session, with what it holds at first where it holds nothing yet.
    pub fn new(session: Arc<Mutex<Session>>, initial: Option<&Value>) -> SessionState {
        if let Some(Value::Object(initial)) = initial {
            let mut session = session.lock();
            for (key, value) in initial {
                session.values.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        SessionState { session }
    }
}

impl Resource for SessionState {
    fn snapshot(&self) -> Result<Option<Value>> {
        let session = self.session.lock();
        serde_json::to_value(&*session).map(Some).map_err(|error| Error::internal(error.to_string()))
    }

    fn prepare(&self, snapshot: &Value) -> Result<()> {
        read(snapshot).map(drop)
    }

    fn restore(&self, snapshot: &Value) -> Result<()> {
        *self.session.lock() = read(snapshot)?;
        Ok(())
    }
}

fn read(snapshot: &Value) -> Result<Session> {
    serde_json::from_value(snapshot.clone()).map_err(|error| Error::invalid(format!("not a session: {error}")))
}
