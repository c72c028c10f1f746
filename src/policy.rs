//! Who may do what.

/// Who a caller is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    Operator,
    Agent(String),
    /// A process that is gone, or that nobody knows.
    Nobody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Read,
    Write,
    Invoke,
}

impl std::fmt::Display for Principal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Principal::Operator => f.write_str("operator"),
            Principal::Agent(id) => write!(f, "agent:{id}"),
            Principal::Nobody => f.write_str("nobody"),
        }
    }
}
