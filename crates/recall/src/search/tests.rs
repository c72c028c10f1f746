use expect_test::expect;

use super::*;
use crate::index::tests::of;

fn told(query: &str) -> String {
    let index = of(&[
        ("index.md", "Start: [[River]]"),
        ("semantic/River.md", "The river is wide. A river has banks. See [[Boat]]."),
        ("semantic/Boat.md", "Wood that floats."),
        ("semantic/Obol.md", "The fare over the river."),
        ("semantic/東京.md", "東京の川"),
        ("sleep/1/job.md", "river river river"),
    ]);
    let hits = index.search(query, Access::Nodes, 10);
    hits.iter()
        .map(|hit| format!("{} {} {}\n", hit.score, hit.path, serde_json::to_string(&hit.why).unwrap()))
        .collect()
}

#[test]
fn every_point_is_accounted_for() {
    expect![[r#"
            32 semantic/River.md [{"because":"text","word":"river","count":2,"weight":2,"points":4},{"because":"title","word":"river","points":8},{"because":"whole","points":20}]
            4 index.md [{"because":"text","word":"river","count":1,"weight":2,"points":2},{"because":"linked","with":"semantic/River.md","points":2}]
            4 semantic/Boat.md [{"because":"linked","with":"semantic/River.md","points":4}]
            2 semantic/Obol.md [{"because":"text","word":"river","count":1,"weight":2,"points":2}]
        "#]]
        .assert_eq(&told("river"));
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
fn the_line_with_the_word_is_shown() {
    assert_eq!(snippet("# River\nfirst\nthe River is wide\n", "river"), "the River is wide");
    assert_eq!(snippet("# River\nfirst\n", "boat"), "first");
}
