//! The writing side: records become lines. Pure; the caller keeps the lines.

use serde_json::{Map, Value, json};

use super::key::{AuditKey, Head};
use super::{Hash, hex};

/// The lines after which a checkpoint follows.
const CHECKPOINT_EVERY: u64 = 1000;

/// What a line tells: its kind first, then whatever belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it happened.
    pub at_ms: u64,
    /// What happened: `denied`, `call`, `model`, `policy`, `login`, `start`, ….
    pub kind: String,
    /// The rest, in the order in which it is shown.
    pub fields: Map<String, Value>,
}

impl Record {
    /// A record without fields.
    pub fn new(at_ms: u64, kind: &str) -> Record {
        Record { at_ms, kind: kind.to_owned(), fields: Map::new() }
    }

    /// Adds a field. A text that is longer than a path may be is told by its hash and its length: a line has a size limit.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Record {
        let value = match value.into() {
            Value::String(text) if text.len() > LONGEST => digest(text.as_bytes()),
            value => value,
        };
        self.fields.insert(name.to_owned(), value);
        self
    }
}

impl Record {
    /// The line without what the chain adds in front. It is one line, whatever the fields are.
    pub fn render(&self) -> String {
        let mut line = format!(r#""at_ms":{}"#, self.at_ms);
        let mut add = |name: &str, value: &Value| {
            line.push(',');
            line.push_str(&Value::from(name).to_string());
            line.push(':');
            line.push_str(&value.to_string());
        };
        add("kind", &Value::from(self.kind.as_str()));
        // These are the chain's own.
        let own = |name: &str| matches!(name, "seq" | "prev" | "at_ms" | "kind");
        self.fields.iter().filter(|(name, _)| !own(name)).for_each(|(name, value)| add(name, value));
        line.push('}');
        line
    }
}

/// The longest text that stands in a line as it is.
const LONGEST: usize = 4096;

/// What is told of a value that may be large or secret: its hash and its length.
pub fn digest(bytes: &[u8]) -> Value {
    json!({"sha256": Hash::of(bytes).to_string(), "bytes": bytes.len()})
}

/// The end of a chain, to which lines are added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    next: u64,
    head: Hash,
    /// The number of the last checkpoint.
    checkpoint: u64,
}

impl Default for Chain {
    fn default() -> Self {
        Chain { next: 1, head: Hash::default(), checkpoint: 0 }
    }
}

impl Chain {
    /// The chain that ends with this head; its last checkpoint is not known, so that the next comes soon enough.
    pub fn after(head: &Head) -> Chain {
        Chain { next: head.seq + 1, head: head.hash, checkpoint: head.seq - head.seq % CHECKPOINT_EVERY }
    }

    /// The number of the next line.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The last line.
    pub fn head(&self) -> Head {
        Head { seq: self.next - 1, hash: self.head }
    }

    /// Adds a line; it has no end of line.
    pub fn append(&mut self, record: &Record) -> String {
        self.append_rendered(&record.render())
    }

    /// Adds a line for a record that was rendered before its place in the chain was known.
    pub fn append_rendered(&mut self, rendered: &str) -> String {
        let line = format!(r#"{{"seq":{},"prev":"{}",{rendered}"#, self.next, self.head);
        self.head = Hash::of(line.as_bytes());
        self.next += 1;
        line
    }

    /// Whether so many lines came after the last checkpoint that the next is due.
    pub fn wants_checkpoint(&self) -> bool {
        self.next > self.checkpoint + CHECKPOINT_EVERY
    }

    /// Adds a line that signs all lines before it.
    pub fn seal(&mut self, key: &AuditKey, at_ms: u64) -> String {
        let signature = key.sign_checkpoint(self.next, &self.head);
        self.checkpoint = self.next;
        self.append(&Record::new(at_ms, "checkpoint").with("signature", hex(&signature)))
    }
}
