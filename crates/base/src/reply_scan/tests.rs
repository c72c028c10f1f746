use super::*;

const LIMITS: ScanLimits = ScanLimits { bytes: 1 << 16, depth: 64, values: 256 };

/// The values of a text, each as its place and its words.
fn values(text: &str) -> Vec<String> {
    let one = |value: &FoundValue| {
        let place = match value.place {
            ValuePlace::Text => "text".to_owned(),
            ValuePlace::Fence(number) => format!("fence {number}"),
            ValuePlace::CodeSpan => "span".to_owned(),
        };
        let broken = value.broken.map_or(String::new(), |broken| format!(" {broken:?}"));
        format!("{place}{broken}: {}", &text[value.span.clone()])
    };
    ReplyScan::of(text, LIMITS).values.iter().map(one).collect()
}

#[test]
fn a_value_ends_at_its_own_bracket() {
    for (text, expected) in [
        (r#"{"a":"}"} tail"#, Ok(9)),
        (r#"{"a":"\"}"} x"#, Ok(11)),
        (r#"{"a":[{"b":1}]}}"#, Ok(15)),
        ("[1] x", Ok(3)),
        ("{", Err(Broken::Unclosed)),
        ("{[}]", Err(Broken::Crossed)),
        ("{\"a", Err(Broken::Unclosed)),
    ] {
        assert_eq!(value_end(text, LIMITS), expected, "{text}");
    }
    assert_eq!(value_end(&"{\"a\":".repeat(100), LIMITS), Err(Broken::TooDeep(64)));
    assert_eq!(value_end(&format!("{{\"{}", "a".repeat(1 << 17)), LIMITS), Err(Broken::TooLarge(1 << 16)));
}

#[test]
fn values_are_found_in_text_fences_and_spans() {
    assert_eq!(values(r#"so {"a":1} and [{"b":2}] end"#), [r#"text: {"a":1}"#, r#"text: [{"b":2}]"#]);
    assert_eq!(values("x\n```json\n{\"a\":1}\n```\n{\"b\":2}"), [r#"fence 0: {"a":1}"#, r#"text: {"b":2}"#]);
    assert_eq!(values("`{` then `{\"a\":1}` {\"b\":2}").last().unwrap(), r#"text: {"b":2}"#);
    assert_eq!(values("```json {\"a\":1}```"), [r#"span: {"a":1}"#]);
    assert_eq!(values("a ` lone {\"a\":1}"), [r#"text: {"a":1}"#]);
    assert_eq!(values(r#"see [1] and [x] {"a":"`"} `"#), ["text: [1]", r#"text: {"a":"`"}"#]);
    assert_eq!(values(r#"see [1 and {"a":1}"#), [r#"text: {"a":1}"#]);
}

#[test]
fn nothing_is_found_inside_something_broken() {
    assert_eq!(values(r#"{"a": {"b":1}"#), [r#"text Unclosed: {"a": {"b":1}"#]);
    assert_eq!(values(r#"[{"b":1},"#), [r#"text Unclosed: [{"b":1},"#]);
    assert_eq!(values(r#"{"a":[1} {"b":1}"#), [r#"text Crossed: {"a":[1} {"b":1}"#]);
    let fence = values("{\"a\": \n```\n{\"b\": {\"c\":1}\n```\n{\"d\":1}");
    assert_eq!(
        fence,
        ["text Unclosed: {\"a\": \n", "fence 0 Unclosed: {\"b\": {\"c\":1}\n", "text: {\"d\":1}"],
        "a fence bounds both"
    );
}

#[test]
#[allow(clippy::single_range_in_vec_init)] // ranges are what is found
fn thoughts_hold_nothing_and_may_lack_an_end_or_a_beginning() {
    for (text, expected) in [
        ("a<think>b</think>c", vec![1..17]),
        ("<think>b", vec![0..8]),
        ("<think>a</think><thinking>b</thinking>", vec![0..16, 16..38]),
        ("{\"a\":1}\n</think>", vec![0..16]),
        ("a </think>{}", vec![]),
    ] {
        assert_eq!(ReplyScan::of(text, LIMITS).thoughts, expected, "{text}");
    }
    assert_eq!(values("<think>{\"a\":1}\n```\n{}\n```</think>{\"b\":1}"), [r#"text: {"b":1}"#]);
    assert_eq!(values(r#"{"a":"<think>x</think>"}"#), [r#"text: {"a":"<think>x</think>"}"#]);
}

#[test]
fn a_hostile_text_costs_no_more_than_a_few_looks() {
    for unit in ["{", "[", "`", "{}", "[]", "`x``x", "```\n", "```x", "<think>", "{\n```\n```\n", "[ ", "` `` ``` "] {
        let text = unit.repeat((1 << 20) / unit.len());
        assert!(ReplyScan::of(&text, LIMITS).values.len() <= LIMITS.values, "{unit}");
    }
    let distinct: String = (1..1400).map(|ticks| "`".repeat(ticks) + " ").collect();
    assert!(ReplyScan::of(&distinct, LIMITS).values.is_empty());
}

proptest::proptest! {
    #[test]
    fn any_text_has_parts_in_order(text in "([{}\\[\\]\"\\\\a⟐`\n ]|<think>|</think>|```|json){0,80}") {
        let scan = ReplyScan::of(&text, LIMITS);
        let mut last = 0;
        for value in &scan.values {
            proptest::prop_assert!(value.span.start >= last && value.span.end <= value.stretch_end);
            let bracketed = text.get(value.span.clone()).is_some_and(|own| own.starts_with(['{', '[']));
            proptest::prop_assert!(bracketed);
            last = value.span.end;
        }
        for span in scan.thoughts.iter().chain(scan.fences.iter().map(|fence| &fence.inner)) {
            proptest::prop_assert!(text.get(span.clone()).is_some());
        }
    }
}
