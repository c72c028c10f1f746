use schemars::JsonSchema;

use super::*;

/// A finding.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct Finding {
    /// Where it is.
    file: String,
    line: Option<u32>,
    inner: Option<Box<Finding>>,
    marks: Vec<Mark>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct Mark {
    weight: i64,
}

fn said(schema: &Value, value: Value) -> Vec<String> {
    complaints(&compile(schema).unwrap(), &value).iter().map(ToString::to_string).collect()
}

#[test]
fn a_type_becomes_a_schema_with_descriptions_nullable_optionals_and_no_extra_keys_at_any_depth() {
    let schema = of::<Finding>();
    assert_eq!(schema["description"], "A finding.");
    assert_eq!(schema["properties"]["file"]["description"], "Where it is.");
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["$defs"]["Mark"]["additionalProperties"], false);
    let good = json!({"file": "a", "line": null, "inner": null, "marks": [{"weight": 1}]});
    assert_eq!(said(&schema, good), Vec::<String>::new());
    let nested = json!({"file": "a", "marks": [], "inner": {"file": "b", "marks": [{"weight": 1, "x": 2}]}});
    assert_eq!(said(&schema, nested), [r#"inner.marks[0]: extra keys not permitted: ["x"]"#]);
}

#[test]
fn a_complaint_names_its_path_and_what_was_wanted() {
    let schema = of::<Finding>();
    let rows = [
        (json!({"marks": []}), "missing required field: `file`"),
        (json!({"file": null, "marks": []}), "file: value cannot be null"),
        (json!({"file": 3, "marks": []}), "file: expected string, not integer"),
        (
            json!({"file": "a", "marks": [{"weight": 1.9}]}),
            "marks[0].weight: expected integer, not a number with a fraction",
        ),
        (json!({"file": "a", "marks": [{"weight": true}]}), "marks[0].weight: expected integer, not boolean"),
    ];
    for (value, expected) in rows {
        assert_eq!(said(&schema, value), [expected]);
    }
}

#[test]
fn what_is_no_schema_is_said_to_be_none() {
    assert!(compile(&json!({"type": "peach"})).is_err());
    assert!(compile(&json!({"pattern": "(a"})).is_err());
    assert!(compile(&json!({"$ref": "https://example.org/x.json"})).is_err());
}
