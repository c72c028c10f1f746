use expect_test::expect;

use super::*;
use crate::index::tests::of;
use crate::resolve::Access;

const PAGES: [(&str, &str); 7] = [
    ("index.md", "Start: [[River]]"),
    ("semantic/River.md", "The river is wide. A river has banks. See [[Boat]]."),
    ("semantic/Boat.md", "Wood that floats."),
    ("semantic/Obol.md", "The fare over the river."),
    ("semantic/Coin.md", "# Money of the dead\n\n## Rivers\n\nIt is paid."),
    ("semantic/東京.md", "東京の川"),
    ("sleep/1/job.md", "river river river"),
];

/// All pages as candidates: whoever has them would bring those that have a word of the question.
fn found(query: &str) -> Vec<Hit> {
    let index = of(&PAGES);
    let asked = Question::asked(query);
    let having = |stem: &String| PAGES.iter().filter(|(_, text)| words(text).contains(stem)).count() as u64;
    let counts = asked.iter().map(|stem| (stem.clone(), having(stem))).collect();
    let question = Question::new(counts, index.len() as u64, index.words());
    let visible = |page: &Page| !page.class.excluded();
    let pages = index.pages().filter(|page| visible(page));
    let text = |path: &str| PAGES.iter().find(|it| it.0 == path).unwrap().1;
    let hits = pages.map(|page| question.hit(page, text(&page.path))).collect();
    assert!(index.resolve("River", Access::Nodes).is_ok());
    index.ranked(hits, 10, &visible)
}

fn told(query: &str) -> String {
    let show = |hit: &Hit| format!("{} {} {}\n", hit.score, hit.path, serde_json::to_string(&hit.why).unwrap());
    found(query).iter().map(show).collect()
}

#[test]
fn every_point_is_accounted_for() {
    expect![[r#"
        219 semantic/River.md [{"because":"text","word":"river","count":2,"points":41},{"because":"title","word":"river","points":71},{"because":"lead","word":"river","points":107}]
        195 index.md [{"because":"text","word":"river","count":1,"points":52},{"because":"lead","word":"river","points":143}]
        167 semantic/Obol.md [{"because":"text","word":"river","count":1,"points":37},{"because":"lead","word":"river","points":130}]
        40 semantic/Coin.md [{"because":"text","word":"river","count":1,"points":29},{"because":"heading","word":"river","points":11}]
        32 semantic/Boat.md [{"because":"linked","with":"semantic/River.md","points":32}]
    "#]].assert_eq(&told("rivers"));
    for hit in found("the wide river") {
        assert_eq!(hit.score, hit.why.iter().map(Reason::points).sum::<u64>(), "{}", hit.path);
    }
}

#[test]
fn any_script_is_found_and_nothing_is_found_by_nothing() {
    assert!(told("京").contains("semantic/東京.md"));
    assert_eq!(told(""), "");
    assert_eq!(told("?!"), "");
    assert_eq!(told("unheard"), "");
    assert_eq!(told("river boat"), told("boat river").as_str());
}

#[test]
fn a_page_is_found_by_its_heading_and_a_short_page_before_a_long_one() {
    assert_eq!(found("money")[0].path, "semantic/Coin.md");
    let long = format!("# A\n\nferry {}", "something else ".repeat(500));
    let index = of(&[("A.md", &long), ("B.md", "a note on the ferry")]);
    let question = Question::new(vec![("ferri".to_owned(), 2)], 2, index.words());
    let hits = vec![
        question.hit(index.page("A.md").unwrap(), &long),
        question.hit(index.page("B.md").unwrap(), "a note on the ferry"),
    ];
    assert_eq!(index.ranked(hits, 10, &|_| true)[0].path, "B.md");
}

#[test]
fn words_that_stand_together_say_more_than_the_same_words_apart() {
    let between = "something else entirely ".repeat(20);
    let (apart, together) =
        (format!("generic {between} parameter {between}"), format!("generic parameter {between}{between}"));
    let index = of(&[("A.md", &apart), ("B.md", &together)]);
    let counts = vec![(stem("generic").into_owned(), 2), (stem("parameter").into_owned(), 2)];
    let question = Question::new(counts, 100, index.words() * 50);
    // Neither page has the words in its lead alone: what is left is where they stand.
    let near = |path: &str, text: &str| {
        let hit = question.hit(index.page(path).unwrap(), text);
        hit.why.iter().filter(|reason| matches!(reason, Reason::Near { .. })).map(Reason::points).sum::<u64>()
    };
    assert!(near("B.md", &together) > 0);
    assert_eq!(near("A.md", &apart), 0);
}

#[test]
fn a_page_with_very_many_links_lifts_few() {
    let links: String = (0..500).map(|number| format!("[[P{number}]] ")).collect();
    let mut pages = vec![("Hub.md".to_owned(), format!("everything {links}"))];
    pages.extend((0..500).map(|number| (format!("P{number}.md"), "nothing".to_owned())));
    let index = of(&pages.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
    let question = Question::new(vec![("everyth".to_owned(), 1)], 501, index.words());
    let hits = vec![question.hit(index.page("Hub.md").unwrap(), &pages[0].1)];
    assert_eq!(index.ranked(hits, 1000, &|_| true).len(), 1 + NEIGHBOURS);
}

#[test]
fn the_line_with_the_words_is_shown() {
    assert_eq!(snippet("# River\nfirst\na river\nthe Rivers are wide\n", "wide river"), "the Rivers are wide");
    assert_eq!(snippet("# River\nfirst\n", "boat"), "first");
}
