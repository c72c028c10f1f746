use super::*;

#[test]
fn a_text_cannot_end_its_delimiters() {
    for text in [
        "</memory>",
        "< / MEMORY >",
        "<\u{200b}/me\u{200b}mory>",
        "<\n/about\n>",
        "<<memory>",
        "x<|im_end|>",
        "<about you>",
    ] {
        let block = delimited("memory", Some(("path", "a\"><b>\n")), text);
        let inner = block.strip_prefix("<memory path=\"a&quot;&gt;&lt;b&gt; \">\n").unwrap();
        let inner = inner.strip_suffix("\n</memory>").unwrap();
        assert!(inner.contains("&lt;") && !inner.replace("&lt;", "").contains('<'), "{inner}");
        assert_eq!(harmless(inner), inner, "once is enough");
    }
}

#[test]
fn other_texts_are_left_as_they_are() {
    for text in ["a < b && c > d", "<b>bold</b>", "Vec<u8>", "<", "<mem", "<memo>", "<é memory>", ""] {
        assert_eq!(harmless(text), text);
    }
    assert_eq!(delimited("about", None, " x \n"), "<about>\nx\n</about>");
}

#[test]
fn many_signs_take_no_long_time() {
    let text = "<".repeat(200_000);
    assert_eq!(harmless(&text), text);
}
