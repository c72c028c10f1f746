//! What a sandbox's init tells its host, one JSON object a line.

use serde::{Deserialize, Serialize};

use super::confinement::Walls;
use acheron_base::Error;

/// Told in this order: `Init`, then `Ready` or `Failed`, then `Ended`. Silence before `Ended` means: killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(super) enum Word {
    /// The process that is number one inside, by its number outside.
    Init {
        pid: i32,
    },
    /// All walls stand; the program is being executed.
    Ready {
        walls: Walls,
    },
    Failed {
        error: Error,
    },
    Ended {
        #[serde(flatten)]
        ended: Ended,
    },
}

/// How a program ended: one of the two is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl Ended {
    pub const KILLED: Ended = Ended { code: None, signal: Some(libc::SIGKILL) };

    /// The number that a shell would show.
    pub fn status(self) -> i32 {
        self.code.unwrap_or_else(|| 128 + self.signal.unwrap_or(0))
    }
}

impl Word {
    pub fn line(&self) -> String {
        // cannot: plain data with text keys
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_one_line_and_comes_back_the_same() {
        let words = [
            Word::Init { pid: 7 },
            Word::Ready { walls: Walls::default() },
            Word::Failed { error: Error::not_found("no\nsuch program") },
            Word::Ended { ended: Ended { code: Some(3), signal: None } },
        ];
        for word in words {
            let line = word.line();
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert_eq!(serde_json::from_str::<Word>(&line).unwrap(), word);
        }
    }

    #[test]
    fn a_killed_program_has_the_status_a_shell_would_show() {
        assert_eq!(Ended::KILLED.status(), 137);
        assert_eq!(Ended { code: Some(2), signal: None }.status(), 2);
    }
}
