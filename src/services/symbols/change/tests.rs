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
        body,
    }
}

#[test]
fn undo_goes_back_by_one_and_remarks_do_not_count() {
    let mut ledger = vec![];
    assert!(before_last(&ledger).is_err());
    ledger.push(change(1, LedgerAction::Put, Some(json!(1))));
    assert_eq!(before_last(&ledger).unwrap(), None);
    ledger.push(change(2, LedgerAction::Put, Some(json!(2))));
    ledger.push(change(2, LedgerAction::Feedback, None));
    assert_eq!(before_last(&ledger).unwrap(), Some(json!(1)));
    ledger.push(change(3, LedgerAction::Delete, None));
    assert_eq!(before_last(&ledger).unwrap(), Some(json!(2)));
    ledger.push(change(4, LedgerAction::Undo, Some(json!(2))));
    assert_eq!(before_last(&ledger).unwrap(), None);
    assert_eq!(last_version(&ledger), 4);
}

#[test]
fn a_change_survives_json() {
    let made = change(1, LedgerAction::Put, Some(json!({"id":"A"})));
    let text = serde_json::to_string(&made).unwrap();
    assert_eq!(serde_json::from_str::<LedgerEntry>(&text).unwrap(), made);
}
