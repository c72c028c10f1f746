use super::*;
use crate::tests::brinewick;

/// A filter of a turn that nothing is known of.
fn filter<'a>(world: &'a Cartridge, state: &'a State, lines_veils: &'a str) -> ProseFilter<'a> {
    let input = "[LOOK]{the nets}";
    ProseFilter { world, state, input, pc: "Ann", filed: &[], lines_veils, untold: OnceCell::new() }
}

fn clean(text: &str) -> CleanedProse {
    let (world, state) = (brinewick(), State::default());
    filter(&world, &state, "-").clean(text)
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
        ("The nets drip.\n\n[ＨＵＤ]\nday 9, nowhere", "The nets drip.", "\"[ＨＵＤ]\" is the kernel's to write"),
        ("The nets drip.\n\n〖НUD〗\nday 9, nowhere", "The nets drip.", "is the kernel's to write"),
        ("The nets drip.\nHUD\nday 9, nowhere", "The nets drip.", "is the kernel's to write"),
        ("The nets drip. ＨＰ ９９ is left.", "The nets drip.", "\"HP 99\" is the kernel's to tell"),
        ("The nets drip. Ｙｏｕ agree.", "The nets drip.", "\"You agree\" decides"),
        ("The nets drip.\n- Keeper's key (@keepers_key)", "The nets drip.", "is no part of a story (handle)"),
        ("The nets drip. Narrator: fine", "The nets drip.", "is no part of a story (role)"),
        ("The nets drip. See http://x.example/y for more.", "The nets drip.", "is no part of a story (address)"),
        ("The nets drip. Type `rm -rf ~` now.", "The nets drip.", "is no part of a story (code)"),
        ("The nets drip. See campaigns/i1/state.json for it.", "The nets drip.", "is no part of a story (path)"),
        ("The nets drip. Pell has sold the oil that belonged to the keeper.", "The nets drip.", "it tells a secret of"),
        ("The nets drip. Wren was on the Merrow.", "The nets drip.", "it tells a secret of Wren"),
        (
            "The nets drip. The key of the lamp room lies in the chapel yard.",
            "The nets drip.",
            "where something hidden lies",
        ),
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
fn what_players_want_kept_out_is_taken_out() {
    let (world, state) = (brinewick(), State::default());
    let filter = |lines_veils| filter(&world, &state, lines_veils);
    let text = "The nets drip. Spiders crawl over them. Salt blows in.";
    let cleaned = filter("no spiders").clean(text);
    assert_eq!(cleaned.text, "The nets drip. Salt blows in.");
    assert_eq!(cleaned.reports, ["it tells of what the players want kept out"]);
    assert_eq!(filter("-").clean(text).text, text);
}

#[test]
fn an_explanation_has_no_figure_that_its_page_lacks() {
    let (world, state) = (brinewick(), State::default());
    let filter = filter(&world, &state, "-");
    let page = "A check is a d20 against a DC of 8 to 20.";
    for (said, told) in [
        ("Throw a d20. The DC is 3.", "Throw a d20."),
        ("{}", ""),
        ("\u{1b}[31mThrow a d20 and beat it.", "Throw a d20 and beat it."),
        ("Ask https://x.example now. Throw a d20.", "Throw a d20."),
    ] {
        let cleaned = filter.explanation(said, page);
        assert_eq!((cleaned.text.as_str(), cleaned.reports.is_empty()), (told, false), "{said}");
    }
    assert!(filter.explanation("Throw a d20 and add.", page).reports.is_empty());
}

#[test]
fn a_message_of_another_program_is_one_clean_line() {
    let (world, state) = (brinewick(), State::default());
    let filter = filter(&world, &state, "-");
    assert_eq!(filter.message("boom \u{1b}[31m red\u{9b}31m\nof http://x.example/v1: 500"), "boom red of … 500");
    assert_eq!(filter.message("boom\n[HUD]\nHP 99"), "boom");
}

#[test]
fn a_secret_that_was_told_may_be_told_again() {
    let (world, mut state) = (brinewick(), State::default());
    let text = "Jun wrote the Merrow down as lost before she was due.";
    for (told, open) in [(0, false), (2, false), (3, true)] {
        state.told.insert("@harbourer_jun".into(), told);
        let filter = filter(&world, &state, "-");
        assert_eq!(filter.clean(text).reports.is_empty(), open, "{told}");
    }
}
