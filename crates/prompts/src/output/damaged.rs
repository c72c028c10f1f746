//! Thirty answers that a model damaged, each pretty and compact: all sixty are decided, and nothing is changed in silence.

use serde_json::{Value, json};

use super::Output;
use crate::manifest::{Container, Shape};

fn report() -> Output {
    let schema = json!({"type": "object", "required": ["mood", "score", "parts", "done"], "properties": {
        "mood": {"enum": ["happy", "angry", "very_sad"]}, "score": {"type": "number"},
        "pages": {"type": ["integer", "null"]}, "done": {"type": "boolean"},
        "parts": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "weight": {"type": "integer"}}}},
    }});
    Output::new(&Shape { name: "Report".into(), schema, container: Container::Object, allow_extra_keys: false })
        .unwrap()
}

fn truth() -> Value {
    json!({"mood": "happy", "score": 0.5, "pages": 12, "parts": [{"name": "a", "weight": 1}, {"name": "b"}], "done": false})
}

const PRETTY: &str = r#"{
  "mood": "happy",
  "score": 0.5,
  "pages": 12,
  "parts": [
    {
      "name": "a",
      "weight": 1
    },
    {
      "name": "b"
    }
  ],
  "done": false
}"#;
const COMPACT: &str =
    r#"{"mood":"happy","score":0.5,"pages":12,"parts":[{"name":"a","weight":1},{"name":"b"}],"done":false}"#;

/// How an answer must be decided.
enum Decided {
    /// As it is.
    Sound,
    /// Read, with repairs.
    Mended,
    /// Refused, with this field and this in the sentence.
    Refused(&'static str, &'static str),
}
use Decided::{Mended, Refused, Sound};

type Damage = fn(&str) -> String;

fn rows() -> Vec<(&'static str, Damage, Decided)> {
    vec![
        ("intact", |s| s.to_owned(), Sound),
        ("fence", |s| format!("```json\n{s}\n```"), Sound),
        ("prose around", |s| format!("Here is [1] my answer:\n\n{s}\n\nI hope it helps {{you}}."), Sound),
        ("thought before", |s| format!("<think>maybe {{\"mood\": \"angry\"}}</think>\n{s}"), Sound),
        ("bare keys", |s| s.replace("\"mood\"", "mood").replace("\"name\"", "name"), Mended),
        ("line comment", |s| s.replacen("12,", "12, // about\n", 1), Mended),
        ("block comment", |s| s.replacen("12,", "12, /* {about} */", 1), Mended),
        ("single quotes", |s| s.replace('"', "'"), Mended),
        ("single quotes and an apostrophe", |s| s.replace('"', "'").replace("'b'", "'it's b'"), Mended),
        ("typographic quotes", |s| s.replace("\"happy\"", "“happy”"), Mended),
        ("Python literals", |s| s.replace("false", "False").replace("12", "None"), Mended),
        ("trailing commas", |s| s.replace("false", "false,").replace("\"b\"", "\"b\","), Mended),
        ("missing comma", |s| s.replace("\"happy\",", "\"happy\"").replace("12,", "12"), Mended),
        ("missing comma between records", |s| s.replace("},", "}"), Mended),
        (
            "cut after a field",
            |s| s[..s.find("\"weight\"").unwrap()].to_owned(),
            Refused("", "missing required field: `done`"),
        ),
        ("cut before the last bracket", |s| s.replace('\n', " ").trim_end_matches(['}', ' ']).to_owned() + " ", Mended),
        ("cut in a string", |s| s[..s.find("appy").unwrap() + 2].to_owned(), Refused("mood", "ends in the middle")),
        ("cut in a number", |s| s[..s.find("0.5").unwrap() + 2].to_owned(), Refused("score", "ends in the middle")),
        ("wrapped in one key", |s| format!("{{\"result\": {s}}}"), Mended),
        ("no for a bool", |s| s.replace("false", "\"no\""), Mended),
        ("a number in quotes", |s| s.replace("12", "\"12\"").replace("0.5", "\"0.5\""), Mended),
        ("a number in groups", |s| s.replace("0.5", "\"1,234.5\""), Mended),
        ("fifty per cent", |s| s.replace("0.5", "50%"), Refused("score", "50 or 50 / 100")),
        (
            "an enum in a sentence",
            |s| s.replace("\"happy\"", "\"She is not happy.\""),
            Refused("mood", "is none of happy"),
        ),
        ("an enum in capitals", |s| s.replace("\"happy\"", "\"Happy.\""), Mended),
        ("one item for a list", |s| one_part(s), Mended),
        ("a line break in a string", |s| s.replace("\"a\"", "\"a\nb\""), Mended),
        ("quotes in a string", |s| s.replace("\"a\"", "\"the \"a\" part\""), Mended),
        ("a fraction for a whole number", |s| s.replace("12", "12.5"), Refused("pages", "expected integer")),
        (
            "YAML",
            |_| "mood: happy\nscore: 0.5\nparts: []\ndone: false".to_owned(),
            Refused("", "expected top-level JSON object"),
        ),
    ]
}

fn one_part(text: &str) -> String {
    let (start, end) = (text.find('[').unwrap(), text.find(']').unwrap());
    format!("{}{{\"name\":\"a\"}}{}", &text[..start], &text[end + 1..])
}

/// The value that a row means, where it is not the truth.
fn meant(name: &str) -> Value {
    let mut value = truth();
    match name {
        "Python literals" => value["pages"] = Value::Null,
        "a number in groups" => value["score"] = json!(1234.5),
        "one item for a list" => value["parts"] = json!([{"name": "a"}]),
        "a line break in a string" => value["parts"][0]["name"] = json!("a\nb"),
        "quotes in a string" => value["parts"][0]["name"] = json!("the \"a\" part"),
        "single quotes and an apostrophe" => value["parts"][1]["name"] = json!("it's b"),
        _ => (),
    }
    value
}

#[test]
fn sixty_of_sixty_damaged_answers_are_decided() {
    let output = report();
    let mut wrong = Vec::new();
    let rows = rows();
    assert_eq!(rows.len(), 30);
    for (name, damage, decided) in &rows {
        for (form, text) in [("pretty", PRETTY), ("compact", COMPACT)] {
            let reply = damage(text);
            let (said, right) = match (output.parse(&reply), decided) {
                (Ok(parsed), Sound) => (
                    format!("{} {:?}", parsed.value, parsed.repairs),
                    parsed.value == meant(name) && parsed.repairs.is_empty(),
                ),
                (Ok(parsed), Mended) => (
                    format!("{} {:?}", parsed.value, parsed.repairs),
                    parsed.value == meant(name) && !parsed.repairs.is_empty(),
                ),
                (Err(unparsed), Refused(path, words)) => {
                    (format!("! {unparsed}"), unparsed.path == *path && unparsed.message.contains(words))
                }
                (Ok(parsed), Refused(..)) => (format!("{} {:?}", parsed.value, parsed.repairs), false),
                (Err(unparsed), _) => (format!("! {unparsed}"), false),
            };
            if !right {
                wrong.push(format!("{name}, {form}: {said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of 60 are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

proptest::proptest! {
    /// Whatever one byte does to an answer: it is refused, or read with a repair, or it is JSON of another value.
    #[test]
    fn one_spoilt_byte_changes_nothing_in_silence(at in 0usize..COMPACT.len(), byte in 0x20u8..0x7f) {
        let mut bytes = COMPACT.as_bytes().to_vec();
        bytes[at] = byte;
        let reply = String::from_utf8(bytes).unwrap();
        if let Ok(parsed) = report().parse(&reply) {
            let sound = serde_json::from_str::<Value>(&reply).is_ok_and(|value| value == parsed.value);
            let told = sound || !parsed.repairs.is_empty();
            proptest::prop_assert!(told, "{}", reply);
        }
    }
}
