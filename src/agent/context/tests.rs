use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::agent::budget::BudgetLimits;
use crate::model::{MessageRole, ModelAnswer, Prices};

fn began(input: &str, source: TurnSource) -> TranscriptRecord {
    let (limits, prices) = (BudgetLimits::default(), Prices::default());
    TranscriptRecord::Began {
        at_ms: 0,
        job_id: "job-1".into(),
        source,
        input: input.to_owned(),
        limits,
        prices,
        strict: false,
    }
}

fn said(text: &str) -> TranscriptRecord {
    TranscriptRecord::Said {
        at_ms: 0,
        ms: 0,
        seq: 1,
        said: ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() },
    }
}

fn read(path: &str) -> TranscriptRecord {
    said(&json!({"tool_calls": [{"name": "file_read", "arguments": {"path": path}}]}).to_string())
}

fn outcome(content: &str) -> TranscriptRecord {
    TranscriptRecord::Outcome { at_ms: 0, ms: 0, parked_ms: 0, result: json!({"content": content, "ready": true}) }
}

fn assembled(parts: &ContextParts) -> Result<ModelRequest> {
    assemble(parts, &mut RoundCache::default())
}

fn shown(ask: &ModelRequest) -> String {
    let mut text = format!("{}\n", ask.system);
    for message in &ask.messages {
        let who = if message.role == MessageRole::User { '>' } else { '<' };
        text.push_str(&format!("{who} {}\n", message.text));
    }
    text
}

#[test]
fn the_parts_stand_in_order() {
    let memory = [("/agents/self/memory/items/name".to_owned(), "the user is called Ada".to_owned())];
    let history = [("hi".to_owned(), "hello".to_owned())];
    let turn = [began("what is in a?", TurnSource::Chat), read("a"), outcome("nothing"), said("Nothing!")];
    let ask = assembled(&ContextParts {
        core: "CommandSink.",
        memory: &memory,
        history: &history,
        turn: &turn,
        window: 4000,
        answer: 500,
    });
    expect![[r#"
        CommandSink.

        ## Active memory

        <memory path="/agents/self/memory/items/name">
        the user is called Ada
        </memory>

        > hi
        < {"tool_calls":[{"name":"file_write","arguments":{"path":"agents/self/chat/control/reply","content":"hello"}}]}
        > what is in a?
        < {"tool_calls":[{"name":"file_read","arguments":{"path":"a"}}]}
        > {"tool_result":{"name":"file_read","result":{"content":"nothing","ready":true}}}
        < Nothing!
        > {"protocol_fault":{"fault":"not_json","message":"the answer is not a JSON object; write text for people to the reply with file_write","in_a_row":1,"allowed":3,"expected":{"tool_calls":[{"name":"file_read | file_write | file_list","arguments":{}}]}}}
    "#]]
    .assert_eq(&shown(&ask.unwrap()));
}

#[test]
fn a_wake_up_says_what_it_is() {
    let turn = [began("look around", TurnSource::Wake("/agents/self/events/sources/user.json".into()))];
    let ask = assembled(&ContextParts { turn: &turn, window: 4000, answer: 100, ..ContextParts::default() }).unwrap();
    assert_eq!(ask.last(), "(woken by /agents/self/events/sources/user.json)\nlook around");
}

#[test]
fn a_long_result_is_cut_and_says_so() {
    let turn = [began("go", TurnSource::Chat), read("a"), outcome(&"long \"text\"\n".repeat(10_000))];
    let ask = assembled(&ContextParts { turn: &turn, window: 4000, answer: 100, ..ContextParts::default() }).unwrap();
    assert!(ask.last().contains("bytes left out"));
    assert!(ask.last().contains("shortened"));
    serde_json::from_str::<Value>(ask.last()).expect("still JSON");
}

#[test]
fn a_window_too_small_for_the_contract_is_refused() {
    let core = "x".repeat(3000);
    let error =
        assembled(&ContextParts { core: &core, window: 1100, answer: 100, ..ContextParts::default() }).unwrap_err();
    assert!(error.message.starts_with("a window of 1100 tokens is too small"));
}

/// Everything that a request shows, as one text.
fn as_sent(ask: &ModelRequest) -> String {
    let messages = ask.messages.iter().map(|message| format!("\0{:?}{}", message.role, message.text));
    format!("{}{}", ask.system, messages.collect::<String>())
}

#[test]
fn a_request_begins_with_the_one_before_it_byte_for_byte() {
    let memory = [("/agents/self/memory/items/name".to_owned(), "the user is called Ada".to_owned())];
    let history: Vec<_> = (0..8).map(|n| (format!("question {n}"), "answer ".repeat(200))).collect();
    let mut turn = vec![began("look into every file", TurnSource::Chat)];
    let mut cache = RoundCache::default();
    let (mut before, mut anew) = (String::new(), Vec::new());
    for round in 0..60 {
        let parts = ContextParts {
            core: "The contract.",
            memory: &memory,
            history: &history,
            turn: &turn,
            window: 32_768,
            answer: 4096,
        };
        let sent = as_sent(&assemble(&parts, &mut cache).unwrap());
        if !sent.starts_with(&before) {
            anew.push(round);
        }
        before = sent;
        turn.extend([read(&format!("file-{round}")), outcome(&format!("line {round}\n").repeat(500))]);
    }
    // Each round has some 1,700 tokens. Where the window is full, the beginning is chosen anew, and lasts for some rounds.
    assert!(anew.len() <= 12 && anew[0] > 8, "{anew:?}");
    assert!(anew.windows(2).all(|pair| pair[1] - pair[0] >= 3), "{anew:?}");
}

proptest! {
    #[test]
    fn nothing_ever_exceeds_the_window(
        window in 600u64..20_000, answer in 1u64..5000, core in 0usize..600, input in 0usize..30_000,
        rounds in prop::collection::vec((0usize..4000, 0usize..30_000, any::<bool>()), 0..12),
        memory in prop::collection::vec(0usize..5000, 0..6), history in prop::collection::vec((0usize..9000, 0usize..9000), 0..6),
    ) {
        let mut turn = vec![began(&"ä\"".repeat(input / 3), TurnSource::Chat)];
        for (path, content, fault) in &rounds {
            turn.push(if *fault { said(&"prose ".repeat(path / 6)) } else { read(&"p".repeat(*path)) });
            if !fault {
                turn.push(outcome(&"\n\\é".repeat(content / 4)));
            }
        }
        let memory: Vec<_> = memory.iter().map(|n| ("m".to_owned(), "ö ".repeat(n / 3))).collect();
        let history: Vec<_> = history.iter().map(|(a, b)| ("q".repeat(*a), "\"".repeat(*b))).collect();
        let core = "c".repeat(core);
        let parts = ContextParts { core: &core, memory: &memory, history: &history, turn: &turn, window, answer };
        if let Ok(ask) = assembled(&parts) {
            prop_assert!(ask.estimated() + u64::from(ask.max_tokens) <= window, "{} + {} > {window}", ask.estimated(), ask.max_tokens);
            // The same, whatever was rendered at earlier steps of the turn.
            let mut cache = RoundCache::default();
            for end in 1..=turn.len() {
                _ = assemble(&ContextParts { turn: &turn[..end], ..parts.clone() }, &mut cache);
            }
            prop_assert_eq!(&assemble(&parts, &mut cache).unwrap(), &ask);
        }
    }
}
