use serde_json::json;

use super::*;

fn symbol(id: &str, links: &str) -> Symbol {
    let (patterns, lnk) = links.split_once('+').unwrap_or((links, ""));
    let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    Symbol::read(&json!({"id": id, "linked_patterns": list(patterns), "lnk": list(lnk)})).unwrap()
}

fn check(links: &[(&str, &str)], depth: usize, room: usize, expected: &str) {
    let all: Vec<Symbol> = links.iter().map(|(id, links)| symbol(id, links)).collect();
    let mut walk = Walk::new(&all[..1], depth, room);
    while !walk.wanted().is_empty() {
        let found = walk.wanted().iter().map(|id| all.iter().find(|symbol| symbol.id == *id).cloned()).collect();
        walk.found(found);
    }
    let walked = walk.end();
    let ids: Vec<&str> = walked.symbols.iter().map(|symbol| symbol.id.as_str()).collect();
    let cut = if walked.cut { ", cut" } else { "" };
    assert_eq!(format!("{}; dangling {}{cut}", ids.join(" "), walked.dangling.join(" ")), expected);
}

#[test]
fn depth_counts_links_from_the_root() {
    let chain = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "")];
    check(&chain, 0, 9, "; dangling ");
    check(&chain, 1, 9, "b; dangling ");
    check(&chain, 2, 9, "b c; dangling ");
    check(&chain, 9, 9, "b c d; dangling ");
}

#[test]
fn a_circle_is_walked_once() {
    check(&[("a", "b a"), ("b", "c"), ("c", "a b")], 50, 99, "b c; dangling ");
}

#[test]
fn both_spellings_are_walked_and_dangling_links_are_named() {
    check(&[("a", "b + c gone"), ("b", "lost"), ("c", "gone")], 3, 99, "b c; dangling gone lost");
}

#[test]
fn a_walk_stops_when_there_is_no_room() {
    check(&[("a", "b c d"), ("b", ""), ("c", ""), ("d", "")], 3, 2, "b c; dangling , cut");
}
