//! For tests: checks a table of behaviours (`behaviours.md` beside a service) against the tests that show them.

use std::collections::BTreeSet;

use regex::Regex;

/// A row `| # | behaviour | shown by |`: the number and the last cell.
fn row(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
    let (_, shown) = rest.strip_suffix(" |")?.rsplit_once(" | ")?;
    Some((number.parse().ok()?, shown))
}

/// Checks that each row of the table, once and in order, names a function in `tests` or says why it does not apply, and that
/// `tests` cite no row that is not in the table.
pub fn have_a_test_or_a_reason(table: &str, tests: &[&str]) {
    let rows: Vec<(u32, &str)> = table.lines().filter_map(row).collect();
    assert!(rows.len() > 30, "only {} rows were found", rows.len());
    assert!(rows.is_sorted_by(|one, next| one.0 < next.0), "each row once, in order");
    for (number, shown) in &rows {
        let reason = shown.strip_prefix("not applicable: ").is_some_and(|reason| !reason.is_empty());
        let test = format!("fn {}(", shown.trim_matches('`'));
        assert!(reason || tests.iter().any(|text| text.contains(&test)), "row {number}: {shown}");
    }
    let known: BTreeSet<u32> = rows.iter().map(|row| row.0).collect();
    let cited = Regex::new(r#"(?:"rows? (\d+)(?: and (\d+))?|fn rows?_(\d+)_(?:(?:to|and)_(\d+)_)?)"#).unwrap();
    for found in tests.iter().flat_map(|text| cited.captures_iter(text)) {
        for number in found.iter().skip(1).flatten() {
            assert!(known.contains(&number.as_str().parse().unwrap()), "{} cites no row of the table", &found[0]);
        }
    }
}
