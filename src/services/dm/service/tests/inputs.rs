//! Moves, refusals and answers.

use super::*;
use acheron_base::Code;

#[tokio::test]
async fn a_move_is_written_and_its_outcome_read() {
    let (_root, _table, files) = begun(Arc::new(NoNarrator)).await;
    say(&files, "c1", "[LOOK]{around}\n").await.unwrap();
    let output = read(&files, "campaigns/c1/output").await;
    assert!(output.contains("[Scene]\nDay 1, 08:10, Lantern Quay."), "{output}");
    for name in ["hud.json", "menu.json", "state.json", "hot_pack.json", "clocks.json", "indicators.json", "check.json"]
    {
        let value: Value = serde_json::from_str(&read(&files, &format!("campaigns/c1/{name}")).await).unwrap();
        assert!(!value.is_null(), "{name}");
    }
    assert!(read(&files, "campaigns/c1/delta").await.starts_with("<!-- ARCHIVE_DELTA\n"));
    assert!(read(&files, "campaigns/c1/boot").await.lines().count() <= 12, "row 122");
    assert!(read(&files, "campaigns/c1/hot_pack.md").await.starts_with("<!-- CONTEXT_PACK_NEXT\n"));
    assert_eq!(read(&files, "campaigns/c1/journal.ndjson").await.lines().count(), 3);
    assert!(read(&files, "campaigns/c1/map.txt").await.contains("[1]"));
    assert!(read(&files, "campaigns/c1/snapshot.md").await.contains("0001"));
    assert!(read(&files, "campaigns/c1/sessions/session_2026-11-16_ann.md").await.contains("## Decision: 0001"));
    assert!(read(&files, "active.json").await.contains("\"campaign\": \"c1\""));
    assert!(read(&files, "engine/mechanics/RAG_RULES.md").await.contains("snippets"));
    assert!(read(&files, "engine/tools.json").await.contains("roll_check"));
    assert!(read(&files, "cartridges/brinewick/CARTRIDGE.md").await.contains("Brinewick"));
}

#[tokio::test]
async fn a_refusal_is_heard_and_shown_and_changes_nothing_else() {
    let (_root, _table, files) = begun(Arc::new(NoNarrator)).await;
    say(&files, "c1", "[LOOK]{around}").await.unwrap();
    let before = read(&files, "campaigns/c1/state.json").await;
    let refused = say(&files, "c1", "open the gate").await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidPayload);
    assert!(read(&files, "campaigns/c1/output").await.starts_with("[Error] the input must begin with a header"));
    assert_eq!(read(&files, "campaigns/c1/state.json").await, before);
    say(&files, "c1", "<continue>").await.unwrap();
    assert!(read(&files, "campaigns/c1/output").await.contains("Load Summary"));
    say(&files, "c1", "<new campaign c2>").await.unwrap();
    assert!(read(&files, "active.json").await.contains("c2"));
    assert_eq!(say(&files, "c2", "[LOOK]{x}").await.unwrap_err().code, Code::InvalidPayload);
    say(&files, "c2", "<initialize>").await.unwrap();
    say(&files, "c2", "<switch campaign c1>").await.unwrap();
    assert!(read(&files, "active.json").await.contains("c1"));
}

#[tokio::test]
async fn the_output_answers_the_last_input_whatever_it_was() {
    let (root, _table, files) = begun(Arc::new(NoNarrator)).await;
    say(&files, "c1", "<continue>").await.unwrap();
    let shown = read(&files, "campaigns/c1/output").await;
    assert!(shown.starts_with("[Guide]") && shown.contains("Load Summary"), "the guide is seen: {shown}");
    say(&files, "c1", "[LOOK]{around}").await.unwrap();
    let shown = read(&files, "campaigns/c1/output").await;
    assert!(shown.starts_with("[Scene]"), "the guide is shown once: {shown}");
    say(&files, "c1", "[OOC] how do checks work?").await.unwrap();
    let shown = read(&files, "campaigns/c1/output").await;
    assert!(shown.starts_with("[OOC]") && shown.contains("[HUD]\nday 1"), "{shown}");
    let refused = say(&files, "c1", "<initialize>").await.unwrap_err();
    assert_eq!((refused.code, refused.message.contains("initialised already")), (Code::AlreadyExists, true));
    let shown = read(&files, "campaigns/c1/output").await;
    assert!(shown.contains("initialised already") && shown.contains("Example: ") && shown.contains("[HUD]"), "{shown}");
    say(&files, "c1", "<new campaign c2>").await.unwrap();
    assert!(read(&files, "campaigns/c1/output").await.starts_with("campaign c2 is made"));
    say(&files, "c2", "<initialize>").await.unwrap();
    assert!(read(&files, "campaigns/c2/output").await.contains("pc_name"));
    say(&files, "c2", "[LOOK]{x}").await.unwrap_err();
    let shown = read(&files, "campaigns/c2/output").await;
    assert!(shown.contains("Example: <initialize>"), "{shown}");
    say(&files, "c2", "<switch campaign c1>").await.unwrap();
    assert_eq!(read(&files, "campaigns/c2/output").await, "campaign c1 is active\n");
    // Who starts anew on the same disk reads the same.
    let campaigns = Campaigns::open(ConfinedDir::open(root.path()).unwrap(), Default::default());
    let again = GameSession::new(campaigns, Arc::new(NoNarrator), Clock::at(1_794_823_200_000));
    let files = super::files::files(&again);
    assert_eq!(read(&files, "campaigns/c2/output").await, "campaign c1 is active\n");
    assert_eq!(again.campaigns().replay("c1").unwrap().1, None, "an answer is no part of the journal");
}

#[tokio::test]
async fn a_refusal_has_its_example_the_hud_and_the_status() {
    let (_root, session, files) = begun(Arc::new(NoNarrator)).await;
    let status = async || -> Value { serde_json::from_str(&read(&files, "campaigns/c1/status.json").await).unwrap() };
    assert_eq!((&status().await["state"], &status().await["error"]), (&json!("idle"), &Value::Null));
    for input in ["[ASK]{@nobody}", "[ACT]{}", "[ACT]{x} --risk huge", "[ASK]{N9}", "<continue> now"] {
        say(&files, "c1", input).await.unwrap_err();
        let shown = read(&files, "campaigns/c1/output").await;
        assert!(
            shown.starts_with("[Error] ") && shown.contains("\nExample: ") && shown.contains("\n[HUD]\nday 1"),
            "{shown}"
        );
        let status = status().await;
        assert_eq!(
            (&status["state"], &status["error"]["code"]),
            (&json!("refused"), &json!("invalid_payload")),
            "{input}"
        );
        assert!(shown.contains(status["error"]["message"].as_str().unwrap()), "{status}");
    }
    say(&files, "c1", "[LOOK]{around}").await.unwrap();
    assert_eq!((&status().await["state"], &status().await["error"]), (&json!("idle"), &Value::Null));
    session.act(&ChangedBy::no_call(), "c1", Act::Undo).await.unwrap();
    assert!(read(&files, "campaigns/c1/output").await.starts_with("[Initialize]"), "what is undone is not shown");
}

#[tokio::test]
async fn the_first_bytes_of_a_move_can_fail_the_write() {
    let (_root, _table, files) = begun(Arc::new(NoNarrator)).await;
    let Node::File(file) = find(&files, "campaigns/c1/input") else { panic!("input") };
    for (bytes, refused) in [
        ("open the gate", true),
        ("  open", true),
        ("[DANCE]{x}", true),
        ("<fly>", true),
        ("@nowhere [ACT]", true),
        ("[SAY]{to Jun}", false),
        ("[ACT]{", false),
        ("[AC", false),
        ("<conti", false),
        ("@cb [FIG", false),
        ("", false),
    ] {
        let handle = file.open(&Caller::operator(), Open::BOTH).unwrap();
        assert_eq!(handle.write(0, bytes.as_bytes()).wait().await.is_err(), refused, "{bytes}");
        if refused {
            handle.flush(true).wait().await.unwrap_err();
            assert!(read(&files, "campaigns/c1/output").await.contains("Example: "), "{bytes}");
        }
    }
}

#[tokio::test]
async fn a_whole_line_that_cannot_be_played_fails_the_write() {
    let (_root, _table, files) = begun(Arc::new(NoNarrator)).await;
    let Node::File(file) = find(&files, "campaigns/c1/input") else { panic!("input") };
    for (line, why) in [("[LOOK]{L9}\n", "L9 is no code"), ("[ASK]{@nobody}\n", "unknown handle @nobody")] {
        let handle = file.open(&Caller::operator(), Open::BOTH).unwrap();
        let refused = handle.write(0, line.as_bytes()).wait().await.unwrap_err();
        assert!(refused.message.contains(why), "{refused}");
        handle.flush(true).wait().await.unwrap_err();
        let shown = read(&files, "campaigns/c1/output").await;
        assert!(shown.contains(why) && shown.contains("[HUD]"), "{shown}");
    }
    say(&files, "c1", "[LOOK]{around}\n").await.unwrap();
    assert!(read(&files, "campaigns/c1/output").await.contains("[Scene]"));
}
