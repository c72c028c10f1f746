use super::*;
use crate::agent::transcript::TurnSource;
use crate::model::{ModelAnswer, Prices, Usage};

const READ: &str = r#"{"tool_calls":[{"id":"r","name":"file_read","arguments":{"path":"a"}}]}"#;
const WRITE: &str = r#"{"tool_calls":[{"name":"file_write","arguments":{"path":"a","content":"x"}}]}"#;
const REPLY: &str =
    r#"{"tool_calls":[{"name":"file_write","arguments":{"path":"agents/self/chat/control/reply","content":"hi"}}]}"#;

/// A transcript in short: `read`, `write` and `reply` are answers, `ok` and `no` outcomes, the rest is prose.
fn records(words: &str, limits: BudgetLimits) -> Vec<TranscriptRecord> {
    let prices = Prices { input_per_mtok: 0.0, output_per_mtok: 1_000_000.0, ..Prices::default() };
    let (job_id, input) = ("job-1".to_owned(), "hello".to_owned());
    let mut records = vec![TranscriptRecord::Began {
        at_ms: 0,
        job_id,
        source: TurnSource::Chat,
        input,
        limits,
        prices,
        strict: false,
        protocol: Default::default(),
    }];
    records.extend(words.split_whitespace().map(|word| {
        let said = |text: &str| {
            let usage = Usage::new(10, 2);
            TranscriptRecord::Said {
                at_ms: 0,
                ms: 1000,
                seq: 1,
                said: ModelAnswer { text: text.to_owned(), usage, ..ModelAnswer::default() },
            }
        };
        let outcome = |result| TranscriptRecord::Outcome { at_ms: 0, ms: 5000, parked_ms: 4000, result };
        match word {
            "read" => said(READ),
            "write" => said(WRITE),
            "reply" => said(REPLY),
            "intent" => TranscriptRecord::Intent { at_ms: 0, call: protocol::parse(WRITE).unwrap() },
            "replying" => TranscriptRecord::Intent { at_ms: 0, call: protocol::parse(REPLY).unwrap() },
            "reading" => TranscriptRecord::Intent { at_ms: 0, call: protocol::parse(READ).unwrap() },
            "ok" => outcome(json!({"ready": true})),
            "no" => outcome(json!({"error": {"code": "not_found", "message": "there is no `a`"}})),
            "ended" => TranscriptRecord::Ended { at_ms: 0, end: TurnEnd::Replied("hi".into()) },
            prose => said(prose),
        }
    }));
    records
}

fn shown(words: &str, limits: BudgetLimits) -> String {
    let records = records(words, limits);
    match next(&records, &Spent::of(&records)) {
        NextStep::Ask => "ask".to_owned(),
        NextStep::Act(call) => format!("act {}", call.tool.name()),
        NextStep::Refuse(wrong) => format!("refuse {}", wrong.why),
        NextStep::Interrupted(call) => format!("interrupted {}", call.tool.name()),
        NextStep::Rest(TurnEnd::Replied(text)) => format!("replied {text}"),
        NextStep::Rest(TurnEnd::Failed { why, error }) => format!("{why}: {error}"),
    }
}

#[test]
fn the_transcript_says_what_comes_next() {
    for (words, wanted) in [
        ("", "ask"),
        ("read", "act file_read"),
        ("read ok", "ask"),
        ("read no", "ask"),
        ("reply", "act file_write"),
        ("reply ok", "replied hi"),
        ("reply no", "ask"),
        ("reply ok ended", "replied hi"),
        ("write intent", "interrupted file_write"),
        ("reply replying", "act file_write"),
        ("reply replying ok", "replied hi"),
        ("read reading", "act file_read"),
        ("hm", "ask"),
        ("hm hm", "ask"),
        (
            "hm hm hm",
            "protocol_fault: the model broke the protocol 3 times in a row: not_json: the answer is not a JSON object; write text for people to the reply with file_write; it said: hm",
        ),
        ("hm hm read ok hm", "ask"),
        ("read no read no", "ask"),
        ("read no read no read no", "repeated_failure: the same file_read failed 3 times in a row: there is no `a`"),
        ("read no write no read no", "ask"),
        ("read no read ok read no read no", "ask"),
        ("read no hm read no read no", "repeated_failure: the same file_read failed 3 times in a row: there is no `a`"),
    ] {
        assert_eq!(shown(words, BudgetLimits::default()), wanted, "{words}");
    }
}

#[test]
fn a_budget_ends_the_turn_before_the_next_question() {
    let limits = |rounds, tokens, seconds, money| BudgetLimits { rounds, tokens, seconds, money };
    for (words, limits, wanted) in [
        ("read ok", limits(Some(2), None, None, None), "ask"),
        ("read ok read ok", limits(Some(2), None, None, None), "budget_exceeded: the turn has used up its rounds"),
        ("read ok reply", limits(Some(2), None, None, None), "act file_write"),
        ("read ok reply ok", limits(Some(2), None, None, None), "replied hi"),
        ("read ok", limits(None, Some(12), None, None), "budget_exceeded: the turn has used up its tokens"),
        ("read ok", limits(None, None, Some(2), None), "budget_exceeded: the turn has used up its seconds"),
        ("read ok", limits(None, None, Some(3), None), "ask"),
        ("read ok", limits(None, None, None, Some(2.0)), "budget_exceeded: the turn has used up its money"),
        ("", limits(Some(0), None, None, None), "budget_exceeded: the turn has used up its rounds"),
    ] {
        assert_eq!(shown(words, limits), wanted, "{words}");
    }
}

#[test]
fn the_model_is_told_what_came_of_it() {
    let told = |words, limits| {
        let records = records(words, limits);
        feedback(&records, &Spent::of(&records)).unwrap_or_default().to_string()
    };
    let free = BudgetLimits::default();
    assert_eq!(told("read ok", free), r#"{"tool_result":{"id":"r","name":"file_read","result":{"ready":true}}}"#);
    assert!(told("read no", free).contains(r#""error":{"code":"not_found""#));
    assert!(!told("read no", free).contains("notice"));
    assert!(told("read no read no", free).contains("this same call has failed twice"));
    assert!(told("hm hm", free).contains(r#""fault":"not_json""#));
    assert!(told("hm hm", free).contains(r#""in_a_row":2"#));
    let few = BudgetLimits { rounds: Some(5), ..free };
    assert!(told("read ok read ok read ok read ok", few).contains("80 % of this turn's rounds"));
}

#[test]
fn a_reply_is_known_by_its_path() {
    let tool = |path: &str| {
        ToolCall::Write(crate::agent::tools::FileWrite {
            path: path.to_owned(),
            content: "x".into(),
            append: false,
            create_parents: false,
            wait_until_ready: true,
        })
    };
    for (path, wanted) in [
        ("agents/self/chat/control/reply", true),
        ("/agents/charon/chat//control/./reply", true),
        ("agents/self/chat/control/input", false),
        ("projects/agents/self/chat/control/reply", false),
        ("agents/self/x/chat/control/reply", false),
    ] {
        assert_eq!(reply(&tool(path)).is_some(), wanted, "{path}");
    }
}
