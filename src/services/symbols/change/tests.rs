use serde_json::json;

use super::*;

fn change(version: u64, act: LedgerAction, body: Option<Value>) -> LedgerEntry {
    LedgerEntry {
        kind: DocumentKind::Symbol,
        id: "A".into(),
        version,
        act,
        by: By::who("t"),
        at_ms: 0,
        reason: String::new(),
        undone: 0,
        body,
    }
}

#[test]
fn undo_goes_back_by_one_and_remarks_do_not_count() {
    let mut ledger = vec![];
    assert!(before(&ledger, 1).is_err());
    ledger.push(change(1, LedgerAction::Put, Some(json!(1))));
    assert_eq!(before(&ledger, 1).unwrap(), None);
    ledger.push(change(2, LedgerAction::Put, Some(json!(2))));
    ledger.push(change(2, LedgerAction::Feedback, None));
    assert_eq!(before(&ledger, 1).unwrap(), Some(json!(1)));
    ledger.push(change(3, LedgerAction::Delete, None));
    assert_eq!(before(&ledger, 1).unwrap(), Some(json!(2)));
    ledger.push(LedgerEntry { undone: 1, ..change(4, LedgerAction::Undo, Some(json!(2))) });
    assert_eq!(before(&ledger, 1).unwrap(), Some(json!(1)), "an undo goes on where the last one ended");
    assert_eq!(before(&ledger, 2).unwrap(), None);
    assert!(before(&ledger, 3).is_err());
    assert_eq!(at_version(&ledger, 3).unwrap(), None);
    assert_eq!(at_version(&ledger, 2).unwrap(), Some(json!(2)));
    assert!(at_version(&ledger, 9).is_err());
    assert_eq!(last_version(&ledger), 4);
    ledger.push(change(5, LedgerAction::Undo, Some(json!(7))));
    assert_eq!(before(&ledger, 1).unwrap(), Some(json!(2)), "one of an older version is a change like any other");
}

#[test]
fn a_change_survives_json() {
    let made = change(1, LedgerAction::Put, Some(json!({"id":"A"})));
    let text = serde_json::to_string(&made).unwrap();
    assert_eq!(serde_json::from_str::<LedgerEntry>(&text).unwrap(), made);
}
