use serde_json::json;

use super::*;
use crate::difference;

fn of(value: Value) -> Value {
    let Value::Object(body) = value else { panic!("an object") };
    normalised(&body)
}

fn request(cwd: &str, id: &str, date: &str, took: &str) -> Value {
    json!({"model": "m", "metadata": {"user_id": id}, "prompt_cache_key": id,
        "system": [{"type": "text", "text": format!("x-anthropic-billing-header: {id}")},
                   {"type": "text", "text": format!("Working directory: {cwd}\nToday's date: {date}")}],
        "messages": [{"role": "user", "content": format!("read {cwd}/notes.txt")},
            {"role": "assistant", "content": [{"type": "tool_use", "id": format!("toolu_{id}"), "name": "Read", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("toolu_{id}"),
                "content": format!("done in {took}")}]}]})
}

#[test]
fn two_runs_of_a_program_are_the_same_request() {
    let first = request("/home/a/work", "01AbCdEf", "2026-11-17", "12ms");
    let second = request("/srv/other place".split(' ').next().unwrap(), "99XyZ123", "2027-01-02", "3.5 s");
    assert_eq!(of(first.clone()), of(second));
    let other = request("/home/a/work", "01AbCdEf", "2026-11-17", "12ms");
    let mut other = of(other);
    other["messages"][0]["content"] = "read <cwd>/other.txt".into();
    let said = difference(&of(first), &other).unwrap();
    assert!(said.starts_with("messages[0].content differs at character 11"), "{said}");
}

#[test]
fn a_difference_names_its_place() {
    for (one, two, wanted) in [
        (json!({"a": 1}), json!({"a": 1}), None),
        (json!({"a": 1}), json!({"a": 2}), Some("a was 1, now it is 2")),
        (json!({"a": [1]}), json!({"a": [1, 2]}), Some("a has 2 entries, 1 were recorded; the first new one is 2")),
        (json!({"a": [{"b": "x"}]}), json!({"a": [{}]}), Some("a[0] has no `b`, which was \"x\"")),
        (json!({}), json!({"tools": []}), Some("the request has a new `tools`: []")),
        (json!({"a": "one"}), json!({"a": "ont"}), Some("a differs at character 2: recorded \"one\", now \"ont\"")),
    ] {
        assert_eq!(difference(&one, &two).as_deref(), wanted);
    }
}

#[test]
fn an_id_goes_with_the_kind_that_stands_before_it() {
    let body = json!({"input": [{"id": "msg_0198c2f4-6c88-5826-805b-ad0289a434f2", "text": "0198c2f4-6c88-5826-805b-ad0289a434f2"}]});
    let normal = normalised(body.as_object().unwrap());
    assert_eq!(normal, json!({"input": [{"id": "<id>", "text": "<id>"}]}));
}
