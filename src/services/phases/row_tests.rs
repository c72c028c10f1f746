//! Every row of `behaviours.md` has a test here or in `symbols`, or a reason.

const TESTS: &[&str] = &[
    include_str!("set.rs"),
    include_str!("step_tests.rs"),
    include_str!("payload.rs"),
    include_str!("command.rs"),
    include_str!("action.rs"),
    include_str!("perform_tests.rs"),
    include_str!("context_tests.rs"),
    include_str!("budget.rs"),
    include_str!("seal.rs"),
    include_str!("history_tests.rs"),
    include_str!("library.rs"),
    include_str!("run_tests.rs"),
    include_str!("service_tests.rs"),
    include_str!("../symbols/symbol.rs"),
    include_str!("../symbols/index.rs"),
    include_str!("../symbols/walk.rs"),
    include_str!("../symbols/catalogue.rs"),
    include_str!("../symbols/tests/mod.rs"),
];

#[test]
fn every_row_has_a_test_or_a_reason() {
    crate::services::row_tests::have_a_test_or_a_reason(include_str!("behaviours.md"), TESTS);
}
