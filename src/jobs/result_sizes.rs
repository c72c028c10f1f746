//! Counts the memory that results of ended jobs take, so that results that are never read do not fill it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Job;

/// The most memory for the ended jobs of one agent; the newest job stays, whatever its size.
const MAX_TOTAL: usize = 64 << 20;
/// Smaller jobs are not counted: all jobs in memory together hold little of them.
const MIN_COUNTED: usize = 16 << 10;

/// The jobs of an agent that hold much memory, oldest first.
#[derive(Default)]
pub struct ResultSizes {
    bytes_by_id: BTreeMap<String, usize>,
    total: usize,
}

impl ResultSizes {
    pub fn total(&self) -> usize {
        self.total
    }

    /// Records the size of a job; returns the jobs that must be unloaded.
    pub fn note(&mut self, id: &str, bytes: usize) -> Vec<String> {
        self.forget(id);
        if bytes < MIN_COUNTED {
            return Vec::new();
        }
        self.bytes_by_id.insert(id.to_owned(), bytes);
        self.total += bytes;
        let mut surplus = Vec::new();
        while self.total > MAX_TOTAL && self.bytes_by_id.len() > 1 {
            let Some((oldest, bytes)) = self.bytes_by_id.pop_first() else { break };
            self.total -= bytes;
            surplus.push(oldest);
        }
        surplus
    }

    pub fn forget(&mut self, id: &str) {
        self.total -= self.bytes_by_id.remove(id).unwrap_or(0);
    }
}

/// The approximate size of a job in memory.
pub fn of(job: &Job) -> usize {
    let outcome = job.now().outcome;
    let result = outcome.as_ref().and_then(|outcome| outcome.as_ref().as_ref().ok()).map_or(0, value);
    let (begin, end) = job.log.range();
    let files: usize = job.files().iter().map(|(_, bytes)| bytes.len()).sum();
    let steps = job.steps().map_or(0, super::JobSteps::bytes);
    result
        + files
        + steps
        + value(&job.call.arguments)
        + usize::try_from(end.saturating_sub(begin)).unwrap_or(usize::MAX)
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
        let mut sizes = ResultSizes::default();
        assert!(sizes.note("a", MIN_COUNTED - 1).is_empty() && sizes.total() == 0);
        assert!(sizes.note("b", MAX_TOTAL / 2).is_empty());
        assert!(sizes.note("c", MAX_TOTAL / 2).is_empty());
        assert_eq!(sizes.note("d", MAX_TOTAL / 4), ["b"]);
        assert_eq!(sizes.note("e", 2 * MAX_TOTAL), ["c", "d"]);
        assert_eq!(sizes.total(), 2 * MAX_TOTAL);
        sizes.forget("e");
        assert_eq!(sizes.total(), 0);
    }

    #[test]
    fn a_value_holds_its_texts_and_its_parts() {
        let small = value(&Value::Null);
        assert_eq!(value(&serde_json::json!("1234")), small + 4);
        assert_eq!(value(&serde_json::json!([null, "12"])), 3 * small + 2);
        assert_eq!(value(&serde_json::json!({"key": null})), 3 * small + 3);
    }
}
