//! Every row of `behaviours.md` has a test here or a reason.

const TESTS: &[&str] = &[
    include_str!("block.rs"),
    include_str!("graph.rs"),
    include_str!("resolve.rs"),
    include_str!("session_tests.rs"),
    include_str!("turn_tests.rs"),
];

#[test]
fn every_row_has_a_test_or_a_reason() {
    crate::services::row_tests::have_a_test_or_a_reason(include_str!("behaviours.md"), TESTS);
}
