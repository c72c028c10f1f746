use super::*;

fn fill(schema: Value, instance: Value, text: &str) -> String {
    let record = Record::new("R", schema).unwrap();
    let instance = record.completed(instance.as_object().unwrap());
    let template = Template::parse(text, Dialect::Plain).unwrap();
    template.fill(&record.values(&instance)).unwrap_or_else(|lack| format!("'{}' {}", lack.field, lack.why))
}

#[test]
fn a_value_becomes_text_only_where_its_text_is_certain() {
    let schema = json!({"type": "object", "properties": {
        "s": {"type": "string"}, "n": {"type": "number"}, "b": {"type": "boolean"},
        "j": {"type": "array", "x-as": "json"}, "l": {"type": "array", "x-as": "bullets"},
        "o": {"type": ["string", "null"], "x-null": "omit"}, "d": {"type": "integer", "default": 7},
        "h": {"type": "string", "x-indent": "hang"}, "a": {}
    }});
    let given = json!({"s": "x", "n": 1.0, "b": true, "j": [1], "l": ["p", 2], "o": null, "h": "1\n2", "a": [1]});
    let rows = [
        ("$s $n $b $d", "x 1.0 true 7"),
        ("[$o]", "[]"),
        ("$j", "[\n  1\n]"),
        ("$l", "- p\n- 2"),
        ("a\n  $h", "a\n  1\n  2"),
        ("$a", "'a' is array, which has no text; say \"x-as\" in its schema"),
        ("$zz", "'zz' is not a field of the record"),
    ];
    for (text, expected) in rows {
        assert_eq!(fill(schema.clone(), given.clone(), text), expected, "{text}");
    }
    assert_eq!(fill(schema, json!({}), "$s"), "'s' has no value");
}

#[test]
fn only_an_object_is_a_record() {
    for schema in [json!({"type": "integer"}), json!({}), json!(3), json!({"type": "object", "properties": 3})] {
        assert!(Record::new("R", schema.clone()).is_err(), "{schema}");
    }
}
