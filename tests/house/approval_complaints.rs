//! What users of other agents complain about when they are asked, or are not: each complaint is a test here, or has a reason.

use crate::common::sources;

enum Answered {
    /// The file and the name of a test.
    Test(&'static str, &'static str),
    /// Why there is none.
    Reason(&'static str),
}
use Answered::{Reason, Test};

const DOORS: &str = "tests/house/approval_doors.rs";
const HOUSE: &str = "tests/house/approvals.rs";
const COMMAND: &str = "tests/house/approve_command.rs";
const PROGRAMS: Answered = Reason(
    "rules name operations, not the text of commands: no text is matched anywhere. Rules on programs at their start (`exec`) are \
     not there yet; a rule on terminal/** asks about the whole call",
);

const COMPLAINTS: [(&str, Answered); 25] = [
    (
        "the same is asked again after always",
        Test(HOUSE, "always_is_an_exception_of_the_rule_that_asked_until_it_is_revoked"),
    ),
    (
        "`similar` stored the verbatim text and never matched",
        Test("crates/approvals/src/request/tests.rs", "a_request_shows_everything_and_says_what_each_answer_writes"),
    ),
    (
        "once, for a while, always, and where it is kept",
        Test(HOUSE, "always_is_an_exception_of_the_rule_that_asked_until_it_is_revoked"),
    ),
    (
        "some things must never be allowed for good",
        Test(HOUSE, "always_is_an_exception_of_the_rule_that_asked_until_it_is_revoked"),
    ),
    ("`a && b` asks although both are allowed", PROGRAMS),
    ("a rule on the text of a command lets others through", PROGRAMS),
    ("wrappers were stripped for allow and not for deny", PROGRAMS),
    ("deny and ask match if any part does, allow only if every part does", PROGRAMS),
    ("variables and `bash -c` slip past prefixes", PROGRAMS),
    ("rules on argv never match because everything runs in `sh -c`", PROGRAMS),
    (
        "answer from the phone, once, bound to the one request",
        Test(COMMAND, "a_notice_goes_out_with_a_link_whose_page_alone_decides_and_only_by_post"),
    ),
    (
        "an event that something is blocked on a person, with an id and the outcome",
        Test(HOUSE, "a_session_of_an_operator_who_is_asked"),
    ),
    (
        "shown on one surface only, so that it hangs unseen",
        Test(COMMAND, "at_a_terminal_a_question_stands_until_it_is_answered_here_or_elsewhere"),
    ),
    ("a time-out was recorded as granted", Test(HOUSE, "an_answer_is_yes_no_or_nothing_and_the_agent_is_told_which")),
    (
        "a time-out is no denial and must not end the turn",
        Test(HOUSE, "an_answer_is_yes_no_or_nothing_and_the_agent_is_told_which"),
    ),
    (
        "without a terminal it hung for ever, or allowed",
        Test(HOUSE, "an_answer_is_yes_no_or_nothing_and_the_agent_is_told_which"),
    ),
    (
        "rules per tool are too coarse",
        Test(DOORS, "every_operation_of_every_service_waits_however_it_is_called_and_nothing_is_done"),
    ),
    (
        "always for one agent applied to all and overrode a deny",
        Test(HOUSE, "a_later_rule_that_denies_wins_over_always_and_a_changed_rule_asks_again"),
    ),
    (
        "always outranked a configured ask, was not listed, was lost at a restart",
        Test(HOUSE, "what_waits_survives_a_restart_and_what_was_allowed_is_done_once"),
    ),
    (
        "a helper's always was written for its parent",
        Test("src/approvals/tests.rs", "an_exception_is_there_after_a_restart_until_it_is_revoked"),
    ),
    (
        "the command is cut, or only the model's purpose is shown",
        Test("src/cli/approve/render/tests.rs", "nothing_of_a_request_is_cut_and_the_words_of_the_model_are_marked"),
    ),
    (
        "a list of changes was cut before the deletions",
        Reason("requests about files come from views, whose list of changes begins with the deletions"),
    ),
    (
        "the notice of a decision did not say about what",
        Test(COMMAND, "requests_are_listed_shown_and_answered_at_the_command_line"),
    ),
    (
        "the agent could write its own permissions",
        Test("src/policy/tests.rs", "no_rule_gives_an_agent_what_the_operator_decides_with"),
    ),
    (
        "requester and approver are the same person",
        Reason("the agent's identity is what cannot approve (see above); the operator who started it may"),
    ),
];

#[test]
fn every_complaint_is_a_test_or_has_a_reason() {
    let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let inner = sources();
    for (complaint, answered) in &COMPLAINTS {
        match answered {
            Reason(reason) => assert!(reason.len() > 20, "{complaint}"),
            Test(file, name) => {
                let known = inner.iter().find(|(path, _)| path.as_os_str() == *file).map(|(_, text)| text.clone());
                let text = known.unwrap_or_else(|| std::fs::read_to_string(top.join(file)).unwrap_or_default());
                assert!(text.contains(&format!("fn {name}(")), "{complaint}: {file} has no {name}");
            }
        }
    }
}
