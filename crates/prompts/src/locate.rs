//! Finds the line and column of a value in a JSON text, so that a fault in what a file *means* can name its place as
//! well as a fault in how it is spelt.

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Item(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Step::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(item: usize) -> Self {
        Step::Item(item)
    }
}

/// Line and column of the value that the steps lead to, or of the last one on the way that is there.
/// The text is JSON that has been parsed already; for anything else the answer is some place in it, never a panic.
pub fn locate(text: &str, steps: &[Step]) -> (usize, usize) {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    scan.space();
    for step in steps {
        let start = scan.at;
        let found = match step {
            Step::Key(key) => scan.enter_key(key),
            Step::Item(item) => scan.enter_item(*item),
        };
        if !found {
            scan.at = start;
            break;
        }
    }
    let before = &text.as_bytes()[..scan.at.min(text.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    (line, column)
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace() || byte == b',' || byte == b':') {
            self.at += 1;
        }
    }

    /// Passes a string and gives it as it is written between the quotes.
    fn string(&mut self) -> &[u8] {
        self.at += 1;
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        let end = self.at.min(self.bytes.len());
        self.at = end + 1;
        &self.bytes[start.min(end)..end]
    }

    /// Passes one whole value.
    fn value(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                None => return,
                Some(b'"') => {
                    self.string();
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                Some(_) => {
                    while self.peek().is_some_and(|byte| !b"{}[],\"".contains(&byte) && !byte.is_ascii_whitespace()) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return;
            }
            self.space();
        }
    }

    fn enter_key(&mut self, key: &str) -> bool {
        if self.peek() != Some(b'{') {
            return false;
        }
        self.at += 1;
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return false;
            }
            let found = self.string() == key.as_bytes();
            self.space();
            if found {
                return true;
            }
            self.value();
        }
    }

    fn enter_item(&mut self, item: usize) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.at += 1;
        for _ in 0..item {
            self.space();
            if matches!(self.peek(), None | Some(b']')) {
                return false;
            }
            self.value();
        }
        self.space();
        !matches!(self.peek(), None | Some(b']'))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_is_found_by_its_steps() {
        let text = "{\n  \"a\": [1, {\"b\\\"]\": \"x}\", \"é\": 2, \"c\": 3}],\n  \"d\": true\n}";
        let rows: [(&[Step], (usize, usize)); 6] = [
            (&[], (1, 1)),
            (&["a".into()], (2, 8)),
            (&["a".into(), 1.into()], (2, 12)),
            (&["a".into(), 1.into(), "c".into()], (2, 40)),
            (&["d".into()], (3, 8)),
            (&["a".into(), 9.into()], (2, 8)),
        ];
        for (steps, expected) in rows {
            assert_eq!(locate(text, steps), expected, "{steps:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_or_run_for_ever(text in "[\\[\\]{}\",:a1\\\\ \n]{0,60}", key in "[a-z]", item in 0usize..5) {
            locate(&text, &[Step::Key(key.clone()), Step::Item(item), Step::Key(key)]);
            locate(&text, &[Step::Item(item), Step::Item(item)]);
        }
    }
}
