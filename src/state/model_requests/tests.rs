use super::*;
use crate::state::TestStore;

#[tokio::test]
async fn bodies_go_when_there_are_newer_ones_with_enough_bytes() {
    let store = TestStore::new();
    let body = "x".repeat(usize::try_from(BODIES / 4).unwrap());
    for number in 0..6 {
        let row = RequestRow { line: format!("{{\"n\":{number}}}"), bodies: Some(body.clone()) };
        store.write(move |tx| end(tx, &format!("r{number}"), "ada", 1, &row)).await.unwrap();
    }
    store.write(|tx| prune(tx, 100, 0, 100)).await.unwrap();
    let kept = store.look(|conn| tail(conn, "ada", usize::MAX >> 1)).unwrap();
    let with: Vec<bool> = kept.iter().map(|row| row.bodies.is_some()).collect();
    assert_eq!(with, [false, false, true, true, true, true], "the lines stay");
}
