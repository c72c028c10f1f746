//! The standard error of a program: lines for the log, and lines that report progress.

use serde_json::Value;

/// Longer lines are cut: a log is for people.
const LONGEST: usize = 16 << 10;

/// One line of a program's standard error.
#[derive(Debug, PartialEq)]
pub enum StderrLine {
    Log(String),
    Progress(Value),
}

/// Cuts a stream into lines.
#[derive(Debug, Default)]
pub struct StderrLines(Vec<u8>);

impl StderrLines {
    /// The lines that are whole with these bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<StderrLine> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST.saturating_sub(self.0.len());
            self.0.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                lines.extend(self.rest());
            }
        }
        lines
    }

    /// The bytes after the last end of line.
    pub fn rest(&mut self) -> Option<StderrLine> {
        let bytes = std::mem::take(&mut self.0);
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        (!bytes.is_empty()).then(|| line(text))
    }
}

fn line(text: &str) -> StderrLine {
    let progress = text.trim_start().starts_with('{').then(|| serde_json::from_str::<Value>(text).ok()).flatten();
    match progress {
        Some(Value::Object(mut object)) if object.len() == 1 && object.contains_key("progress") => {
            StderrLine::Progress(object.remove("progress").unwrap_or_default())
        }
        _ => StderrLine::Log(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_come_whole_whatever_the_pieces() {
        let mut lines = StderrLines::default();
        assert_eq!(lines.take(b"one\ntw"), [StderrLine::Log("one".into())]);
        assert_eq!(lines.take(b"o\r\n{\"progress\":"), [StderrLine::Log("two".into())]);
        assert_eq!(
            lines.take(b"{\"done\":3}}\n\n"),
            [StderrLine::Progress(json!({"done": 3})), StderrLine::Log(String::new())]
        );
        assert_eq!(lines.take(b"end"), []);
        assert_eq!((lines.rest(), lines.rest()), (Some(StderrLine::Log("end".into())), None));
    }

    #[test]
    fn only_an_object_with_nothing_else_is_progress() {
        for text in ["{\"progress\":1,\"x\":2}", "[{\"progress\":1}]", "{\"progress\"", "{}"] {
            assert_eq!(line(text), StderrLine::Log(text.into()));
        }
    }

    #[test]
    fn a_line_without_an_end_does_not_grow_for_ever() {
        let mut lines = StderrLines::default();
        for _ in 0..10 {
            assert_eq!(lines.take(&[b'x'; 8 << 10]), []);
        }
        assert!(matches!(lines.rest(), Some(StderrLine::Log(text)) if text.len() == LONGEST));
    }
}
