use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// Every field is its own name in capitals; `lost` is not known.
struct Shout;

impl Values for Shout {
    type Lack = String;
    fn text(&self, name: &str, _indent: &str) -> Result<String, String> {
        match name {
            "lost" => Err(name.to_owned()),
            "money" => Ok("$num ${flag} $$".to_owned()),
            "wide" => Ok("  x\n  y  \n\n".to_owned()),
            _ => Ok(name.to_uppercase()),
        }
    }
    fn holds(&self, _name: &str) -> Result<bool, String> {
        Ok(false)
    }
}

struct Held;

impl Values for Held {
    type Lack = String;
    fn text(&self, _name: &str, _indent: &str) -> Result<String, String> {
        Ok("{{IF_INCLUDE_RECALL}}__MEMORY_ROOT__".to_owned())
    }
    fn holds(&self, _name: &str) -> Result<bool, String> {
        Ok(true)
    }
}

fn shown(text: &str) -> String {
    match Template::parse(text, Dialect::Plain) {
        Ok(template) => template.fill(&Shout).unwrap_or_else(|lack| format!("lacks {lack}")),
        Err(malformed) => malformed.to_string(),
    }
}

#[test]
fn the_grammar_is_that_of_strict_substitution() {
    let rows = [
        ("$name, ${name}", "NAME, NAME"),
        ("cost $$5 and $$name", "cost $5 and $name"),
        ("$$$name", "$NAME"),
        ("$name1 $name-x $nameé", "NAME1 NAME-x NAMEé"),
        ("_ $_a9", "_ _A9"),
        ("$NAME", "NAME"),
        ("value: $money", "value: $num ${flag} $$"),
        ("$wide", "x\n  y"),
        ("$lost", "lacks lost"),
        ("", ""),
    ];
    for (text, expected) in rows {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn a_malformed_dollar_is_found_when_the_text_is_parsed_with_its_place() {
    for text in ["$5", "$", "${", "${}", "${ name }", "${a.b}", "$é", "${name"] {
        let message = shown(&format!("first\n  é {text}"));
        assert!(message.starts_with("2:5: malformed placeholder"), "{text}: {message}");
    }
}

#[test]
fn indentation_is_taken_from_the_template_before_values_go_in() {
    let rows = [
        ("\n    a\n      b\n\n    c\n", "a\n  b\n\nc"),
        ("a\n  b", "a\n  b"),
        ("  a\n\tb", "a\n\tb"),
        ("  a\n   \n  b", "a\n\nb"),
        ("  a\r\n  b\r\n", "a\r\nb"),
        ("    x: $wide\n    z", "x:   x\n  y  \n\n\nz"),
        ("\u{a0}a\n  b", "a\n  b"),
    ];
    for (text, expected) in rows {
        assert_eq!(shown(text), expected, "{text:?}");
    }
}

#[test]
fn a_byte_order_mark_is_not_text() {
    assert_eq!(shown("\u{feff}hello $name"), "hello NAME");
}

fn recall(text: &str, kept: Expect, dropped: Expect) {
    let template = Template::parse(text, Dialect::Recall);
    let show = |filled: Result<String, String>| filled.unwrap_or_else(|lack| lack);
    kept.assert_eq(&template.as_ref().map_or_else(ToString::to_string, |t| show(t.fill(&Held))));
    dropped.assert_eq(&template.as_ref().map_or_else(ToString::to_string, |t| show(t.fill(&Shout))));
}

#[test]
fn the_two_markers_of_recall_work_as_they_are_written() {
    recall(
        "You are $5.\n\n{{IF_INCLUDE_RECALL}}\n\nRecall so.\n\n{{/IF_INCLUDE_RECALL}}\n\nIndex:\n__MEMORY_ROOT__",
        expect![[r#"
            You are $5.

            Recall so.

            Index:
            {{IF_INCLUDE_RECALL}}__MEMORY_ROOT__"#]],
        expect![[r#"
            You are $5.

            Index:
            MEMORY_ROOT"#]],
    );
}

#[test]
fn an_unbalanced_marker_is_refused_with_its_line() {
    let rows = [
        ("a\n {{IF_INCLUDE_RECALL}} b", "2:2: {{IF_INCLUDE_RECALL}} is never closed by {{/IF_INCLUDE_RECALL}}"),
        ("a {{/IF_INCLUDE_RECALL}}", "1:3: {{/IF_INCLUDE_RECALL}} closes nothing"),
        (
            "{{IF_INCLUDE_RECALL}}\n{{IF_INCLUDE_RECALL}}{{/IF_INCLUDE_RECALL}}",
            "2:1: {{IF_INCLUDE_RECALL}} stands inside another one",
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(Template::parse(text, Dialect::Recall).unwrap_err().to_string(), expected);
    }
}

#[test]
fn what_was_read_is_read_again_as_the_same() {
    for text in [" \u{feff} Dear $name", "\u{feff}\u{feff}\n  a\n  b", "\ta\n\tb\n"] {
        let once = Template::parse(text, Dialect::Plain).unwrap();
        let again = Template::parse(once.source(), Dialect::Plain).unwrap();
        assert_eq!(again.source(), once.source(), "{text:?}");
    }
}

#[test]
fn a_hostile_text_costs_no_more_than_its_length() {
    let wide = format!("x\n{}{}", " ".repeat(100_000), "$a".repeat(10_000));
    assert_eq!(Template::parse(&wide, Dialect::Plain).unwrap().fields().len(), 10_000);
    assert_eq!(Template::parse(&ROOT.repeat(50_000), Dialect::Recall).unwrap().fields().len(), 50_000);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[$a-z{}_ \\t\\n\\r\u{e9}0-9]{0,80}", wild in ".{0,80}") {
        for text in [text.as_str(), wild.as_str()] {
            for dialect in [Dialect::Plain, Dialect::Recall] {
                if let Ok(template) = Template::parse(text, dialect) {
                    let once = template.fill(&Shout);
                    prop_assert_eq!(once, template.fill(&Shout));
                }
            }
        }
    }

    #[test]
    fn a_text_without_dollars_comes_out_dedented_and_stripped(text in "[a-z \\t\\n]{0,80}") {
        prop_assert_eq!(shown(&text), dedent(&text).trim().to_owned());
    }

    #[test]
    fn the_markers_in_any_order_never_panic(parts in proptest::collection::vec(0usize..5, 0..12)) {
        let words = [OPEN, CLOSE, ROOT, "\n\n", "x"];
        let text: String = parts.into_iter().map(|part| words[part]).collect();
        if let Ok(template) = Template::parse(&text, Dialect::Recall) {
            let _ = (template.fill(&Shout), template.fill(&Held));
        }
    }
}
