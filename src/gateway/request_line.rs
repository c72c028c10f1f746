//! One request of a program, as a line of `requests.ndjson`.

use serde::{Deserialize, Serialize};

use crate::model::Usage;

/// The longest text in a line, in characters.
const LONGEST: usize = 1000;

/// A change of the longest answer, because the budget pays for no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoweredAnswer {
    /// What the program asked for; `None` if it left that to the server.
    pub from: Option<u32>,
    pub to: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestLine {
    pub id: String,
    pub at_ms: u64,
    pub program: String,
    /// The language of the program, and that of the server if it is another.
    pub dialect: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translated_to: Option<String>,
    /// The model that was asked, as `kind:name`, and as the program calls it.
    pub model: String,
    pub asked_model: String,
    pub stream: bool,
    pub input: u64,
    pub output: u64,
    /// The part of the input that the server had in its cache.
    pub cached: u64,
    pub money: f64,
    pub first_byte_ms: Option<u64>,
    pub ms: u64,
    /// The status that the program got.
    pub status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<LoweredAnswer>,
    /// The server has not said what the request cost: input and output are counted here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// It went to the second model, because the first failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fallback: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl RequestLine {
    pub fn set_usage(&mut self, usage: Usage) {
        (self.input, self.output, self.cached) = (usage.input, usage.output, usage.cache_read);
    }

    /// The line. What a program or a server says is shown as far as it is of reasonable length.
    pub fn text(&self) -> String {
        let short = |text: &str| text.chars().take(LONGEST).collect::<String>();
        let (asked_model, error) = (short(&self.asked_model), self.error.as_deref().map(short));
        serde_json::to_string(&RequestLine { asked_model, error, ..self.clone() }).unwrap_or_default()
    }

    /// The line of a request that was under way when the host stopped.
    pub fn of_stopped_host(text: &str) -> String {
        let mut line: RequestLine = serde_json::from_str(text).unwrap_or_default();
        line.error =
            Some("host_stopped: the host stopped before the answer was complete; it is charged as far as known".into());
        line.estimated = true;
        line.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_short_whatever_a_program_calls_its_model() {
        let long = "é".repeat(1 << 20);
        let line = RequestLine { asked_model: long.clone(), error: Some(long), ..RequestLine::default() };
        assert!(line.text().len() < 5000);
    }
}
