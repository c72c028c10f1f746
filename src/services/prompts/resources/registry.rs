//! The providers of resources, by name. Immutable: merging gives a new registry.

use std::sync::Arc;

use super::Resource;
use super::held::Resolver;
use acheron_base::{Error, Result};
use acheron_prompts::manifest::Scope;

/// Makes a resource; may ask for others.
pub type ResourceProvider = Arc<dyn Fn(&mut Resolver<'_>) -> Result<Arc<dyn Resource>> + Send + Sync>;

#[derive(Clone)]
pub struct ResourceBinding {
    pub name: String,
    pub scope: Scope,
    /// Made when the prompt is opened, not when it is first asked for.
    pub eager: bool,
    pub provider: ResourceProvider,
}

impl ResourceBinding {
    pub fn new(
        name: &str,
        scope: Scope,
        provider: impl Fn(&mut Resolver<'_>) -> Result<Arc<dyn Resource>> + Send + Sync + 'static,
    ) -> ResourceBinding {
        ResourceBinding { name: name.to_owned(), scope, eager: false, provider: Arc::new(provider) }
    }

    pub fn eager(mut self) -> ResourceBinding {
        self.eager = true;
        self
    }
}

/// Bindings in the order in which they were added, each name once.
#[derive(Clone, Default)]
pub struct ResourceRegistry {
    bindings: Vec<ResourceBinding>,
}

impl ResourceRegistry {
    pub fn of(bindings: impl IntoIterator<Item = ResourceBinding>) -> Result<ResourceRegistry> {
        let mut registry = ResourceRegistry::default();
        for binding in bindings {
            if registry.binding(&binding.name).is_some() {
                return Err(Error::already_exists(format!("there are two bindings for `{}`", binding.name)));
            }
            registry.bindings.push(binding);
        }
        Ok(registry)
    }

    pub fn binding(&self, name: &str) -> Option<&ResourceBinding> {
        self.bindings.iter().find(|binding| binding.name == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.bindings.iter().map(|binding| binding.name.as_str())
    }

    pub fn all(&self) -> impl Iterator<Item = &ResourceBinding> {
        self.bindings.iter()
    }

    pub fn eager(&self) -> impl Iterator<Item = &ResourceBinding> {
        self.bindings.iter().filter(|binding| binding.eager)
    }

    /// Names that both have.
    pub fn conflicts(&self, other: &ResourceRegistry) -> Vec<String> {
        self.names().filter(|name| other.binding(name).is_some()).map(str::to_owned).collect()
    }

    /// Both together; a name that both have is refused.
    pub fn merged(&self, other: &ResourceRegistry) -> Result<ResourceRegistry> {
        match self.conflicts(other).first() {
            Some(name) => Err(Error::already_exists(format!("there are two bindings for `{name}`"))),
            None => Ok(self.under(other)),
        }
    }

    /// Both together; of a name that both have, the other's is taken.
    pub fn under(&self, other: &ResourceRegistry) -> ResourceRegistry {
        let own = self.bindings.iter().filter(|binding| other.binding(&binding.name).is_none());
        ResourceRegistry { bindings: own.chain(&other.bindings).cloned().collect() }
    }
}
