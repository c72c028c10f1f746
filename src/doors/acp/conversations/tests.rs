use super::*;

fn turn(seq: u64, session: Value, input: &str) -> HistoryEntry {
    let spent = serde_json::to_value(crate::agent::budget::Spent::default()).unwrap();
    let turn = json!({"seq": seq, "ts_ms": 1, "job_id": "j", "source": "chat", "session": session, "input": input,
        "reply": "ok", "error": null, "spent": spent, "total": spent});
    serde_json::from_value(turn).unwrap()
}

#[test]
fn conversations_are_told_apart_and_the_newest_comes_first() {
    let turns = [
        turn(1, Value::Null, "hello"),
        turn(2, json!({"id": "a", "directory": "/p"}), "one\ntwo"),
        turn(3, json!({"id": "b", "directory": "/q"}), "three"),
        turn(4, json!({"id": "a", "directory": "/p"}), "four"),
    ];
    let ids = |directory: Option<&str>| -> Vec<Value> {
        let listed = listed(&turns, directory);
        listed["sessions"].as_array().unwrap().iter().map(|session| session["sessionId"].clone()).collect()
    };
    assert_eq!(
        (ids(None), ids(Some("/p"))),
        (vec!["a".into(), "b".into(), "main".into()], vec!["a".into(), "main".into()])
    );
    assert_eq!(listed(&turns, None)["sessions"][0]["title"], "one two");
    assert_eq!(of(&turns, "a").unwrap().len(), 2);
    assert_eq!(of(&[], MAIN).unwrap().len(), 0);
    assert_eq!(of(&turns, "c").unwrap_err().code, Code::NotFound);
    let back = |seq: u64, undoes: Value| {
        let mut entry = serde_json::to_value(turn(seq, Value::Null, "")).unwrap();
        entry["rewound"] = json!({"id": "r", "to": 2, "undoes": undoes});
        serde_json::from_value::<HistoryEntry>(entry).unwrap()
    };
    let mut entries = turns.to_vec();
    entries.push(back(5, Value::Null));
    assert_eq!(counting(entries.clone()).len(), 2);
    entries.push(back(6, json!("r")));
    assert_eq!(counting(entries), turns);
}
