use serde::Deserialize;
use serde_json::json;

use super::*;

fn title(container: Container, allow_extra_keys: bool) -> Output {
    let schema = json!({"type": "object", "required": ["title"], "properties": {
        "title": {"type": "string"}, "score": {"type": ["integer", "null"]}, "done": {"type": "boolean"},
        "inner": {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "integer"}}}},
    }});
    Output::new(&Shape { name: "Title".to_owned(), schema, container, allow_extra_keys }).unwrap()
}

fn said(output: &Output, reply: &str) -> String {
    match output.parse(reply) {
        Ok(parsed) if parsed.repairs.is_empty() => parsed.value.to_string(),
        Ok(parsed) => {
            let repairs: Vec<String> = parsed.repairs.iter().map(|repair| format!("; {repair}")).collect();
            format!("{}{}", parsed.value, repairs.concat())
        }
        Err(unparsed) => {
            assert_eq!(unparsed.raw, reply);
            format!("! {unparsed}")
        }
    }
}

const T: &str = r#"{"title":"x"}"#;

#[test]
fn an_object_is_found_in_order_of_trust() {
    let rows: &[(&str, &str, &str)] = &[
        (
            "76 fence after prose",
            "Here:\n```json\n{\"title\":\"x\",\"score\":\"42\",\"done\":\"true\"}\n```\n",
            r#"{"title":"x","score":42,"done":true}; score: `42` was read as 42; done: `true` was read as true"#,
        ),
        ("77 extra key", r#"{"title":"x","more":1}"#, r#"! extra keys not permitted: ["more"]"#),
        ("77 extra key below", r#"{"title":"x","inner":{"more":1}}"#, r#"! inner: extra keys not permitted: ["more"]"#),
        ("81 missing", r#"{"score":1}"#, "! missing required field: `title`"),
        ("82 bad fence and nothing else", "```json\n{oops\n```", "! missing required field: `title`"),
        ("82 bad fence and something better", "```json\n{oops\n```\n{\"title\":\"x\"}", T),
        ("84 brackets before", r#"[oops]{"title":"x"}"#, T),
        ("85 nothing", "no json here", "! no JSON object or array found in the reply"),
        ("85 white space", "  \n ", "! no JSON object or array found in the reply"),
        ("89 label in capitals", "```JSON\n{\"title\":\"x\"}\n```", T),
        ("89 no label", "so:\n```\n{\"title\":\"x\"}\n```", T),
        ("89 one line", "so: ```json {\"title\":\"x\"}```", T),
        ("90 backticks in a string", "```json\n{\"title\":\"use ``` here\"}\n```", r#"{"title":"use ``` here"}"#),
        ("91 citation before", r#"See [1] for {"title":"x"}"#, T),
        (
            "92 fraction",
            r#"{"title":"x","score":1.9}"#,
            "! score: expected integer or null, not a number with a fraction",
        ),
        ("92 truth for a number", r#"{"title":"x","score":true}"#, "! score: expected integer or null, not boolean"),
        ("a number for a text", r#"{"title":5}"#, "! title: expected string, not integer"),
        ("null for required", r#"{"title":null}"#, "! title: value cannot be null"),
        ("null for optional", r#"{"title":"x","score":null}"#, r#"{"title":"x","score":null}"#),
        ("path", r#"{"title":"x","inner":{"list":[1,"y"]}}"#, "! inner.list[1]: expected integer, not string"),
        ("key twice", r#"{"title":"x","title":"y"}"#, "! the key `title` stands twice at line 1 column 20"),
        ("array instead", r#"[{"title":"x"}]"#, "! expected top-level JSON object"),
        ("second fence", "```json\n{\"a\":1}\n```\nor\n```json\n{\"title\":\"x\"}\n```", T),
        ("fence before message", "```rust\nfn main() {}\n```\n```json\n{\"title\":\"x\"}\n```", T),
        ("thought", "<think>\n{\"title\":\"draft\"}\n</think>\n{\"title\":\"x\"}", T),
        ("thought never opened", "maybe {\"title\":\"draft\"}\n</think>\n{\"title\":\"x\"}", T),
        ("thought never closed", "<think>\n{\"title\":\"draft\"}", "! no JSON object or array found in the reply"),
        ("thought in a string", r#"{"title":"<think>x</think>"}"#, r#"{"title":"<think>x</think>"}"#),
        ("braces in a string", r#"so {"title":"}{"} end"#, r#"{"title":"}{"}"#),
        ("fence cut off", "```json\n{\"title\":\"x\"}", T),
        (
            "not a part of a wrong one",
            r#"see {"result":{"title":"x"},"more":1}"#,
            r#"! extra keys not permitted: ["result","more"]"#,
        ),
        ("not a part of a broken one", r#"see {"result":{"title":"x"},"more":}"#, "! more: `}` does not begin a value"),
        ("under one key", r#"{"result":{"title":"x"}}"#, r#"{"title":"x"}; the answer stood under the key `result`"#),
        ("a key in capitals", r#"{"Title":"x"}"#, r#"{"title":"x"}; title: the key was written `Title`"#),
    ];
    let output = title(Container::Object, false);
    for (name, reply, expected) in rows {
        assert_eq!(said(&output, reply), *expected, "{name}");
    }
    assert_eq!(said(&title(Container::Object, true), r#"{"title":"x","more":1}"#), r#"{"title":"x","more":1}"#);
}

#[test]
fn an_array_is_bare_or_stands_under_items() {
    let rows: &[(&str, &str, &str)] = &[
        ("79 bare", r#"[{"title":"x"}]"#, r#"[{"title":"x"}]"#),
        ("79 wrapped", r#"{"items":[{"title":"x"}],"note":1}"#, r#"[{"title":"x"}]"#),
        ("79 another key", r#"{"rows":[]}"#, "! expected top-level JSON array"),
        ("79 not a list", r#"{"items":3}"#, "! expected top-level JSON array"),
        ("80 element", r#"[1]"#, "! [0]: array item at index 0 is not an object"),
        ("81 element lacks a field", r#"[{"title":"x"},{}]"#, "! [1]: missing required field: `title`"),
        (
            "amended within",
            r#"[{"title":"x","score":"3"}]"#,
            r#"[{"title":"x","score":3}]; [0].score: `3` was read as 3"#,
        ),
    ];
    let output = title(Container::Array, false);
    for (name, reply, expected) in rows {
        assert_eq!(said(&output, reply), *expected, "{name}");
    }
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Roll {
    difficulty: u8,
    why: Option<String>,
}

#[test]
fn a_rust_type_is_read_from_a_reply() {
    let roll: Roll = parse("Rolling.\n```json\n{\"difficulty\": 12.0, \"why\": null}\n```").unwrap();
    assert_eq!(roll, Roll { difficulty: 12, why: None });
    assert_eq!(parse_list::<Roll>(r#"{"items":[{"difficulty":1}]}"#).unwrap(), [Roll { difficulty: 1, why: None }]);
    let wrong = parse::<Roll>("{\"difficulty\": 300}").unwrap_err();
    assert_eq!((wrong.path.as_str(), wrong.output_type.as_str()), ("difficulty", "Roll"));
    assert_eq!(wrong.tried.len(), 1);
}

#[test]
fn every_candidate_that_was_tried_is_listed() {
    let wrong = title(Container::Object, false).parse("```json\n{}\n```\nor [1] or {\"score\":2}").unwrap_err();
    let tried: Vec<(&str, usize)> = wrong.tried.iter().map(|one| (one.from, one.start)).collect();
    assert_eq!(tried, [("fence", 8), ("text", 18), ("text", 25)]);
}

#[test]
fn a_provider_gets_an_object_under_a_name_that_it_takes() {
    let output = title(Container::Array, false);
    let format = output.provider_format();
    assert_eq!(format["json_schema"]["name"], "Title_schema");
    assert_eq!(format["json_schema"]["schema"]["required"], json!(["items"]));
    let odd = Shape {
        name: " ö ".to_owned(),
        schema: json!({"type": "object"}),
        container: Container::Object,
        allow_extra_keys: false,
    };
    assert_eq!(Output::new(&odd).unwrap().provider_format()["json_schema"]["name"], "prompt_schema");
}

#[test]
fn an_output_type_that_is_no_record_is_refused() {
    for schema in [json!({"type": "integer"}), json!(7), json!({})] {
        let shape = Shape { name: "N".to_owned(), schema, container: Container::Object, allow_extra_keys: false };
        assert!(Output::new(&shape).is_err());
    }
}

proptest::proptest! {
    #[test]
    fn no_reply_makes_it_panic(reply in "([`{}\\[\\]\"\\\\:,a1 \n<>/]|think|json|```){0,60}") {
        let _ = title(Container::Object, false).parse(&reply);
        let _ = title(Container::Array, false).parse(&reply);
    }
}

#[test]
fn a_hostile_reply_costs_a_bounded_amount_of_work() {
    let output = title(Container::Object, false);
    assert!(output.parse(&"{\"a\":\"".repeat(100_000)).is_err());
    assert!(output.parse(&"[".repeat(1_000_000)).is_err());
    assert!(output.parse(&" ".repeat(REPLY_BYTES + 1)).is_err());
    assert!(output.parse(&"<think></think>\n```\n```\n".repeat(40_000)).is_err());
    assert!(output.parse(&"{\"a\":[1,".repeat(400_000)).is_err());
}
