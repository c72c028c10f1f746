use super::*;

#[test]
fn an_object_ends_at_its_own_brace() {
    for (text, expected) in [
        (r#"{"a":"}"} tail"#, Ok(9)),
        (r#"{"a":"\"}"} x"#, Ok(11)),
        (r#"{"a":[{"b":1}]}}"#, Ok(15)),
        ("{", Err(Broken::Unclosed)),
        ("{[}]", Err(Broken::Crossed)),
        ("{\"a", Err(Broken::Unclosed)),
    ] {
        assert_eq!(object_end(text, 0), expected, "{text}");
    }
    assert_eq!(object_end(&"{\"a\":".repeat(100), 0), Err(Broken::TooDeep));
    assert_eq!(object_end(&format!("{{\"{}", "a".repeat(LARGEST + 1)), 0), Err(Broken::TooLarge));
}

#[test]
#[allow(clippy::single_range_in_vec_init)] // ranges are what is found
fn thoughts_are_found_even_when_they_do_not_end() {
    for (text, expected) in [
        ("a<think>b</think>c", vec![1..17]),
        ("<think>b", vec![0..8]),
        ("<think>a</think><thinking>b</thinking>", vec![0..16, 16..38]),
        ("</think>{}", vec![]),
    ] {
        assert_eq!(thoughts(text), expected, "{text}");
    }
}

#[test]
fn stretches_that_overlap_become_one() {
    let all = joined(vec![40..50, 0..30, 12..25, 28..35, 50..51]);
    assert_eq!(all, [0..35, 40..50, 50..51]);
    for (at, expected) in [(0, Some(0)), (34, Some(0)), (35, None), (49, Some(1)), (50, Some(2)), (51, None)] {
        assert_eq!(within(&all, at), expected.map(|number: usize| &all[number]), "{at}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_has_an_answer(text in "[{}\\[\\]\"\\\\a⟐<think>/]{0,200}") {
        for (start, _) in text.match_indices('{') {
            if let Ok(end) = object_end(&text, start) {
                proptest::prop_assert!(text.is_char_boundary(end) && end > start);
            }
        }
        for span in thoughts(&text) {
            proptest::prop_assert!(text.get(span).is_some());
        }
    }
}
