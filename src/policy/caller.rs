//! The principal behind a caller of the tree.
//!
//! The tree carries an opaque identity; only this file puts a principal into it and takes it out again. A caller
//! without one is [`Principal::Nobody`]. Every module may use it.

use std::sync::LazyLock;

use super::Principal;
use acheron_base::{Error, Result};
use acheron_vfs::{Caller, Identity};

/// The extension of a caller's identity.
struct CallerInfo {
    principal: Principal,
    /// The principal is an agent that acts during its own turn, through its three tools.
    in_turn: bool,
}

static OPERATOR: LazyLock<Identity> = LazyLock::new(|| with_principal(Principal::Operator, false));

/// The identity of a principal outside a turn.
pub fn identity(principal: Principal) -> Identity {
    match principal {
        Principal::Operator => OPERATOR.clone(),
        principal => with_principal(principal, false),
    }
}

fn with_principal(principal: Principal, in_turn: bool) -> Identity {
    Identity::with(principal.to_string(), CallerInfo { principal, in_turn })
}

/// The principal of a caller of the tree.
pub trait PrincipalCaller: Sized {
    /// The host itself, or the user who started it, acting from inside this process.
    fn operator() -> Self;

    /// An agent, acting from inside this process.
    fn agent(id: &str) -> Self;

    /// An agent during its own turn.
    fn agent_in_turn(id: &str) -> Self;

    /// Any principal, acting from inside this process.
    fn of(principal: Principal) -> Self;

    fn principal(&self) -> &Principal;

    fn in_turn(&self) -> bool;

    /// Whether the caller may wait for turns of `agent` to end. Turns of one agent run one after another, so an agent
    /// that waits during its own turn would wait until its deadline; it gets `busy` instead. A program that the agent
    /// started may wait, because the turn can end without it.
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
        Caller::inside(with_principal(Principal::Agent(id.to_owned()), true))
    }

    fn of(principal: Principal) -> Self {
        Caller::inside(identity(principal))
    }

    fn principal(&self) -> &Principal {
        self.identity.extension::<CallerInfo>().map_or(&Principal::Nobody, |info| &info.principal)
    }

    fn in_turn(&self) -> bool {
        self.identity.extension::<CallerInfo>().is_some_and(|info| info.in_turn)
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
