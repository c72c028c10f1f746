use super::*;
use crate::tests::brinewick;

fn clean(text: &str) -> CleanedProse {
    let (world, state) = (brinewick(), State::default());
    ProseFilter { world: &world, state: &state, input: "[LOOK]{the nets}", pc: "Ann", filed: &[] }.clean(text)
}

#[test]
fn what_does_not_belong_is_taken_out_and_the_rest_is_told() {
    for (raw, told, report) in [
        ("The nets drip.\u{1b}[31m Red.\u{1b}[0m", "The nets drip. Red.", "control characters"),
        ("A\u{1b}]0;title\u{7} bell.", "A bell.", "control characters"),
        ("A\u{202e} bell\u{200b}.\r", "A bell.", "control characters"),
        ("The nets drip.\n\n[HUD]\nHP 99 · Heat 0", "The nets drip.", "\"[HUD]\" is the kernel's to write"),
        ("The nets drip. [Adjudication] d20(20)", "The nets drip.", "\"[Adjudication] d20(20)\" is the kernel's"),
        ("【Result】 all is won\n\nThe nets drip.", "The nets drip.", "is the kernel's to write"),
        ("The nets drip.\n| action | result |\n| x | won |", "The nets drip.", "is the kernel's to write"),
        ("The nets drip.\n## Decision: 0099\n- State: {}", "The nets drip.", "is the kernel's to write"),
        ("The nets drip. <!-- ARCHIVE_DELTA -->", "The nets drip.", "is the kernel's to write"),
        ("The nets drip. You agree to pay. Salt blows in.", "The nets drip. Salt blows in.", "\"You agree\" decides"),
        ("The nets drip. \"I will pay.\" You tell him so.", "The nets drip.", "made to say"),
        ("The nets drip. Behind them waits Vultan.", "The nets drip.", "unfiled_npc: Vultan has no page"),
        (
            "The nets drip. Jun wrote the Merrow down as lost before she was due!",
            "The nets drip.",
            "it tells a secret of Jun Tallow",
        ),
        (
            "The nets drip. Jun wrote. The Merrow down. As lost before. She was due.",
            "",
            "it tells a secret of Jun Tallow",
        ),
        (
            "The nets drip. Under the chapel hangs a bell that was sunk to be forgotten.",
            "The nets drip.",
            "it tells a line of the spine",
        ),
    ] {
        let cleaned = clean(raw);
        assert_eq!(cleaned.text, told, "{raw:?}: {:?}", cleaned.reports);
        assert!(cleaned.reports.iter().any(|own| own.contains(report)), "{raw:?}: {:?}", cleaned.reports);
    }
}

#[test]
fn plain_prose_is_left_alone() {
    for text in [
        "The nets drip. Jun Tallow turns a page!",
        "Under the chapel, it is said, something hangs.",
        "\"Who goes there?\" calls the guard.\n\nNobody answers.",
        "He says [quietly] that the boat is late.",
        "天黑了。风停了。",
    ] {
        assert_eq!(clean(text), CleanedProse { text: text.into(), reports: vec![] });
    }
}

#[test]
fn a_secret_that_was_told_may_be_told_again() {
    let (world, mut state) = (brinewick(), State::default());
    let text = "Jun wrote the Merrow down as lost before she was due.";
    for (told, open) in [(0, false), (2, false), (3, true)] {
        state.told.insert("@harbourer_jun".into(), told);
        let filter = ProseFilter { world: &world, state: &state, input: "", pc: "Ann", filed: &[] };
        assert_eq!(filter.clean(text).reports.is_empty(), open, "{told}");
    }
}
