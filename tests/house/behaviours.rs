//! Checks the tables of behaviours (`behaviours.md`) against the tests that show them.

use std::collections::BTreeSet;

use regex::Regex;

use crate::common::sources;

/// Each table, and the folders with the tests that it names.
const TABLES: [(&str, &str, &[&str]); 4] = [
    ("dm", include_str!("../../crates/dm/src/behaviours.md"), &["crates/dm/src", "src/services/dm"]),
    (
        "phases",
        include_str!("../../src/services/phases/behaviours.md"),
        &["src/services/phases", "src/services/symbols"],
    ),
    (
        "prompts",
        include_str!("../../crates/prompts/src/behaviours.md"),
        &["crates/prompts/src", "src/services/prompts"],
    ),
    ("recall", include_str!("../../crates/recall/src/behaviours.md"), &["crates/recall/src", "src/services/recall"]),
];

/// A row `| # | behaviour | shown by |`: the number and the last cell.
fn row(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
    let (_, shown) = rest.strip_suffix(" |")?.rsplit_once(" | ")?;
    Some((number.parse().ok()?, shown))
}

/// Each row, once and in order, names a test or says why it does not apply, and tests cite no row that is not in the table.
#[test]
fn every_row_has_a_test_or_a_reason() {
    let sources = sources();
    let cited = Regex::new(r#"(?:"rows? (\d+)(?: and (\d+))?|fn rows?_(\d+)_(?:(?:to|and)_(\d+)_)?)"#).unwrap();
    for (name, table, folders) in TABLES {
        let lies_here = |file: &std::path::Path| folders.iter().any(|folder| file.starts_with(folder));
        let tests: Vec<&str> =
            sources.iter().filter(|(file, _)| lies_here(file)).map(|(_, text)| text.as_str()).collect();
        let rows: Vec<(u32, &str)> = table.lines().filter_map(row).collect();
        assert!(rows.len() > 30, "{name}: only {} rows were found", rows.len());
        assert!(rows.is_sorted_by(|one, next| one.0 < next.0), "{name}: each row once, in order");
        for (number, shown) in &rows {
            let reason = shown.strip_prefix("not applicable: ").is_some_and(|reason| !reason.is_empty());
            let test = format!("fn {}(", shown.trim_matches('`'));
            assert!(reason || tests.iter().any(|text| text.contains(&test)), "{name}, row {number}: {shown}");
        }
        let known: BTreeSet<u32> = rows.iter().map(|row| row.0).collect();
        for found in tests.iter().flat_map(|text| cited.captures_iter(text)) {
            for number in found.iter().skip(1).flatten() {
                assert!(known.contains(&number.as_str().parse().unwrap()), "{name}: {} cites no row", &found[0]);
            }
        }
    }
}
