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
            subject.remove("kind");
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_shows_everything_and_says_what_each_answer_writes() {
        let subject = Subject::Invoke {
            path: "/agents/ada/memory/control/delete.json".to_owned(),
            service: "memory".to_owned(),
            operation: "delete".to_owned(),
            effect: "write".to_owned(),
            arguments: json!({"name": "ford"}),
            runs: Value::Null,
        };
        let rule = json!({"ask": ["invoke"], "path": "/agents/self/memory/**"});
        let request = Request {
            agent: "ada".to_owned(),
            subject,
            facts: SubjectFacts { exact_only: false, risk: vec!["changes the state of this host".to_owned()] },
            rule: AskingRule { hash: "r".to_owned(), rule, always: true },
            stated_reason: Some("it is old".to_owned()),
        };
        let mut page = request.page();
        page["subject_sha256"] = json!("HASH");
        expect_test::expect![[r#"
            {
              "agent": "ada",
              "kind": "invoke",
              "summary": "ada calls memory.delete with {\"name\":\"ford\"}",
              "subject": {
                "path": "/agents/ada/memory/control/delete.json",
                "service": "memory",
                "operation": "delete",
                "effect": "write",
                "arguments": {
                  "name": "ford"
                },
                "runs": null
              },
              "subject_sha256": "HASH",
              "risk": [
                "changes the state of this host"
              ],
              "stated_reason": "it is old",
              "matched_rule": {
                "ask": [
                  "invoke"
                ],
                "path": "/agents/self/memory/**"
              },
              "offers": [
                {
                  "answer": "allow",
                  "does": "it is done, once"
                },
                {
                  "answer": "deny: reason",
                  "does": "it is not done, and the agent is told the reason"
                },
                {
                  "answer": "allow for 10m",
                  "does": "and what `writes` covers is not asked for that time",
                  "writes": {
                    "covers": "operation",
                    "path": "/agents/ada/memory/control/delete.json"
                  }
                },
                {
                  "answer": "allow always",
                  "does": "and what `writes` covers is not asked again until it is revoked",
                  "writes": {
                    "covers": "operation",
                    "path": "/agents/ada/memory/control/delete.json"
                  }
                }
              ]
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&page).unwrap());
        let never = Request { rule: AskingRule { always: false, ..request.rule.clone() }, ..request };
        assert!(never.offers().iter().all(|offer| offer.answer != "allow always"));
    }
}
