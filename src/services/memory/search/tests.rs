use super::*;
use acheron_store::Connection;

/// Five thousand rows with ranks of which many are equal.
const ROWS: &str = "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 5000) \
                    SELECT id, CAST(id * 7919 % 211 AS REAL) AS rank FROM n";

#[test]
fn the_best_of_many_rows_are_those_that_sorting_all_gives() {
    let conn = Connection::open_in_memory().unwrap();
    let mut sorted = conn.prepare(&format!("{ROWS} ORDER BY rank, id")).unwrap();
    let sorted: Vec<(i64, f64)> =
        sorted.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    let mut select = conn.prepare(ROWS).unwrap();
    for wanted in [1, 2, 11, MANY - 1, MANY, 1500, 5000, 9000] {
        let best = best(select.query([]).unwrap(), wanted).unwrap();
        assert_eq!(best, sorted[..wanted.min(5000)], "{wanted}");
    }
}
