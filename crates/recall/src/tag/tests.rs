use proptest::prelude::*;

use super::*;

fn titles(text: &str) -> Vec<String> {
    tags(text).into_iter().map(|tag| tag.title).collect()
}

#[test]
fn a_tag_is_found_however_it_is_written() {
    for (text, wanted) in [
        ("none", vec![]),
        ("<recall>Foo</recall>", vec!["Foo"]),
        ("I look. <RECALL> Foo\n Bar </Recall> So.", vec!["Foo Bar"]),
        ("<recall>A</recall> and <recall>B</recall>", vec!["A", "B"]),
        ("<recall></recall>", vec![""]),
        ("<recall>Foo", vec![]),
        ("Foo</recall>", vec![]),
        ("`<recall>Foo</recall>`", vec![]),
        ("```\n<recall>Foo</recall>\n```\n<recall>Bar</recall>", vec!["Bar"]),
        ("<recall>a <recall>b</recall>", vec!["b"]),
        ("<recall>Ä</recall>İ<recall>ß</recall>", vec!["Ä", "ß"]),
    ] {
        assert_eq!(titles(text), wanted, "{text:?}");
    }
}

#[test]
fn a_person_sees_no_tag() {
    for (text, wanted) in [
        ("plain", "plain"),
        ("a\n\n<recall>Foo</recall>\n\nb", "a\n\nb"),
        ("<recall></recall>", ""),
        ("<recall>Foo", "<recall>Foo"),
        ("say `<recall>X</recall>`", "say `<recall>X</recall>`"),
        ("<rec<recall>x</recall>all>Foo</recall>!", "!"),
    ] {
        assert_eq!(shown(text), wanted, "{text:?}");
    }
}

proptest! {
    #[test]
    fn whatever_is_shown_has_no_tag_left(parts in prop::collection::vec("(<recall>|</recall>|<rec|all>|`|\n|x)", 0..60)) {
        prop_assert_eq!(titles(&shown(&parts.concat())), Vec::<String>::new());
    }
}
