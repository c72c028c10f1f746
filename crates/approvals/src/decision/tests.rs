use super::*;

#[test]
fn an_answer_is_read_strictly() {
    let allow = |span| Ok(Answer::Allow(span));
    for (text, wanted) in [
        ("allow\n", allow(Span::Once)),
        ("  allow always ", allow(Span::Always)),
        ("allow for 10m", allow(Span::For(600_000))),
        (
            "allow  for  90s",
            Err(
                "`allow  for  90s` is not a decision; write one of: allow | deny: reason | allow for 10m | allow always",
            ),
        ),
        ("allow for 31d", Err("`31d` is not a time; write 90s, 10m, 2h or 1d, at most 30d")),
        ("allow for  10m", Err("` 10m` is not a time; write 90s, 10m, 2h or 1d, at most 30d")),
        ("allow for +10m", Err("`+10m` is not a time; write 90s, 10m, 2h or 1d, at most 30d")),
        ("allow for 0s", Err("`0s` is not a time; write 90s, 10m, 2h or 1d, at most 30d")),
        (
            "allow for 99999999999999999999d",
            Err("`99999999999999999999d` is not a time; write 90s, 10m, 2h or 1d, at most 30d"),
        ),
        ("deny", Ok(Answer::Deny(String::new()))),
        ("deny: not on a\nFriday\n", Ok(Answer::Deny("not on a Friday".to_owned()))),
        (
            "deny not",
            Err("`deny not` is not a decision; write one of: allow | deny: reason | allow for 10m | allow always"),
        ),
        ("yes", Err("`yes` is not a decision; write one of: allow | deny: reason | allow for 10m | allow always")),
        (
            "allowed",
            Err("`allowed` is not a decision; write one of: allow | deny: reason | allow for 10m | allow always"),
        ),
        ("", Err("`` is not a decision; write one of: allow | deny: reason | allow for 10m | allow always")),
        ("ALLOW", Err("`ALLOW` is not a decision; write one of: allow | deny: reason | allow for 10m | allow always")),
    ] {
        let read = GivenAnswer::parse(text).map(|given| given.answer).map_err(|error| error.message);
        assert_eq!(read, wanted.map_err(str::to_owned), "{text:?}");
    }
}

#[test]
fn an_object_may_carry_the_hash_of_what_was_shown() {
    let given = GivenAnswer::parse(r#"{"decision":"deny","reason":"no","sha256":"ab"}"#).unwrap();
    assert_eq!(given, GivenAnswer { answer: Answer::Deny("no".to_owned()), sha256: Some("ab".to_owned()) });
    for wrong in
        [r#"{"decision":"allow","reason":"x"}"#, r#"{"decision":"allow","x":1}"#, r#"{"answer":"allow"}"#, "{", "[]"]
    {
        assert!(GivenAnswer::parse(wrong).is_err(), "{wrong}");
    }
}
