//! The states of an approval. Only one that waits can change.

use serde::{Deserialize, Serialize};

/// The state of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nobody has answered yet.
    Waiting,
    /// It was allowed; it is done once.
    Allowed,
    /// It was denied by a person.
    Denied,
    /// Nobody answered in time, which is not a denial.
    Expired,
    /// What asked has ended.
    Withdrawn,
    /// What would have been done changed after it was asked.
    Void,
}

impl State {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Allowed => "allowed",
            State::Denied => "denied",
            State::Expired => "expired",
            State::Withdrawn => "withdrawn",
            State::Void => "void",
        }
    }

    /// The state of that name.
    pub fn named(name: &str) -> Option<State> {
        let all = [State::Waiting, State::Allowed, State::Denied, State::Expired, State::Withdrawn, State::Void];
        all.into_iter().find(|state| state.name() == name)
    }

    /// Whether it never changes again.
    pub fn settled(self) -> bool {
        self != State::Waiting
    }
}
