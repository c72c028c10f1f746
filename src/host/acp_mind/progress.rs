//! What a program that is the mind of an agent tells, as the steps of its turn. Its words since its last call are the reply.

use std::collections::HashMap;

use acheron_acp::{ReceivedCall, ReceivedUpdate};
use serde_json::json;

use crate::jobs::{Job, JobSteps};

/// The most of one reply, in bytes, and the most calls of a turn that are told apart.
const REPLY: usize = 1 << 20;
const CALLS: usize = 1000;

#[derive(Default)]
pub struct MindProgress {
    /// The words since the last call, and all of them.
    last: String,
    all: String,
    /// The number of the step of each call that has not ended.
    calls: HashMap<String, u64>,
}

impl MindProgress {
    pub fn add(&mut self, update: &ReceivedUpdate, job: &Job) {
        let Some(steps) = job.steps() else { return };
        match update {
            ReceivedUpdate::Thought(text) if !text.is_empty() => {
                steps.add(json!({ "step": "thought", "text": text }));
            }
            ReceivedUpdate::Message(text) if !text.is_empty() => {
                for words in [&mut self.last, &mut self.all] {
                    if words.len() + text.len() <= REPLY {
                        words.push_str(text);
                    }
                }
                steps.add(json!({ "step": "text", "text": text }));
            }
            ReceivedUpdate::Call(call) => self.call(call, job, steps),
            _ => (),
        }
    }

    fn call(&mut self, call: &ReceivedCall, job: &Job, steps: &JobSteps) {
        let ended = matches!(call.status.as_str(), "completed" | "failed");
        // Some programs tell of the end of a call that they never announced.
        let number = match self.calls.get(&call.id) {
            Some(number) => *number,
            None if self.calls.len() >= CALLS => return,
            None => {
                self.last.clear();
                let title = if call.title.is_empty() { &call.id } else { &call.title };
                job.log.line(&format!("  {title}"));
                let step = json!({ "step": "call", "tool": title, "kind": call.kind, "locations": call.locations, "arguments": {} });
                let number = steps.add(step);
                self.calls.insert(call.id.clone(), number);
                number
            }
        };
        if ended {
            self.calls.remove(&call.id);
            let ok = call.status == "completed";
            steps.add(json!({ "step": "outcome", "call": number, "ok": ok, "text": call.text }));
        }
    }

    /// The reply.
    pub fn reply(self) -> String {
        let text = if self.last.trim().is_empty() { self.all } else { self.last };
        text.trim().to_owned()
    }
}

#[cfg(test)]
mod tests;
