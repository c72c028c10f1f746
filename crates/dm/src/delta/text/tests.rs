use proptest::prelude::*;

use super::*;

#[test]
fn a_comment_inside_does_not_end_the_block() {
    let text = "<!-- CONTEXT_PACK_NEXT\nt=day 1\n-->\n\nend\n";
    let delta = Delta { items: vec![DeltaItem::append("a.md", text)], risk_flags: vec!["b.md".into()] };
    assert_eq!(parse(&render(&delta)).unwrap(), delta);
}

#[test]
fn rows_89_and_90_the_grammar_is_strict() {
    let block = |body: &str| format!("<!-- ARCHIVE_DELTA\nfiles:\n  - path: a.md\n{body}-->\n");
    for (row, body, sentence) in [
        ("89", "    append: |\n      x\n    patch: |\n      y\n", "delta line 6: a.md has both append and patch"),
        ("90", "    replace: |\n      x\n", "delta line 4: `replace` is refused: only append and patch change a file"),
        ("90a", "    rewrite: |\n      x\n", "delta line 4: `rewrite` is refused: only append and patch change a file"),
        ("90b", "", "delta line 3: a.md has neither append nor patch"),
        ("90c", "    append: x\n", "delta line 4: append: must be followed by | and an indented block"),
    ] {
        assert_eq!(parse(&block(body)).unwrap_err().message, sentence, "row {row}");
    }
    assert!(parse("nothing").is_err());
    assert!(parse("<!-- ARCHIVE_DELTA\nfiles:\n").unwrap_err().message.contains("not closed"));
}

proptest! {
    #[test]
    fn any_text_can_be_carried(text in "\\PC{0,20}(\n[ -]{0,6}\\PC{0,20}){0,5}") {
        prop_assume!(!text.trim().is_empty() && !text.contains('\r'));
        let delta = Delta { items: vec![DeltaItem::append("a.md", format!("{}\n", text.trim_end_matches('\n')))], ..Delta::default() };
        let back = parse(&render(&delta)).unwrap();
        let plain = |delta: &Delta| match &delta.items[0].what { What::Append(text) | What::Patch { text, .. } => text.trim_end().to_owned() };
        prop_assert_eq!(plain(&back), text.trim_end());
    }

    #[test]
    fn no_block_breaks_the_parser(text in "(<!-- ARCHIVE_DELTA\n)?(files:\n)?([ a-z:|>-]{0,30}\n){0,8}") {
        let _ = parse(&text);
    }
}
