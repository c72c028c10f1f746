//! A request: everything that a person needs to decide, and nothing that the model says of it in place of that.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::exception::Scope;
use super::subject::{Subject, SubjectFacts};

/// The rule that asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AskingRule {
    /// Its hash: that of everything in it that decides.
    pub hash: String,
    /// As it stands in the mountspec.
    pub rule: Value,
    /// Whether an answer may hold for good.
    pub always: bool,
}

/// An answer that can be given, and what it would write.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offer {
    /// The text to write to `decision`.
    pub answer: &'static str,
    /// What it does.
    pub does: &'static str,
    /// The exception that it writes, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<Scope>,
}

/// A request, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The agent that asks.
    pub agent: String,
    /// What would be done.
    pub subject: Subject,
    /// What is known of it.
    pub facts: SubjectFacts,
    /// The rule that asks.
    pub rule: AskingRule,
    /// The reason that the model gave, in its words.
    pub stated_reason: Option<String>,
}

impl Request {
    /// The hash that binds an answer to it.
    pub fn hash(&self) -> String {
        self.subject.hash(&self.agent)
    }

    /// What an answer for longer would allow.
    pub fn scope(&self) -> Scope {
        self.subject.scope(&self.agent, &self.facts)
    }

    /// The answers that can be given.
    pub fn offers(&self) -> Vec<Offer> {
        let offer = |answer, does, writes| Offer { answer, does, writes };
        let longer = || Some(self.scope());
        let mut offers = vec![
            offer("allow", "it is done, once", None),
            offer("deny: reason", "it is not done, and the agent is told the reason", None),
            offer("allow for 10m", "and what `writes` covers is not asked for that time", longer()),
        ];
        if self.rule.always {
            offers.push(offer(
                "allow always",
                "and what `writes` covers is not asked again until it is revoked",
                longer(),
            ));
        }
        offers
    }

    /// The part of `request.json` that follows from the request alone.
    pub fn page(&self) -> Value {
        let mut page = json!({
            "agent": self.agent,
            "kind": self.subject.kind(),
            "summary": self.subject.summary(&self.agent),
            "subject": self.subject,
            "subject_sha256": self.hash(),
            "risk": self.facts.risk,
            "stated_reason": self.stated_reason,
            "matched_rule": self.rule.rule,
            "offers": self.offers(),
        });
        if let Some(subject) = page["subject"].as_object_mut() {
            subject.retain(|key, _| key != "kind");
        }
        page
    }
}

#[cfg(test)]
mod tests;
