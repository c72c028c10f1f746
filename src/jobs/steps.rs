//! The steps of a turn as they happen: pieces of thoughts, calls and their outcomes, for readers who follow it. Used by `agent`,
//! which adds them, and by [`files`](super::files), which shows them. They are kept in memory, as the log of a job is.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use super::Job;
use acheron_base::Error;
use acheron_vfs::{Answer, Caller, Listing, Node, VirtualDir, line, live, text, waiting};

/// The most bytes of one turn; the oldest steps go first.
const LIMIT: usize = 1 << 20;

const README: &str = "\
# steps

`../steps.ndjson` has what happened in this turn so far, one JSON object per line: `seq` counts from 1, and `step` is `thought`
(a piece of it), `text` (a piece of the reply), `call`, `outcome` or `said`.

`<n>.ndjson` here has the lines after the first n. It waits until there is one; when the turn has ended, it is empty. Such names
are not listed:

    n=0; while lines=$(cat $n.ndjson) && [ \"$lines\" ]; do echo \"$lines\"; n=$(echo \"$lines\" | tail -n 1 | jq .seq); done
";

/// The steps of one job.
#[derive(Default)]
pub struct JobSteps {
    kept: Mutex<KeptSteps>,
    /// The number of the last step.
    last: watch::Sender<u64>,
}

#[derive(Default)]
struct KeptSteps {
    lines: VecDeque<Bytes>,
    bytes: usize,
    /// The number of the last step.
    last: u64,
}

impl JobSteps {
    /// Adds a step. `fields` is an object with `step`; it gets its number here, which is returned.
    pub fn add(&self, fields: Value) -> u64 {
        let mut kept = self.kept.lock();
        kept.last += 1;
        let mut step = serde_json::json!({ "seq": kept.last });
        if let (Value::Object(step), Value::Object(fields)) = (&mut step, fields) {
            step.extend(fields);
        }
        let step = line(&step);
        kept.bytes += step.len();
        kept.lines.push_back(step);
        while kept.bytes > LIMIT && kept.lines.len() > 1 {
            kept.bytes -= kept.lines.pop_front().map_or(0, |line| line.len());
        }
        let last = kept.last;
        drop(kept);
        self.last.send_replace(last);
        last
    }

    /// The steps after the first `number` that are still kept.
    pub fn after(&self, number: u64) -> Bytes {
        let kept = self.kept.lock();
        let dropped = kept.last - kept.lines.len() as u64;
        let skip = usize::try_from(number.saturating_sub(dropped)).unwrap_or(usize::MAX);
        kept.lines.iter().skip(skip).flatten().copied().collect()
    }

    /// The number of bytes that are kept.
    pub fn bytes(&self) -> usize {
        self.kept.lock().bytes
    }

    pub fn clear(&self) {
        let mut kept = self.kept.lock();
        (kept.lines, kept.bytes) = (VecDeque::new(), 0);
    }
}

/// Adds the steps of a turn to the directory of its job.
pub fn shown(job: &Arc<Job>, listing: Listing) -> Listing {
    let Some(_) = job.steps() else { return listing };
    let (all, each) = (job.clone(), job.clone());
    let readme = Node::file(text(README));
    let directory = VirtualDir::new(
        || vec!["README.md".to_owned()],
        move |name| match name {
            "README.md" => Some(readme.clone()),
            name => {
                let (job, number) = (each.clone(), name.strip_suffix(".ndjson")?.parse().ok()?);
                Some(Node::file(waiting(move |caller| next(&job, caller, number))))
            }
        },
    );
    listing
        .file("steps.ndjson", live(move |_| Ok(all.steps().map_or_else(Bytes::new, |steps| steps.after(0)))))
        .dir("steps", directory)
}

/// The steps after `number`; waits for one, or for the end of the job.
fn next(job: &Arc<Job>, caller: &Caller, number: u64) -> Answer<Bytes> {
    let Some(steps) = job.steps() else { return Answer::refuse(Error::not_found("this job has no steps")) };
    // In this order: what a job adds before its end is seen after it.
    let settled = job.settled();
    let found = steps.after(number);
    if settled || !found.is_empty() {
        return Answer::ok(found);
    }
    if let Err(error) = job.may_be_awaited(caller) {
        return Answer::refuse(error);
    }
    let job = job.clone();
    Answer::later(async move {
        let Some(steps) = job.steps() else { return Ok(Bytes::new()) };
        let mut last = steps.last.subscribe();
        tokio::select! {
            _ = last.wait_for(|last| *last > number) => (), // the sender lives as long as the job
            _ = job.end() => (),
        }
        Ok(steps.after(number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn steps_are_numbered_and_the_oldest_go_first() {
        let steps = JobSteps::default();
        assert!(steps.after(0).is_empty());
        steps.add(json!({"step": "thought", "text": "a"}));
        steps.add(json!({"step": "thought", "text": "b"}));
        assert_eq!(steps.after(1), "{\"seq\":2,\"step\":\"thought\",\"text\":\"b\"}\n");
        assert!(steps.after(2).is_empty() && steps.after(u64::MAX).is_empty());
        for _ in 0..3 {
            steps.add(json!({"step": "text", "text": "x".repeat(LIMIT / 2)}));
        }
        assert!(steps.bytes() <= LIMIT && steps.after(0) == steps.after(4));
        steps.clear();
        steps.add(json!({"step": "said"}));
        assert_eq!(steps.after(0), "{\"seq\":6,\"step\":\"said\"}\n");
    }
}
