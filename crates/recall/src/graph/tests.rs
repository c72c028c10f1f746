use super::*;
use crate::index::tests::of;

fn wiki() -> Index {
    of(&[
        ("index.md", "[[A|b]] [[gone]] [[Twin]]"),
        ("semantic/A.md", "[[A]] see [[episodic-raw/1/x/1-user]]"),
        ("semantic/B.md", "[[semantic/A]] [[A.md]]"),
        ("semantic/C.md", "[[A#h]] [a](A.md) `[[B]]`"),
        ("semantic/Twin.md", ""),
        ("episodic/Twin.md", ""),
        ("episodic-raw/1/x/1-user.md", "[[nowhere]]"),
    ])
}

#[test]
fn every_spelling_is_a_backlink() {
    let index = wiki();
    let of_a = index.backlinks(index.page("semantic/A.md").unwrap());
    assert_eq!(of_a, ["index.md", "semantic/B.md", "semantic/C.md"]); // 37
    assert_eq!(index.backlinks(index.page("semantic/B.md").unwrap()), Vec::<String>::new());
}

#[test]
fn what_nobody_leads_to_is_an_orphan_but_for_the_index() {
    let wanted = ["episodic/Twin.md", "semantic/B.md", "semantic/C.md", "semantic/Twin.md"];
    assert_eq!(wiki().orphans(), wanted); // 39
}

#[test]
fn a_link_that_leads_nowhere_is_told_with_its_cause() {
    let told: Vec<_> = wiki().broken().into_iter().map(|it| (it.page, it.link.link, it.link.code)).collect();
    let wanted = [("index.md", "gone", "not_found"), ("index.md", "Twin", "ambiguous")];
    assert_eq!(told, wanted.map(|(page, link, code)| (page.to_owned(), link.to_owned(), Some(code))));
}

#[test]
fn a_page_that_is_renamed_leaves_broken_links_that_are_told() {
    let mut index = wiki();
    index.remove("semantic/A.md"); // 40
    index.put(Page::of("semantic/Z.md", "[[Z]]", 5, 0));
    let broken: Vec<_> = index.broken().into_iter().map(|it| format!("{}: {}", it.page, it.link.link)).collect();
    let wanted =
        ["index.md: A|b", "index.md: gone", "index.md: Twin", "semantic/B.md: semantic/A", "semantic/B.md: A.md"];
    assert_eq!(broken[..5], wanted);
    let codes: Vec<_> = index.check().iter().map(|it| it.code).collect();
    assert!(["broken_link", "orphan", "same_title"].iter().all(|code| codes.contains(code)), "{codes:?}");
    assert_eq!(of(&[]).check()[0].code, "missing_index");
}
