use super::*;
use crate::tests::brinewick;

fn reports(text: &str, scene: bool) -> Vec<String> {
    let world = brinewick();
    let state = State::read(&serde_json::json!({"location": "@lantern_quay", "seen": ["@lantern_quay"]}), &world);
    let stage = Presence { world: &world, before: &state, after: &state, about: &[], told: "" };
    stage.hits(text, scene).into_iter().map(|hit| hit.report).collect()
}

#[test]
fn only_who_is_here_is_on_the_stage() {
    for (text, report) in [
        ("Osric Vane leans on the rail.", "Osric Vane is not here"),
        ("The keeper leans on the rail.", "Osric Vane is not here"),
        ("Wren laughs.", "it names somebody who is not here"),
        ("The widow waits.", "it names somebody who is not here"),
        ("Maud's hand is on the rail.", "Maud Orrin is not here"),
        ("The bell rope lies there.", "it names a thing that has not been met"),
        ("Beyond lies the Drowned Crypt.", "it names a place that is not known"),
        ("Two Plates is done.", "it names a quest that has not begun"),
    ] {
        assert_eq!(reports(text, false), [report], "{text}");
    }
    for text in [
        "Jun Tallow leans on the rail.",
        "Jun speaks of the keeper, and of nobody else.",
        "\"The reeve counts salt,\" says Jun.",
        "A child runs past, and an old widow scolds it.",
        "The Merrow did not come home.",
        "The Salt Market is a murmur behind the houses.",
        "The rope is frayed, and the key to it all is patience.",
        "It is half past eight by the chapel clock.",
    ] {
        assert_eq!(reports(text, false), Vec::<String>::new(), "{text}");
    }
    assert_eq!(reports("The market is loud.", true), ["the Salt Market is not where the scene is"]);
    assert_eq!(
        reports("The tower over the roofs is dark.", true),
        Vec::<String>::new(),
        "a page of the quay tells of it"
    );
}
