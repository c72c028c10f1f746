//! The resources of one open prompt while it is open: made once, handed out, closed in the opposite order.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::{Resource, ResourceRegistry};
use acheron_base::{Code, Error, Result};
use acheron_prompts::fault::Fault;
use acheron_prompts::manifest::Scope;

pub struct Resources {
    registry: ResourceRegistry,
    held: Mutex<HeldResources>,
}

pub(super) type MadeResources = Vec<(String, Arc<dyn Resource>)>;

#[derive(Default)]
pub(super) struct HeldResources {
    open: bool,
    /// In the order in which they were made.
    pub(super) singletons: MadeResources,
    /// One for each tool call that is under way, the innermost last.
    calls: Vec<MadeResources>,
}

/// Gives a provider the resources that it asks for.
pub struct Resolver<'a> {
    registry: &'a ResourceRegistry,
    held: &'a mut HeldResources,
    /// The resources being made, outermost first; a repeated name is a cycle.
    making: Vec<String>,
}

impl Resources {
    pub fn new(registry: ResourceRegistry) -> Resources {
        Resources { registry, held: Mutex::default() }
    }

    pub(super) fn held(&self) -> Result<MutexGuard<'_, HeldResources>> {
        let held = self.held.lock();
        match held.open {
            true => Ok(held),
            false => Err(fault("resources are used outside of their prompt: open it first", Code::Unavailable)),
        }
    }

    /// Makes what is eager. If one of them fails, those made before are closed, last first.
    pub fn enter(&self) -> Result<()> {
        let mut held = self.held.lock();
        if held.open {
            return Err(fault("resources are entered already", Code::Conflict));
        }
        held.open = true;
        for binding in self.registry.eager() {
            let made = Resolver { registry: &self.registry, held: &mut held, making: Vec::new() }.get(&binding.name);
            if let Err(error) = made {
                shut(std::mem::take(&mut held.singletons));
                held.open = false;
                return Err(error);
            }
        }
        Ok(())
    }

    pub fn get(&self, name: &str) -> Result<Arc<dyn Resource>> {
        let mut held = self.held()?;
        Resolver { registry: &self.registry, held: &mut held, making: Vec::new() }.get(name)
    }

    /// Makes every singleton that is not there yet.
    pub fn hold_all(&self) -> Result<()> {
        let singles = self.registry.all().filter(|binding| binding.scope == Scope::Singleton);
        singles.map(|binding| binding.name.clone()).try_for_each(|name| self.get(&name).map(drop))
    }

    /// Makes what lives as long as the innermost call, or is made for each use: one of each for this call.
    pub(super) fn hold_call(&self) -> Result<MadeResources> {
        let names: Vec<(String, Scope)> = self.registry.all().map(|one| (one.name.clone(), one.scope)).collect();
        let mut own = MadeResources::new();
        for (name, scope) in names.into_iter().filter(|(_, scope)| *scope != Scope::Singleton) {
            let made = self.get(&name)?;
            if scope == Scope::Prototype {
                // Nobody else holds it, so it ends with the call.
                self.held()?.calls.last_mut().into_iter().for_each(|call| call.push((name.clone(), made.clone())));
            }
            own.push((name, made));
        }
        Ok(own)
    }

    /// A new life for what lives as long as one tool call; the outer one goes on when it ends.
    pub fn enter_call(&self) -> Result<()> {
        self.held()?.calls.push(Vec::new());
        Ok(())
    }

    /// Ends the innermost tool call, and gives what would not close.
    pub fn leave_call(&self) -> Vec<Error> {
        let made = self.held().ok().and_then(|mut held| held.calls.pop());
        shut(made.unwrap_or_default())
    }

    /// Closes everything, last made first, whatever some of them say. Closing what is not open is nothing.
    pub fn exit(&self) -> Vec<Error> {
        let mut held = self.held.lock();
        held.open = false;
        let (mut calls, singletons) = (std::mem::take(&mut held.calls), std::mem::take(&mut held.singletons));
        drop(held);
        let mut errors = Vec::new();
        while let Some(call) = calls.pop() {
            errors.extend(shut(call));
        }
        errors.extend(shut(singletons));
        errors
    }
}

impl Drop for Resources {
    fn drop(&mut self) {
        for error in self.exit() {
            tracing::warn!(%error, "a resource could not be closed");
        }
    }
}

pub(super) fn shut(made: MadeResources) -> Vec<Error> {
    made.into_iter().rev().filter_map(|(_, resource)| resource.close().err()).collect()
}

impl Resolver<'_> {
    pub fn get(&mut self, name: &str) -> Result<Arc<dyn Resource>> {
        let binding = self.registry.binding(name).ok_or_else(|| {
            fault(&format!("no binding for `{}`", acheron_prompts::names::clipped(name)), Code::NotFound)
        })?;
        let place = match binding.scope {
            Scope::Singleton => Some(&self.held.singletons),
            Scope::ToolCall => Some(self.held.calls.last().ok_or_else(|| {
                fault(&format!("`{name}` lives as long as a tool call, and none is under way"), Code::Unavailable)
            })?),
            Scope::Prototype => None,
        };
        if let Some((_, made)) = place.into_iter().flatten().find(|(held, _)| held == name) {
            return Ok(made.clone());
        }
        if self.making.iter().any(|making| making == name) {
            let circle = [&self.making[..], &[name.to_owned()]].concat().join(" -> ");
            return Err(fault(&format!("resources need each other in a circle: {circle}"), Code::InvalidPayload));
        }
        self.making.push(name.to_owned());
        let made = (binding.provider)(self);
        self.making.pop();
        let made = made.map_err(|error| match error.message.starts_with(OURS) {
            true => error,
            false => Error::new(error.code, format!("{OURS}provider for `{name}` failed: {}", error.message)),
        })?;
        if let Err(error) = made.ready() {
            let _ = made.close(); // the first fault is the one that matters
            return Err(fault(&format!("`{name}` could not be made ready: {}", error.message), error.code));
        }
        match binding.scope {
            Scope::Singleton => self.held.singletons.push((name.to_owned(), made.clone())),
            Scope::ToolCall => {
                self.held.calls.last_mut().into_iter().for_each(|call| call.push((name.to_owned(), made.clone())));
            }
            Scope::Prototype => {}
        }
        Ok(made)
    }
}

const OURS: &str = "resources: ";

pub(super) fn fault(message: &str, code: Code) -> Error {
    Fault::resources(format!("{OURS}{message}")).coded(code).into()
}
