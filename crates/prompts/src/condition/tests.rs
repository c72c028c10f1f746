use serde_json::json;

use super::*;

#[test]
fn a_condition_looks_at_params_and_session() {
    let params = json!({"on": true, "off": false, "zero": 0, "word": "x", "blank": "  ", "list": [], "n": null});
    let session = json!({"mode": "fast", "quiet": false}).as_object().unwrap().clone();
    let rows = [
        (json!(true), true),
        (json!(false), false),
        (json!({"param": "on"}), true),
        (json!({"param": "off"}), false),
        (json!({"param": "zero"}), false),
        (json!({"param": "word"}), true),
        (json!({"param": "n"}), false),
        (json!({"param": "nowhere"}), false),
        (json!({"nonempty": "blank"}), false),
        (json!({"nonempty": "word"}), true),
        (json!({"nonempty": "list"}), false),
        (json!({"eq": {"param": "word", "value": "x"}}), true),
        (json!({"eq": {"param": "word", "value": 1}}), false),
        (json!({"session": "mode"}), true),
        (json!({"session": "quiet"}), false),
        (json!({"session_eq": {"key": "mode", "value": "fast"}}), true),
        (json!({"all": [{"param": "on"}, {"not": {"param": "off"}}]}), true),
        (json!({"any": [false, {"param": "off"}]}), false),
    ];
    for (written, expected) in rows {
        let condition: Condition = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(condition.holds(Some(&params), &session), expected, "{written}");
    }
}

#[test]
fn a_field_that_is_not_there_is_a_stranger() {
    let record = Record::new("R", json!({"type": "object", "properties": {"on": {}}})).unwrap();
    let written = json!({"all": [{"param": "on"}, {"any": [{"nonempty": "off"}]}]});
    let condition: Condition = serde_json::from_value(written).unwrap();
    assert_eq!(condition.stranger(Some(&record)), Some("off"));
    assert_eq!(condition.stranger(None), Some("on"));
}

/// The page of the format shows one of each kind.
#[test]
fn every_condition_of_the_page_is_read() {
    let page = include_str!("../../../../global-library/topics/prompt-format.md");
    let block = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let conditions = block.lines().map(|line| serde_json::from_str::<Condition>(line).expect(line));
    assert_eq!(conditions.count(), 8);
}
