use serde_json::json;

use super::*;

fn check(text: &str, expected: &str) {
    let said = match read(text) {
        Ok(mended) => {
            let repairs: Vec<String> = mended.repairs.iter().map(|repair| format!("; {repair}")).collect();
            format!("{}{}", mended.value, repairs.concat())
        }
        Err(unreadable) => format!("! {}: {}", unreadable.path, unreadable.message),
    };
    assert_eq!(said, expected, "{text}");
}

#[test]
fn sound_json_needs_no_repair() {
    for value in [json!({}), json!([]), json!({"a": [1, -2.5e3, "x\n\"\\é😀", null, true, {"b": {}}]})] {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            assert_eq!(read(&text), Ok(Mended { value: value.clone(), repairs: vec![], length: text.len() }), "{text}");
        }
    }
}

#[test]
fn each_repair_is_told_with_its_path() {
    check("{a:1}", r#"{"a":1}; a key without quotes"#);
    check(r#"{"a":[1 2]}"#, r#"{"a":[1,2]}; a[0]: a missing comma after this value"#);
    check(r#"{"a":{"b":'x'}}"#, r#"{"a":{"b":"x"}}; a.b: a string in other quotes"#);
    check(
        r#"{"a":+5,"b":.5,"c":5.}"#,
        r#"{"a":5,"b":0.5,"c":5}; a: `+5` was read as 5; b: `.5` was read as 0.5; c: `5.` was read as 5"#,
    );
    check(r#"{"a":True,}"#, r#"{"a":true}; a: `True` was read as true; a: a comma too many"#);
    check(r#"{"a":1,,"b":2}"#, r#"{"a":1,"b":2}; a comma too many"#);
    check("{\"a\":1 # one\n}", r#"{"a":1}; a: a comment"#);
    check(r#"{"a":"\d \u00e9 \ud83d\ude00"}"#, r#"{"a":"\\d é 😀"}; a: a backslash that escapes nothing"#);
    check(
        "{a: red apple, b: 1}",
        r#"{"a":"red apple","b":1}; a key without quotes; a: `red apple` had no quotes; a key without quotes"#,
    );
    check(r#"{"a":"x""b":1}"#, r#"{"a":"x","b":1}; a: a missing comma after this value"#);
    check(r#"{"a":1,"b":"#, r#"{"a":1}; the reply ends after the beginning of a further field, which is left out"#);
}

#[test]
fn what_can_be_meant_in_two_ways_is_not_read() {
    check(r#"{"a":"cut"#, "! a: the reply ends in the middle of this value");
    check(r#"{"a":12"#, "! a: the reply ends in the middle of this value");
    check(r#"{"a":[1,...]}"#, "! a: `...` leaves something out");
    check(r#"{"a":NaN}"#, "! a: `NaN` is no value of JSON");
    check(r#"{"a":007}"#, "! a: `007` is no number");
    check(r#"{"a":[1}"#, "! a[0]: brackets close in the wrong order");
    check(r#"{"a":1,'a':2}"#, "! : the key `a` stands twice");
    check("{bad}", "! : after the key `bad` a colon is needed, not `}`");
    check("{a: see {b}}", "! a: `see` is neither a value nor a text in quotes");
    check(&"[".repeat(100), &format!("! {}: nested deeper than 64", "[0]".repeat(64)));
}

proptest::proptest! {
    #[test]
    fn any_text_has_an_answer(text in "([{}\\[\\]\"':,a1 .\\\\\n#/*“”é-]|true|None|//|\\\\u00|1,234.5){0,60}") {
        if let Ok(mended) = read(&format!("{{{text}")) {
            proptest::prop_assert!(mended.length <= text.len() + 1 && mended.repairs.len() <= MOST_REPAIRS);
        }
    }

    #[test]
    fn sound_json_is_read_as_it_is(keys in proptest::collection::vec("[a-z\"\\\\é\n ]{0,6}", 0..4), text in "\\PC{0,20}") {
        let value: Value = keys.into_iter().map(|key| (key, Value::from(text.clone()))).collect::<Map<_, _>>().into();
        let mended = read(&value.to_string()).unwrap();
        proptest::prop_assert_eq!(mended.value, value);
    }
}
