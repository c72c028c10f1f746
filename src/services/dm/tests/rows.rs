//! No row of the reference's behaviour table goes without a test: each number stands in one of them.

const ROWS: [u32; 112] = [
    1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15, 16, 17, 19, 20, 21, 22, 24, 25, 26, 27, 29, 30, 31, 32, 34, 35, 36, 37,
    39, 40, 41, 42, 44, 45, 46, 47, 49, 50, 51, 52, 54, 55, 56, 57, 59, 60, 61, 62, 64, 65, 66, 67, 69, 70, 71, 72, 74,
    75, 76, 77, 79, 80, 81, 82, 84, 85, 86, 87, 89, 90, 91, 92, 94, 95, 96, 97, 99, 100, 101, 102, 104, 105, 106, 107,
    109, 110, 111, 112, 114, 115, 116, 117, 119, 120, 121, 122, 124, 125, 126, 127, 129, 130, 131, 132, 134, 135, 136,
    137, 139, 140,
];

const TESTS: [&str; 20] = [
    include_str!("../check.rs"),
    include_str!("../delta/text.rs"),
    include_str!("../dice.rs"),
    include_str!("../fetch.rs"),
    include_str!("../hotstart.rs"),
    include_str!("../index.rs"),
    include_str!("../json.rs"),
    include_str!("../lint.rs"),
    include_str!("../mechanics/social.rs"),
    include_str!("../mechanics/survival.rs"),
    include_str!("../mechanics/tables.rs"),
    include_str!("../pack.rs"),
    include_str!("../pc.rs"),
    include_str!("../refs.rs"),
    include_str!("../rule.rs"),
    include_str!("../session.rs"),
    include_str!("../tools/mod.rs"),
    concat!(include_str!("apply.rs"), include_str!("state.rs"), include_str!("input.rs")),
    concat!(
        include_str!("campaign.rs"),
        include_str!("narrators.rs"),
        include_str!("save.rs"),
        include_str!("hall.rs")
    ),
    include_str!("../service/tests.rs"),
];

/// The numbers that a name such as `rows_56_to_62` or `row_9_and_10` covers, and those of the tables within.
fn covered(text: &str, row: u32) -> bool {
    let quoted = text.contains(&format!("\"{row}\""))
        || text.contains(&format!("row {row}"))
        || text.contains(&format!("rows {row} "));
    let and = text.contains(&format!(" and {row}")) || text.contains(&format!("_and_{row}"));
    let named = text.split("fn row").skip(1).any(|rest| {
        let name = rest.split('(').next().unwrap_or_default();
        let numbers: Vec<u32> = name.split('_').filter_map(|part| part.parse().ok()).collect();
        let range = name.contains("_to_")
            && numbers.len() >= 2
            && numbers.windows(2).any(|pair| (pair[0]..=pair[1]).contains(&row));
        numbers.contains(&row) || range
    });
    quoted || and || named
}

#[test]
fn every_row_of_the_table_has_a_test() {
    let missing: Vec<u32> = ROWS.into_iter().filter(|row| !TESTS.iter().any(|text| covered(text, *row))).collect();
    assert_eq!(missing, Vec::<u32>::new());
}
