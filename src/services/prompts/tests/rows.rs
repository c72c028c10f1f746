//! Every row of `behaviours.md` has a test here or a reason.

const TESTS: &[&str] = &[
    include_str!("construction.rs"),
    include_str!("disclosing.rs"),
    include_str!("rendering.rs"),
    include_str!("../output/tests.rs"),
    include_str!("../overrides/tests.rs"),
    include_str!("../resources/tests.rs"),
    include_str!("../service_tests.rs"),
];

#[test]
fn every_row_has_a_test_or_a_reason() {
    crate::services::row_tests::have_a_test_or_a_reason(include_str!("../behaviours.md"), TESTS);
}
