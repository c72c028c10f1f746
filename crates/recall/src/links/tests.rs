use proptest::prelude::*;

use super::*;

#[test]
fn links_are_found_with_their_lines() {
    let text = "[[A]] and [[ dir/B#h|b ]]\n`[[code]]` ![[pic]] \\[[no]]\n[[C]\n[[]] [[D\n]] [c](../x/C.md#h)\n\
                [web](https://a/b.md) ![p](p.md) [e](<E.md>) [f](F%20f.md)";
    let found: Vec<_> = links("semantic/P.md", text).into_iter().map(|it| (it.line, it.target)).collect();
    let wanted = [(1, "A"), (1, "dir/B#h|b"), (5, "./x/C.md#h"), (6, "./semantic/E.md"), (6, "./semantic/F f.md")];
    assert_eq!(found, wanted.map(|(line, target)| (line, target.to_owned())));
    assert_eq!(links("P.md", "[x](../../y.md)")[0].target, "./../../y.md");
}

#[test]
fn links_of_every_kind_are_found() {
    for (text, wanted) in [
        ("[a](G%C3%A4ste%20(2).md)", vec![]),
        ("[a](G%C3%A4ste%20%282%29.md)", vec!["./semantic/Gäste (2).md"]),
        ("[a](<My page.md> \"a title\")", vec!["./semantic/My page.md"]),
        ("[a](/episodic/Trip.md#Day%201)", vec!["./episodic/Trip.md#Day%201"]),
        (
            "[a][t] and [t]\n\n[t]: ../episodic/Trip.md 'title'\n   [u]: </My page.md>",
            vec!["./episodic/Trip.md", "./My page.md"],
        ),
        ("text\n\n    [[code]]\n\nand [[B]]", vec!["B"]),
        ("- item\n\n    [[in the item]]", vec!["in the item"]),
        ("a paragraph\n    [[goes on]]", vec!["goes on"]),
    ] {
        let found: Vec<_> = links("semantic/P.md", text).into_iter().map(|it| it.target).collect();
        assert_eq!(found, wanted, "{text:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read(text in "(\\[|\\]|\\(|\\)|a|ä|\\.md|!|`|\n|#){0,60}") {
        links("a/b.md", &text);
    }
}
