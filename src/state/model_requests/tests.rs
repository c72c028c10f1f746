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

#[tokio::test]
async fn requests_go_by_age_and_by_count() {
    let store = TestStore::new();
    for number in 0..20u64 {
        let row = RequestRow { line: format!("{{\"n\":{number}}}"), bodies: None };
        let agent = if number % 2 == 0 { "ada" } else { "bob" };
        store.write(move |tx| end(tx, &format!("r{number}"), agent, number, &row)).await.unwrap();
    }
    store.write(|tx| begin(tx, "open", "ada", 0, "{}")).await.unwrap();
    // Those from before 4, and all but the newest five of each.
    while store.write(|tx| prune(tx, 5, 4, 3)).await.unwrap() > 0 {}
    let lines = |agent: &str| {
        let kept = store.look(|conn| tail(conn, agent, usize::MAX >> 1)).unwrap();
        kept.into_iter().map(|row| row.line).collect::<String>()
    };
    assert_eq!(lines("ada"), r#"{"n":12}{"n":14}{"n":16}{"n":18}"#, "the one under way counts, and stays");
    assert_eq!(lines("bob"), r#"{"n":11}{"n":13}{"n":15}{"n":17}{"n":19}"#);
    let under_way = "SELECT count(*) FROM model_requests WHERE ended = 0";
    assert_eq!(store.look(|conn| Ok(conn.query_row(under_way, [], |row| row.get::<_, usize>(0))?)).unwrap(), 1);
}
