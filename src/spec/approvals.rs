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
}

impl Default for ApprovalsSpec {
    fn default() -> Self {
        ApprovalsSpec { expires_seconds: 15 * 60 }
    }
}
