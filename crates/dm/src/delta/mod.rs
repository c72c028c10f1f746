//! Stage C7: the delta, a strict block of appends and patches. All of it is applied, or none.

pub mod apply;
pub mod panels;
pub mod text;

/// One file of a delta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaItem {
    pub path: String,
    pub what: What,
    /// The first digits of the file's SHA-256 when the author looked.
    pub base: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Append(String),
    Patch { text: String, create: bool },
}

impl DeltaItem {
    pub fn append(path: impl Into<String>, text: impl Into<String>) -> Self {
        DeltaItem { path: path.into(), what: What::Append(text.into()), base: None }
    }

    pub fn patch(path: impl Into<String>, text: impl Into<String>) -> Self {
        DeltaItem { path: path.into(), what: What::Patch { text: text.into(), create: false }, base: None }
    }

    pub fn text(&self) -> &str {
        match &self.what {
            What::Append(text) | What::Patch { text, .. } => text,
        }
    }

    /// A patch that may add its section.
    pub fn section(path: impl Into<String>, text: impl Into<String>) -> Self {
        DeltaItem { path: path.into(), what: What::Patch { text: text.into(), create: true }, base: None }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    pub items: Vec<DeltaItem>,
    /// Routed files that were missing this turn.
    pub risk_flags: Vec<String>,
}
