//! How the operator is asked: `approvals` of the mountspec.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the operator is asked about what rules with `ask` name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Approvals")]
pub struct ApprovalsSpec {
    /// How long a request waits for an answer before it expires, which is not a denial.
    #[schemars(range(min = 1, max = 604800))]
    pub expires_seconds: u64,
    /// Where each request is sent, with a link to the page of `acheron serve` that can answer it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<NotifySpec>,
    /// How the operator reaches the listener of `acheron serve` from afar, such as `https://host.example`; by default the
    /// address at which it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A place to which requests are sent: a webhook or a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Notify")]
pub struct NotifySpec {
    /// The URL that gets each request as JSON by POST.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// A program of the operator that gets each request as JSON on its standard input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

impl Default for ApprovalsSpec {
    fn default() -> Self {
        ApprovalsSpec { expires_seconds: 15 * 60, notify: Vec::new(), url: None }
    }
}
