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
