//! Counts the memory that results of ended jobs take, so that results that are never read do not fill it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Job;

/// The most memory for the ended jobs of one agent; the newest job stays, whatever its size.
const MOST: usize = 64 << 20;
/// Smaller jobs are not counted: all jobs in memory together hold little of them.
const LIGHT: usize = 16 << 10;

/// The jobs of an agent that hold much memory, oldest first.
#[derive(Default)]
pub struct Heavy {
    by: BTreeMap<String, usize>,
    total: usize,
}

impl Heavy {
    pub fn total(&self) -> usize {
        self.total
    }

    /// Records the size of a job; returns the jobs that must be unloaded.
    pub fn note(&mut self, id: &str, bytes: usize) -> Vec<String> {
        self.forget(id);
        if bytes < LIGHT {
            return Vec::new();
        }
        self.by.insert(id.to_owned(), bytes);
        self.total += bytes;
        let mut surplus = Vec::new();
        while self.total > MOST && self.by.len() > 1 {
            let Some((oldest, bytes)) = self.by.pop_first() else { break };
            self.total -= bytes;
            surplus.push(oldest);
        }
        surplus
    }

    pub fn forget(&mut self, id: &str) {
        self.total -= self.by.remove(id).unwrap_or(0);
    }
}

/// The approximate size of a job in memory.
pub fn of(job: &Job) -> usize {
    let outcome = job.now().outcome;
    let result = outcome.as_ref().and_then(|outcome| outcome.as_ref().as_ref().ok()).map_or(0, value);
    let (begin, end) = job.log.range();
    result + value(&job.call.arguments) + usize::try_from(end.saturating_sub(begin)).unwrap_or(usize::MAX)
}

fn value(value: &Value) -> usize {
    let own = size_of::<Value>();
    own + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(self::value).sum(),
        Value::Object(fields) => fields.iter().map(|(key, field)| own + key.len() + self::value(field)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_let_go_and_the_newest_stays() {
        let mut heavy = Heavy::default();
        assert!(heavy.note("a", LIGHT - 1).is_empty() && heavy.total() == 0);
        assert!(heavy.note("b", MOST / 2).is_empty());
        assert!(heavy.note("c", MOST / 2).is_empty());
        assert_eq!(heavy.note("d", MOST / 4), ["b"]);
        assert_eq!(heavy.note("e", 2 * MOST), ["c", "d"]);
        assert_eq!(heavy.total(), 2 * MOST);
        heavy.forget("e");
        assert_eq!(heavy.total(), 0);
    }

    #[test]
    fn a_value_holds_its_texts_and_its_parts() {
        let small = value(&Value::Null);
        assert_eq!(value(&serde_json::json!("1234")), small + 4);
        assert_eq!(value(&serde_json::json!([null, "12"])), 3 * small + 2);
        assert_eq!(value(&serde_json::json!({"key": null})), 3 * small + 3);
    }
}
