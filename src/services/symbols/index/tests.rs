use serde_json::json;

use super::*;

fn index(symbols: &[(&str, &str, &str)]) -> Index {
    let mut index = Index::default();
    for (id, name, domain) in symbols {
        let written = json!({"id": id, "name": name, "symbol_domain": domain});
        index.put(&Symbol::read(&written).unwrap());
    }
    index
}

fn ids(index: &Index, query: &str, within: &Within) -> Vec<String> {
    index.search(query, 5, within).into_iter().map(|hit| hit.id).collect()
}

fn three() -> Index {
    index(&[("A", "trust repair", "root"), ("B", "drift detection", "root"), ("C", "repair of drift", "side")])
}

#[test]
fn the_nearest_comes_first() {
    assert_eq!(ids(&three(), "repairing trust", &Within::default()), ["A", "C"]);
    assert_eq!(ids(&three(), "elephants", &Within::default()), [""; 0]);
}

#[test]
fn a_symbol_without_a_macro_is_found_by_its_name() {
    assert_eq!(ids(&three(), "detection", &Within::default())[0], "B");
}

/// A word that somebody repeats does not beat the symbol whose name or macro is what was asked for.
#[test]
fn an_exact_name_or_macro_beats_a_repeated_word() {
    let mut index =
        index(&[("A", "the trust", "root"), ("B", "trust trust trust trust trust", "root"), ("C", "x", "r")]);
    index.put(&Symbol::read(&json!({"id":"D","name":"a way","macro":"look → see"})).unwrap());
    index.put(&Symbol::read(&json!({"id":"E","name":"look see look see look see"})).unwrap());
    assert_eq!(ids(&index, "The Trust", &Within::default())[0], "A");
    assert_eq!(ids(&index, "look → see", &Within::default())[0], "D");
    assert_eq!(ids(&index, "LOOK->SEE", &Within::default())[0], "D");
    assert_eq!(ids(&index, "X", &Within::default()), ["C"]);
}

#[test]
fn a_search_can_be_narrowed_to_a_domain() {
    assert_eq!(ids(&three(), "repair", &Within { domain: Some("side"), tag: None }), ["C"]);
    assert_eq!(ids(&three(), "repair", &Within { domain: None, tag: Some("none") }), [""; 0]);
}

#[test]
fn what_is_removed_is_not_found_and_its_place_is_used_again() {
    let mut index = three();
    assert!(index.remove("A"));
    assert!(!index.remove("A"));
    assert_eq!(ids(&index, "trust", &Within::default()), [""; 0]);
    index.put(&Symbol::read(&json!({"id":"D","name":"trust"})).unwrap());
    assert_eq!((index.len(), index.entries.len()), (3, 3));
    assert_eq!(ids(&index, "trust", &Within::default()), ["D"]);
}

#[test]
fn an_index_changed_in_place_answers_as_one_made_anew() {
    let mut changed = three();
    changed.put(&Symbol::read(&json!({"id":"B","name":"banana bread"})).unwrap());
    changed.remove("C");
    changed.put(&Symbol::read(&json!({"id":"B","name":"drift detection","symbol_domain":"root"})).unwrap());
    changed.put(&Symbol::read(&json!({"id":"C","name":"repair of drift","symbol_domain":"side"})).unwrap());
    for query in ["repair", "drift", "banana", "detect the drift"] {
        let all = Within::default();
        assert_eq!(changed.search(query, 5, &all), three().search(query, 5, &all), "{query}");
    }
}

#[test]
fn an_empty_index_answers_nothing() {
    assert!(Index::default().search("x", 5, &Within::default()).is_empty());
    assert!(three().search("", 5, &Within::default()).is_empty());
}
