//! The behaviour vectors of the origin, row by row: the test that shows each, or why it does not apply.
//!
//! The numbers are those of the notes on the origin (§13 of its reference); numbers that are missing there are missing here.

const TESTS: &[&str] = &[
    include_str!("block.rs"),
    include_str!("graph.rs"),
    include_str!("resolve.rs"),
    include_str!("session_tests.rs"),
    include_str!("turn_tests.rs"),
];

const ROWS: &[(u32, &str)] = &[
    (1, "a_wiki_with_nothing_but_an_index_says_nothing_of_recalling"),
    (2, "the_prompt_comes_once_and_first_and_is_never_expanded_again"),
    (4, "the_prompt_comes_once_and_first_and_is_never_expanded_again"),
    (5, "the_prompt_comes_once_and_first_and_is_never_expanded_again"),
    (6, "the_prompt_comes_once_and_first_and_is_never_expanded_again"),
    (7, "a_template_that_is_not_closed_is_refused_with_its_line"),
    (9, "not_applicable: messages are files of their own and are never packed into one text with tags"),
    (10, "a_turn_goes_as_the_vectors_say"),
    (11, "a_turn_goes_as_the_vectors_say"),
    (12, "a_turn_goes_as_the_vectors_say"),
    (14, "a_turn_goes_as_the_vectors_say"),
    (15, "a_turn_goes_as_the_vectors_say"),
    (16, "a_turn_goes_as_the_vectors_say"),
    (17, "a_turn_goes_as_the_vectors_say"),
    (19, "a_model_that_never_stops_is_stopped"),
    (20, "the_next_turn_begins_anew"),
    (21, "a_turn_goes_as_the_vectors_say"),
    (22, "a_turn_goes_as_the_vectors_say"),
    (24, "a_page_cannot_end_its_block"),
    (25, "a_block_cannot_be_forged"),
    (26, "a_long_page_is_cut_and_says_how_to_read_on"),
    (27, "what_changes_on_disk_is_what_is_recalled"),
    (29, "a_name_leads_to_its_page"),
    (30, "a_name_leads_to_its_page"),
    (31, "nothing_outside_is_read"),
    (32, "a_name_leads_to_its_page"),
    (34, "nothing_outside_is_read"),
    (35, "a_name_leads_to_its_page"),
    (36, "a_name_leads_to_its_page"),
    (37, "every_spelling_is_a_backlink"),
    (39, "what_nobody_leads_to_is_an_orphan_but_for_the_index"),
    (40, "a_page_that_is_renamed_leaves_broken_links_that_are_told"),
    (
        41,
        "not_applicable: nothing here consolidates by itself; an agent that does works on pages, one whole write each",
    ),
    (
        42,
        "not_applicable: as 41; `check` names broken links and orphans, and the wiki is under git where that is wanted",
    ),
    (44, "what_is_archived_is_what_was_said_byte_for_byte"),
    (45, "not_applicable: as 41; transcripts are never parsed for commands, and are not recalled"),
];

#[test]
fn every_row_has_a_test_or_a_reason() {
    crate::services::row_tests::have_a_test_or_a_reason(ROWS, TESTS);
}
