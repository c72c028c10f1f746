//! For tests: the rows of a reference, each with the test that shows it, or why it does not apply.

/// Checks that each row, once and in order, names a function in `tests` or stands as `not_applicable: reason`.
pub fn have_a_test_or_a_reason(rows: &[(u32, &str)], tests: &[&str]) {
    for (row, shown) in rows {
        let reason = shown.strip_prefix("not_applicable: ").is_some_and(|reason| !reason.is_empty());
        let test = format!("fn {shown}(");
        assert!(reason || tests.iter().any(|text| text.contains(&test)), "row {row}: {shown}");
    }
    assert!(rows.is_sorted_by(|one, next| one.0 < next.0), "each row once, in order");
}
