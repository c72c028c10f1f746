//! Every row of `behaviours.md` has a test here or a reason.

const TESTS: &[&str] = &[
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
    include_str!("../service/tests.rs"),
    include_str!("apply.rs"),
    include_str!("campaign.rs"),
    include_str!("hall.rs"),
    include_str!("input.rs"),
    include_str!("narrators.rs"),
    include_str!("playthrough.rs"),
    include_str!("save.rs"),
    include_str!("state.rs"),
];

#[test]
fn every_row_has_a_test_or_a_reason() {
    crate::services::row_tests::have_a_test_or_a_reason(include_str!("../behaviours.md"), TESTS);
}
