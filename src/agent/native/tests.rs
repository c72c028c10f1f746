use super::*;
use crate::agent::budget::BudgetLimits;
use crate::agent::transcript::TurnSource;
use crate::model::{ModelProtocol, Prices};

const READ: &str = r#"{"path":"a"}"#;
const WRITE: &str = r#"{"path":"a","content":"x"}"#;
const REPLY: &str = r#"{"path":"agents/self/chat/control/reply","content":"hi"}"#;

fn call(word: &str, at: usize) -> NativeCall {
    let (name, arguments) = match word {
        "read" => ("file_read", READ),
        "write" => ("file_write", WRITE),
        "reply" => ("file_write", REPLY),
        "list" => ("file_list", ""),
        "fly" => ("fly", "{}"),
        "broken" => ("file_read", "{oops"),
        "twice" => ("file_read", r#"{"path":"a","path":"b"}"#),
        "wrong" => ("file_read", r#"{"pth":"a"}"#),
        other => panic!("{other}"),
    };
    NativeCall { id: format!("c{at}"), name: name.to_owned(), arguments: arguments.to_owned() }
}

/// An answer in short: calls with `+` between them, `'words'` in quotes.
fn answer(word: &str) -> ModelAnswer {
    let (text, cut, calls) = match word.strip_prefix('\'') {
        Some(words) => (words.trim_end_matches('\'').to_owned(), false, ""),
        None => (String::new(), word.starts_with("cut:"), word.trim_start_matches("cut:")),
    };
    let calls = calls.split('+').filter(|call| !call.is_empty() && *call != "-");
    let calls = calls.enumerate().map(|(at, word)| call(word, at)).collect();
    ModelAnswer { text, cut, calls, ..ModelAnswer::default() }
}

/// A transcript in short: `>read` intends, `ok` and `no` are outcomes, the rest are answers.
fn records(words: &str, limits: BudgetLimits) -> Vec<TranscriptRecord> {
    let outcome = |result| TranscriptRecord::Outcome { at_ms: 0, ms: 1000, parked_ms: 0, result };
    let mut records = vec![TranscriptRecord::Began {
        at_ms: 0,
        job_id: "job-1".into(),
        source: TurnSource::Chat,
        input: "hello".into(),
        limits,
        prices: Prices::default(),
        strict: false,
        protocol: ModelProtocol::Native,
    }];
    records.extend(words.split_whitespace().map(|word| match word {
        "ok" => outcome(json!({"ready": true})),
        "no" => outcome(json!({"error": {"code": "not_found", "message": "there is no `a`"}})),
        word => match word.strip_prefix('>') {
            Some(word) => TranscriptRecord::Intent { at_ms: 0, call: read_call(&call(word, 0)).unwrap() },
            None => TranscriptRecord::Said { at_ms: 0, ms: 0, seq: 1, said: answer(word) },
        },
    }));
    records
}

fn shown(words: &str, limits: BudgetLimits) -> String {
    let records = records(words, limits);
    match step::next(&records, &Spent::of(&records)) {
        NextStep::Ask => "ask".to_owned(),
        NextStep::Act(call) => format!("act {} {}", call.id.unwrap_or_default(), call.tool.name()),
        NextStep::Refuse(wrong) => format!("refuse {}", wrong.why),
        NextStep::Interrupted(call) => format!("interrupted {}", call.tool.name()),
        NextStep::Rest(TurnEnd::Replied(text)) => format!("replied {text}"),
        NextStep::Rest(TurnEnd::Failed { why, error }) => format!("{why}: {error}"),
    }
}

#[test]
fn the_calls_of_an_answer_are_performed_in_order_and_once() {
    for (words, wanted) in [
        ("", "ask"),
        ("read+write+list", "act c0 file_read"),
        ("read+write+list ok", "act c1 file_write"),
        ("read+write+list ok >write", "interrupted file_write"),
        ("read+write+list ok >write no", "act c2 file_list"),
        ("read+write+list ok >write ok ok", "ask"),
        ("write >write", "interrupted file_write"),
        ("read+write+list no no no", "ask"),
        // A reply ends the turn, wherever it stands.
        ("write+reply+write >write ok", "act c1 file_write"),
        ("write+reply+write >write ok >reply", "act c1 file_write"),
        ("write+reply+write >write ok >reply ok", "replied hi"),
        ("write+reply+write >write ok >reply no", "act c2 file_write"),
        ("'Done.'", "replied Done."),
        ("'<think>hm</think>Done.'", "replied Done."),
    ] {
        assert_eq!(shown(words, BudgetLimits::default()), wanted, "{words}");
    }
}

#[test]
fn every_kind_of_wrong_answer_has_its_sentence() {
    for (words, wanted) in [
        ("fly", "refuse there is no tool `fly`; the tools are file_read, file_write and file_list"),
        (
            "broken",
            "refuse the arguments of file_read are not one JSON object: key must be a string at line 1 column 2",
        ),
        ("twice", "refuse the arguments of file_read are not one JSON object: "),
        ("wrong", "refuse file_read has no argument `pth`; did you mean `path`?"),
        // The others are performed all the same.
        ("fly+read", "refuse there is no tool `fly`"),
        ("fly+read no", "act c1 file_read"),
        ("read+fly ok", "refuse there is no tool `fly`"),
        ("read+fly ok no", "ask"),
        // Three answers in a row of which nothing can be used.
        ("fly no", "ask"),
        ("fly no broken no", "ask"),
        (
            "fly no broken no fly+wrong no no",
            "protocol_fault: the model broke the protocol 3 times in a row: bad_arguments: ",
        ),
        ("fly no broken no fly+read no ok", "ask"),
        (
            "- - -",
            "protocol_fault: the model broke the protocol 3 times in a row: zero_calls: the answer is empty; call a tool",
        ),
        ("- -", "ask"),
        ("cut:write", "ask"),
        ("cut:write cut:write cut:write", "protocol_fault: the model broke the protocol 3 times in a row: cut: "),
        (r#"'{"tool_calls":[{"name":"file_list"}]}'"#, "ask"),
        (r#"'{"name":"file_read","arguments":{"path":"/a"}}'"#, "ask"),
        (r#"'<tool_call>{"name":"file_read"}</tool_call>'"#, "ask"),
        // The same call that fails.
        ("read no read no", "ask"),
        ("read no read no read no", "repeated_failure: the same file_read failed 3 times in a row: there is no `a`"),
        ("read+read+read no no no", "ask"),
        ("list+read ok no read no list+read ok no", "repeated_failure: the same file_read failed 3 times in a row"),
    ] {
        let found = shown(words, BudgetLimits::default());
        assert!(found.starts_with(wanted), "{words}: {found}");
    }
}

#[test]
fn as_many_calls_as_are_allowed_and_no_more() {
    let many = |count: usize| vec!["read"; count].join("+");
    assert_eq!(shown(&many(50), BudgetLimits::default()), "act c0 file_read");
    let fifty = format!("{}{}", many(50), " ok".repeat(49));
    assert_eq!(shown(&fifty, BudgetLimits::default()), "act c49 file_read");
    assert_eq!(shown(&many(65), BudgetLimits::default()), "ask");
    let told = feedback(&records(&many(65), BudgetLimits::default()), &Spent::default()).unwrap();
    let why = "the answer has 65 calls, and none was performed; make at most 64 at a time";
    assert_eq!((told.len(), &told[0]["protocol_fault"]["message"]), (1, &json!(why)));
}

#[test]
fn budgets_hold_between_answers_and_the_time_between_calls() {
    let limits = |rounds, seconds| BudgetLimits { rounds, seconds, ..BudgetLimits::default() };
    for (words, limits, wanted) in [
        ("read+read ok", limits(Some(1), None), "act c1 file_read"),
        ("read+read ok ok", limits(Some(1), None), "budget_exceeded: the turn has used up its rounds"),
        ("read+read+read ok ok", limits(None, Some(2)), "budget_exceeded: the turn has used up its seconds"),
        ("read+read+read ok ok", limits(None, Some(3)), "act c2 file_read"),
        ("'Done.'", limits(Some(1), None), "replied Done."),
    ] {
        assert_eq!(shown(words, limits), wanted, "{words}");
    }
}

#[test]
fn the_model_is_told_about_each_call_when_all_have_ended() {
    let told = |words: &str, limits| {
        let records = records(words, limits);
        feedback(&records, &Spent::of(&records)).map(|told| Value::from(told).to_string())
    };
    let free = BudgetLimits::default();
    assert_eq!(told("read+fly ok", free), None);
    let both = told("read+write ok no", free).unwrap();
    assert_eq!(
        both,
        r#"[{"tool_result":{"id":"c0","name":"file_read","result":{"ready":true}}},{"tool_result":{"id":"c1","name":"file_write","error":{"code":"not_found","message":"there is no `a`"}}}]"#
    );
    assert!(told("read no read no", free).unwrap().contains("this same call has failed twice"));
    assert!(
        told("read ok read ok read ok read ok", BudgetLimits { rounds: Some(5), ..free }).unwrap().contains("80 %")
    );
    assert_eq!(told("'Done.'", free), None);
}
