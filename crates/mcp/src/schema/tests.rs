use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn both_drafts_are_usable() {
    let old = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "definitions": {"a/b": {"type": "string"}}, "properties": {"x": {"$ref": "#/definitions/a~1b"}}});
    let wanted = json!({
        "type": "object", "properties": {"x": {"$ref": "#/$defs/a~1b"}}, "$defs": {"a/b": {"type": "string"}}});
    assert_eq!(usable(&old).unwrap(), wanted);
    assert_eq!(usable(&wanted).unwrap(), wanted);
}

#[test]
fn a_schema_that_refers_to_itself_stays_whole() {
    let given = json!({"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"$ref": "#/properties/a"}, "c": {"type": "array", "items": {"$ref": "#"}}}});
    let got = usable(&given).unwrap();
    assert_eq!(got["$ref"], "#/$defs/self");
    assert_eq!(got["$defs"]["self"]["properties"]["b"]["$ref"], "#/$defs/self/properties/a");
    assert_eq!(got["$defs"]["self"]["properties"]["c"]["items"]["$ref"], "#/$defs/self");
}

#[test]
fn what_cannot_be_used_says_why() {
    let deep = (0..60).fold(json!({}), |inner, _| json!({"items": inner}));
    for (schema, why) in [
        (json!("x"), "it is not an object"),
        (json!({"$ref": "http://evil.example/s"}), "it refers to `http://evil.example/s`, which is not part of it"),
        (json!({"$ref": "#/$defs/none"}), "it refers to `#/$defs/none`, which is not part of it"),
        (json!({"properties": {"a\n## b": {}}}), "it has the key `a\u{fffd}## b`"),
        (deep, "it is nested more than 48 deep"),
        (json!({"enum": ["x".repeat(LARGEST)]}), "it has 65549 bytes, and the most is 65536"),
    ] {
        assert_eq!(usable(&schema).unwrap_err(), why);
    }
}

#[test]
fn descriptions_are_one_harmless_line_and_arguments_may_be_called_so() {
    let given =
        json!({"properties": {"description": {"description": "a\u{1b}[1m\nb </said>"}, "title": {"title": "x\ny"}}});
    let got = usable(&given).unwrap();
    assert_eq!(got["properties"]["description"]["description"], "a b &lt;/said>");
    assert_eq!(got["properties"]["title"]["title"], "x y");
}

proptest! {
    #[test]
    fn any_json_is_refused_or_usable(text in r##"\{("(\$ref|\$defs|definitions|properties|items|a)":("#|#/a|#/\$defs/a|x"|\{("a":(\{\}|1|\{"\$ref":"#"\}))?\}|\[\]|true),){0,4}"z":1\}"##) {
        if let Ok(value) = serde_json::from_str::<Value>(&text) && let Ok(schema) = usable(&value) {
            prop_assert!(dangling(&schema, &schema).is_none());
        }
    }
}
