//! The principal behind a caller of the tree.
//!
//! The tree carries an opaque identity; this is the one place that puts a principal into it and takes it out again. A
//! caller without one is nobody.

use std::sync::LazyLock;

use acheron_base::{Error, Result};
use acheron_vfs::{Caller, Identity};

use super::Principal;

/// What the host knows about a caller.
struct Known {
    principal: Principal,
    /// The principal is an agent that asks in the course of a turn, with its own three tools.
    in_turn: bool,
}

static OPERATOR: LazyLock<Identity> = LazyLock::new(|| known(Principal::Operator, false));

/// The identity of a principal outside a turn.
pub fn identity(principal: Principal) -> Identity {
    match principal {
        Principal::Operator => OPERATOR.clone(),
        principal => known(principal, false),
    }
}

fn known(principal: Principal, in_turn: bool) -> Identity {
    Identity::with(principal.to_string(), Known { principal, in_turn })
}

/// Callers of the tree, seen as principals.
pub trait PrincipalCaller: Sized {
    /// The host itself, or the person who started it, acting from inside this process.
    fn operator() -> Self;

    /// An agent, acting from inside this process.
    fn agent(id: &str) -> Self;

    /// The agent itself, in the course of a turn.
    fn agent_in_turn(id: &str) -> Self;

    /// Any principal, acting from inside this process.
    fn of(principal: Principal) -> Self;

    fn principal(&self) -> &Principal;

    fn in_turn(&self) -> bool;

    /// Whether it may wait for turns of `agent` to end. Turns of one agent run one after another, so an agent in the
    /// middle of one would wait for itself until its deadline. It is told that this is not ready, which is all it could
    /// ever hear. A program that it started may wait: the turn can end without it.
    fn may_await_turns(&self, agent: &str) -> Result<()> {
        match self.principal() {
            Principal::Agent(id) if self.in_turn() && id == agent => Err(Error::busy(
                "this waits for your own turn to end, and a turn cannot wait for itself; write your reply to end it",
            )),
            _ => Ok(()),
        }
    }
}

impl PrincipalCaller for Caller {
    fn operator() -> Self {
        Caller::of(Principal::Operator)
    }

    fn agent(id: &str) -> Self {
        Caller::of(Principal::Agent(id.to_owned()))
    }

    fn agent_in_turn(id: &str) -> Self {
        Caller::inside(known(Principal::Agent(id.to_owned()), true))
    }

    fn of(principal: Principal) -> Self {
        Caller::inside(identity(principal))
    }

    fn principal(&self) -> &Principal {
        self.identity.extension::<Known>().map_or(&Principal::Nobody, |known| &known.principal)
    }

    fn in_turn(&self) -> bool {
        self.identity.extension::<Known>().is_some_and(|known| known.in_turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_without_a_principal_is_nobody() {
        assert_eq!(Caller::inside(Identity::named("operator")).principal(), &Principal::Nobody);
        assert_eq!(Caller::operator().principal(), &Principal::Operator);
    }

    #[test]
    fn only_an_agent_in_its_own_turn_may_not_wait_for_it() {
        for (caller, allowed) in [
            (Caller::agent_in_turn("ada"), false),
            (Caller::agent_in_turn("bob"), true),
            (Caller::agent("ada"), true),
            (Caller::operator(), true),
        ] {
            assert_eq!(caller.may_await_turns("ada").is_ok(), allowed, "{caller:?}");
        }
    }
}
