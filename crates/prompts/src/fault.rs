//! The fault of a prompt, with everything that helps to find its place: kind, section, record, placeholder,
//! file, line and column.

use std::fmt;

use serde::Serialize;

use acheron_base::{Code, Error};

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Validation,
    Render,
    OutputParse,
    ExpansionRequired,
    Overrides,
    Resources,
}

/// A place in an edited file; lines and columns count from one, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spot {
    pub file: String,
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fault {
    pub kind: Kind,
    #[serde(serialize_with = "code_name")]
    pub code: Code,
    pub message: String,
    #[serde(flatten)]
    pub whereabouts: Box<Whereabouts>,
}

/// The known part of the place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Whereabouts {
    /// The section's keys joined by `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    #[serde(flatten)]
    pub spot: Option<Spot>,
}

fn code_name<S: serde::Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.name())
}

impl Fault {
    fn new(kind: Kind, code: Code, message: impl Into<String>) -> Self {
        Fault { kind, code, message: message.into(), whereabouts: Box::default() }
    }

    pub fn validation(message: impl Into<String>) -> Self {
        Fault::new(Kind::Validation, Code::InvalidPayload, message)
    }

    pub fn render(message: impl Into<String>) -> Self {
        Fault::new(Kind::Render, Code::InvalidPayload, message)
    }

    pub fn output(message: impl Into<String>) -> Self {
        Fault::new(Kind::OutputParse, Code::InvalidPayload, message)
    }

    pub fn expansion(message: impl Into<String>) -> Self {
        Fault::new(Kind::ExpansionRequired, Code::InvalidPayload, message)
    }

    pub fn overrides(message: impl Into<String>) -> Self {
        Fault::new(Kind::Overrides, Code::InvalidPayload, message)
    }

    pub fn resources(message: impl Into<String>) -> Self {
        Fault::new(Kind::Resources, Code::ExecutionFailed, message)
    }

    /// The same fault under another code, where the kind alone says too little.
    pub fn coded(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    pub fn section(mut self, path: impl Into<String>) -> Self {
        self.whereabouts.section.get_or_insert(path.into());
        self
    }

    pub fn record(mut self, name: impl Into<String>) -> Self {
        self.whereabouts.record.get_or_insert(name.into());
        self
    }

    pub fn placeholder(mut self, name: impl Into<String>) -> Self {
        self.whereabouts.placeholder.get_or_insert(name.into());
        self
    }

    pub fn at(mut self, file: impl Into<String>, line: usize, column: usize) -> Self {
        self.whereabouts.spot.get_or_insert(Spot { file: file.into(), line, column });
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Spot { file, line, column }) = &self.whereabouts.spot {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        f.write_str(&self.message)?;
        let Whereabouts { section, record, placeholder, .. } = &*self.whereabouts;
        let named = [("section", section), ("params", record), ("placeholder", placeholder)];
        let known: Vec<String> =
            named.iter().filter_map(|(what, name)| name.as_ref().map(|name| format!("{what} {name}"))).collect();
        if !known.is_empty() {
            write!(f, " ({})", known.join(", "))?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Error::new(fault.code, fault.to_string())
    }
}
