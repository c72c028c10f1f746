use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::agent::budget::BudgetLimits;
use crate::model::{KeptAnswer, MessageRole, ModelAnswer, Prices, ToolMessage};

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
        protocol: Default::default(),
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

/// The beginning of a turn in the native protocol.
fn began_natively(input: &str) -> TranscriptRecord {
    match began(input, TurnSource::Chat) {
        TranscriptRecord::Began { at_ms, job_id, source, input, limits, prices, strict, .. } => {
            let protocol = crate::model::ModelProtocol::Native;
            TranscriptRecord::Began { at_ms, job_id, source, input, limits, prices, strict, protocol }
        }
        other => other,
    }
}

/// An answer with reads of these paths, and reasoning that is sent back.
fn reads(round: usize, paths: &[String]) -> TranscriptRecord {
    let call = |(at, path): (usize, &String)| NativeCall {
        id: format!("c{round}-{at}"),
        name: "file_read".into(),
        arguments: json!({ "path": path }).to_string(),
    };
    let calls = paths.iter().enumerate().map(call).collect();
    let items = vec![json!({"type": "thinking", "thinking": "hm", "signature": "s"})];
    let kept = Some(KeptAnswer { api: "anthropic".into(), items });
    let said = ModelAnswer { text: "I look.".into(), calls, kept, ..ModelAnswer::default() };
    TranscriptRecord::Said { at_ms: 0, ms: 0, seq: 1, said }
}

/// The ids of the calls and of the results of a request, message by message.
fn ids(ask: &ModelRequest) -> Vec<(bool, Vec<String>)> {
    let ids = |message: &Message| match message.tools.as_deref()? {
        ToolMessage::Calls { calls, .. } => Some((true, calls.iter().map(|call| call.id.clone()).collect())),
        ToolMessage::Results(results) => Some((false, results.iter().map(|result| result.id.clone()).collect())),
    };
    ask.messages.iter().filter_map(ids).collect()
}

#[test]
fn native_calls_stand_before_their_results_and_earlier_replies_are_words() {
    let history = [("hi".to_owned(), "hello".to_owned())];
    let (wrong, paths) = (ModelAnswer::default(), ["a".to_owned(), "b".to_owned()]);
    let wrong = TranscriptRecord::Said { at_ms: 0, ms: 0, seq: 1, said: wrong };
    let turn = [began_natively("go"), reads(0, &paths), outcome("one"), outcome("two"), wrong];
    let parts = ContextParts { history: &history, turn: &turn, window: 4000, answer: 500, ..ContextParts::default() };
    let ask = assembled(&parts).unwrap();
    let texts: Vec<String> = ask.messages.iter().map(|message| message.texts().join(" | ")).collect();
    expect![[r#"
        hi
        hello
        go
        I look. | {"type":"thinking","thinking":"hm","signature":"s"}
         | {"tool_result":{"id":"c0-0","name":"file_read","result":{"content":"one"}}} | {"tool_result":{"id":"c0-1","name":"file_read","result":{"content":"two"}}}
        (an answer that could not be used)
        {"protocol_fault":{"fault":"zero_calls","message":"the answer is empty; call a tool, or write your reply","in_a_row":1,"allowed":3,"expected":"calls of file_read, file_write and file_list, or a reply in words"}}
    "#]]
    .assert_eq(&format!("{}\n", texts.join("\n")));
    // While a call of the answer has not ended, nothing of it is shown.
    let parts = ContextParts { turn: &turn[..3], ..parts };
    assert_eq!(ids(&assembled(&parts).unwrap()), []);
}

fn outcome(content: &str) -> TranscriptRecord {
    TranscriptRecord::Outcome { at_ms: 0, ms: 0, parked_ms: 0, result: json!({"content": content, "ready": true}) }
}

/// Two messages of so many bytes each; none of 0.
fn mail(bytes: usize) -> Option<TranscriptRecord> {
    let mail = |id: &str| {
        TurnMail::new(id.to_owned(), "styx", "\"ä".repeat(bytes / 9), &"é\n".repeat(bytes / 3), "t".into(), None, 5)
    };
    (bytes > 0).then(|| TranscriptRecord::Mail { at_ms: 0, mails: vec![mail("m1"), mail("m2")] })
}

#[test]
fn mail_stands_beside_the_result_before_it_and_stays_there() {
    let path = ["a".to_owned()];
    for (begin, call) in [(began_natively("go"), reads(0, &path)), (began("go", TurnSource::Chat), read("a"))] {
        let early = TranscriptRecord::Mail {
            at_ms: 0,
            mails: vec![TurnMail::new("m0".into(), "styx", String::new(), "early", "t".into(), None, 5)],
        };
        let long = outcome(&"x".repeat(9000));
        let turn = [begin, early, call.clone(), long.clone(), mail(600).unwrap(), call, long];
        for window in [1500, 3000, 30_000] {
            let parts = ContextParts { turn: &turn, window, answer: 100, ..ContextParts::default() };
            let mut cache = RoundCache::default();
            let texts = |end: usize, cache: &mut RoundCache| -> Vec<String> {
                let ask = assemble(&ContextParts { turn: &turn[..end], ..parts.clone() }, cache).unwrap();
                ask.messages.iter().map(|message| message.texts().join(" | ")).collect()
            };
            assert!(texts(2, &mut cache)[0].ends_with("<mail from=\"styx, id m0\">\nearly\n</mail>"));
            let told = texts(5, &mut cache).pop().unwrap();
            assert!(
                told.contains("\"mail\":[{\"id\":\"m1\"") || told.contains("there is mail for you"),
                "{window}: {told}"
            );
            let last = texts(7, &mut cache).pop().unwrap();
            assert!(!last.contains("\"mail\""), "{window}: {last}");
        }
    }
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
        > {"tool_result":{"name":"file_read","result":{"content":"nothing"}}}
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
    serde_json::from_str::<Value>(&ask.last()).expect("still JSON");
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
        rounds in prop::collection::vec((0usize..4000, 0usize..30_000, any::<bool>(), 0usize..9000), 0..12),
        memory in prop::collection::vec(0usize..5000, 0..6), history in prop::collection::vec((0usize..9000, 0usize..9000), 0..6),
    ) {
        let mut turn = vec![began(&"ä\"".repeat(input / 3), TurnSource::Chat)];
        turn.extend(mail(input % 5000));
        for (path, content, fault, mailed) in &rounds {
            turn.push(if *fault { said(&"prose ".repeat(path / 6)) } else { read(&"p".repeat(*path)) });
            if !fault {
                turn.push(outcome(&"\n\\é".repeat(content / 4)));
            }
            turn.extend(mail(mailed.saturating_sub(3000)));
        }
        let memory: Vec<_> = memory.iter().map(|n| ("m".to_owned(), "ö ".repeat(n / 3))).collect();
        let history: Vec<_> = history.iter().map(|(a, b)| ("q".repeat(*a), "\"".repeat(*b))).collect();
        let core = "c".repeat(core);
        let parts = ContextParts { core: &core, memory: &memory, history: &history, turn: &turn, window, answer };
        if let Ok(ask) = assembled(&parts) {
            prop_assert!(ask.estimated() + u64::from(ask.max_tokens) <= window, "{} + {} > {window}", ask.estimated(), ask.max_tokens);
            // The same, whatever was rendered at earlier steps of the turn.
            let mut cache = RoundCache::default();
            // Mail comes before the model is asked, never after.
            let is_asked = |end: &usize| !matches!(turn.get(*end), Some(TranscriptRecord::Mail { .. }));
            for end in (1..=turn.len()).filter(is_asked) {
                _ = assemble(&ContextParts { turn: &turn[..end], ..parts.clone() }, &mut cache);
            }
            prop_assert_eq!(&assemble(&parts, &mut cache).unwrap(), &ask);
        }
    }

    /// In the native protocol too; and every call that is shown is followed by its result.
    #[test]
    fn no_call_is_shown_without_its_result(
        window in 900u64..30_000, answer in 1u64..5000, input in 0usize..3000,
        rounds in prop::collection::vec((prop::collection::vec(0usize..4000, 0..6), 0usize..9000), 0..10),
    ) {
        let mut turn = vec![began_natively(&"ä\"".repeat(input / 3))];
        for (at, (paths, content)) in rounds.iter().enumerate() {
            let paths: Vec<String> = paths.iter().map(|length| "\n".repeat(*length)).collect();
            turn.push(reads(at, &paths));
            turn.extend(paths.iter().map(|_| outcome(&"\n\\é".repeat(content / 4))));
            turn.extend(mail(content.saturating_sub(4000)));
        }
        let parts = ContextParts { turn: &turn, window, answer, ..ContextParts::default() };
        if let Ok(ask) = assembled(&parts) {
            prop_assert!(ask.estimated() + u64::from(ask.max_tokens) <= window, "{} + {} > {window}", ask.estimated(), ask.max_tokens);
            let ids = ids(&ask);
            for pair in ids.chunks(2) {
                prop_assert!(pair.len() == 2 && pair[0].0 && !pair[1].0 && pair[0].1 == pair[1].1, "{ids:?}");
            }
        }
    }
}
