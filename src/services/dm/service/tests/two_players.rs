//! Two players of one campaign, a slow narrator, and a host that is stopped.

use super::*;
use acheron_base::Code;

#[tokio::test]
async fn while_one_turn_is_under_way_another_is_busy_and_the_output_waits() {
    let slow = Arc::new(Slow(tokio::sync::Semaphore::new(0)));
    let (_root, session, files) = begun(slow.clone()).await;
    let first = tokio::spawn({
        let session = session.clone();
        async move { session.play(&ChangedBy::no_call(), "c1", "[LOOK]{around}").await }
    });
    while !session.turn_of("c1").is_busy() {
        tokio::task::yield_now().await;
    }
    let second = session.play(&ChangedBy::no_call(), "c1", "[LOOK]{around}").await.unwrap_err();
    assert_eq!(second.code, Code::Busy);
    let Node::File(output) = find(&files, "campaigns/c1/output") else { panic!() };
    let handle = output.open(&Caller::operator(), Open::READ).unwrap();
    let reader = tokio::spawn(async move { handle.read(0, 1 << 20).wait().await });
    slow.0.add_permits(1);
    let done = first.await.unwrap().unwrap();
    assert_eq!(
        done.reports,
        ["the narrator failed: the model is out"],
        "a narrator that fails is silent, and that is reported"
    );
    assert!(String::from_utf8_lossy(&reader.await.unwrap().unwrap()).contains("[Scene]"));
}

#[tokio::test]
async fn a_second_player_is_refused_when_the_input_is_opened_while_another_sends_one() {
    let (_root, _session, files) = begun(Arc::new(NoNarrator)).await;
    let Node::File(input) = find(&files, "campaigns/c1/input") else { panic!("input") };
    let mine = input.open(&Caller::operator(), Open::BOTH).unwrap();
    mine.write(0, b"[LOOK]{around}\n").wait().await.unwrap();
    let refused = input.open(&Caller::operator(), Open::BOTH).err().unwrap();
    assert_eq!((refused.code, refused.message.as_str()), (Code::Busy, "campaign c1 is in the middle of a turn"));
    mine.flush(true).wait().await.unwrap();
    assert!(read(&files, "campaigns/c1/output").await.contains("[Scene]"), "the turn itself is answered");
    say(&files, "c1", "[ACT]{wait}").await.unwrap();
}

#[tokio::test]
async fn the_second_of_two_writers_at_one_instant_is_refused_at_its_write() {
    let (_root, _session, files) = begun(Arc::new(NoNarrator)).await;
    let Node::File(input) = find(&files, "campaigns/c1/input") else { panic!("input") };
    let open = || input.open(&Caller::operator(), Open::BOTH).unwrap();
    let (first, second) = (open(), open());
    first.write(0, b"[LOOK]{around}\n").wait().await.unwrap();
    let refused = second.write(0, b"[ACT]{wait}\n").wait().await.unwrap_err();
    assert_eq!(refused.code, Code::Busy);
    second.flush(true).wait().await.unwrap_err();
    first.flush(true).wait().await.unwrap();
    let shown = read(&files, "campaigns/c1/output").await;
    assert!(shown.contains("[Scene]\nDay 1, 08:10"), "the first one's answer stands: {shown}");
    let status: Value = serde_json::from_str(&read(&files, "campaigns/c1/status.json").await).unwrap();
    assert_eq!((&status["state"], &status["error"]), (&json!("idle"), &Value::Null));
    second.write(0, b"[ACT]{wait}\n").wait().await.unwrap();
    second.flush(true).wait().await.unwrap();
    assert!(read(&files, "campaigns/c1/output").await.contains("wait"));
}

#[tokio::test]
async fn an_input_that_was_lost_with_its_host_is_answered_so() {
    let slow = Arc::new(Slow(tokio::sync::Semaphore::new(0)));
    let (root, session, files) = begun(slow).await;
    let lost = tokio::spawn({
        let session = session.clone();
        async move { session.play(&ChangedBy::no_call(), "c1", "[ACT]{go to the inn}").await }
    });
    while !session.turn_of("c1").is_asking() {
        tokio::task::yield_now().await;
    }
    let status: Value = serde_json::from_str(&read(&files, "campaigns/c1/status.json").await).unwrap();
    assert_eq!((&status["state"], &status["error"]), (&json!("playing"), &Value::Null), "not while it is played");
    lost.abort();
    let _ = lost.await;
    // As another process finds it.
    let campaigns = Campaigns::open(ConfinedDir::open(root.path()).unwrap(), Default::default());
    let again = GameSession::new(campaigns, Arc::new(NoNarrator), Clock::at(1_794_823_200_000));
    let files = super::super::files::files(&again);
    let shown = read(&files, "campaigns/c1/output").await;
    assert!(
        shown.starts_with("[Error] this input was not played") && shown.contains("Example: [ACT]{go to the inn}"),
        "{shown}"
    );
    let status: Value = serde_json::from_str(&read(&files, "campaigns/c1/status.json").await).unwrap();
    assert_eq!((&status["state"], &status["error"]["code"]), (&json!("refused"), &json!("interrupted")));
    say(&files, "c1", "[LOOK]{around}").await.unwrap();
    assert!(read(&files, "campaigns/c1/output").await.contains("[Scene]"));
    assert_eq!(again.campaigns().replay("c1").unwrap(), (3, None));
}

#[tokio::test]
async fn the_wait_for_a_narrator_can_be_ended_and_the_status_says_how() {
    let slow = Arc::new(Slow(tokio::sync::Semaphore::new(0)));
    let (_root, session, files) = begun(slow).await;
    assert_eq!(session.skip_narrator("c1").unwrap_err().code, Code::Conflict);
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.play(&ChangedBy::no_call(), "c1", "[LOOK]{around}").await }
    });
    while !session.turn_of("c1").is_asking() {
        tokio::task::yield_now().await;
    }
    let status: Value = serde_json::from_str(&read(&files, "campaigns/c1/status.json").await).unwrap();
    assert_eq!((&status["state"], &status["waits_for"]), (&json!("playing"), &json!("narrator")));
    assert_eq!(status["cancel"], json!("echo '{\"campaign\":\"c1\"}' > control/skip_narrator.json"));
    // The flag stands a moment before the wait begins.
    while !turn.is_finished() {
        let _ = session.skip_narrator("c1");
        tokio::task::yield_now().await;
    }
    let done = turn.await.unwrap().unwrap();
    assert_eq!(done.reports, ["the narrator failed: skip_narrator ended the wait for it"]);
    assert!(done.output.contains("[Scene]"));
}

#[tokio::test]
async fn a_write_ends_when_the_turn_waits_for_the_narrator_and_the_output_waits_for_the_rest() {
    let slow = Arc::new(Slow(tokio::sync::Semaphore::new(0)));
    let (_root, session, files) = begun(slow.clone()).await;
    // The narrator says nothing, and the write has ended.
    say(&files, "c1", "[LOOK]{around}\n").await.unwrap();
    assert!(session.turn_of("c1").is_asking());
    let by_call = session.play(&ChangedBy::no_call(), "c1", "[ACT]{wait}").await.unwrap_err();
    assert_eq!(by_call.code, Code::Busy, "a call is answered with its own turn, so it does not wait for another");
    // The next input waits for the turn before it, so that a script is played in its order.
    let next = tokio::spawn({
        let files = files.clone();
        async move { say(&files, "c1", "[ACT]{wait}\n").await }
    });
    let reader = tokio::spawn(async move { read(&files, "campaigns/c1/output").await });
    slow.0.add_permits(2);
    next.await.unwrap().unwrap();
    session.turn_of("c1").quiet().await;
    assert!(reader.await.unwrap().contains("[Scene]"));
    let journal = session.campaigns().campaign("c1").unwrap().journal().unwrap();
    let inputs: Vec<String> = journal
        .into_iter()
        .filter_map(|own| match own.act {
            Act::Turn { input, .. } => Some(input),
            _ => None,
        })
        .collect();
    assert_eq!(inputs, ["[LOOK]{around}", "[ACT]{wait}"]);
}
