use super::*;
use crate::index::tests::of;

#[test]
fn links_to_a_renamed_page_are_written_anew_in_their_own_form() {
    let pages = [
        ("semantic/River.md", "---\naliases: [Water]\n---\n# The river\n\n[o](Obol.md) [[River]] [r](/index.md)"),
        ("semantic/Obol.md", ""),
        ("episodic/Twin.md", ""),
        (
            "index.md",
            "[[River]] [[ river#Banks|the water ]] [[semantic/River]] [[River.md]] [[Water]] [[The river]]\n\
                      [a](semantic/River.md#Banks) [b](</semantic/River.md>) `[[River]]` [[Obol]]\n\n[c]: ./semantic/River.md",
        ),
    ];
    let index = of(&pages);
    let page = index.page("semantic/River.md").unwrap();
    let renamed = |to: &str, number: usize| Renaming::new(&index, page, to).text(pages[number].0, pages[number].1);
    assert_eq!(
        renamed("episodic/Lake (old).md", 3).unwrap(),
        "[[Lake (old)]] [[ Lake (old)#Banks|the water ]] [[episodic/Lake (old)]] [[Lake (old).md]] [[Water]] [[The river]]\n\
         [a](episodic/Lake%20%28old%29.md#Banks) [b](</episodic/Lake (old).md>) `[[River]]` [[Obol]]\n\n\
         [c]: episodic/Lake%20%28old%29.md"
    );
    let own = renamed("Lake.md", 0).unwrap();
    assert!(own.ends_with("[o](semantic/Obol.md) [[Lake]] [r](/index.md)"), "{own}");
    assert!(renamed("semantic/Twin.md", 3).unwrap().starts_with("[[semantic/Twin]] "), "a title that is not alone");
    assert_eq!(renamed("semantic/Lake.md", 1), None);
}
