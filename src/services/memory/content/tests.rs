use proptest::prelude::*;
use serde_json::json;

use super::*;
use acheron_base::Code;

#[test]
fn merge_patch_does_what_the_rfc_shows() {
    // the table of RFC 7396, appendix A
    let table = [
        (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
        (json!({"a":"b"}), json!({"a":null}), json!({})),
        (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
        (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
        (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
        (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"a":"b"}), json!(["c"]), json!(["c"])),
        (json!({"a":"foo"}), json!(null), json!(null)),
        (json!({"a":"foo"}), json!("bar"), json!("bar")),
        (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
        (json!([1, 2]), json!({"a":"b","c":null}), json!({"a":"b"})),
        (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
    ];
    for (mut target, patch, expected) in table {
        merge(&mut target, patch.clone());
        assert_eq!(target, expected, "{patch}");
    }
}

#[test]
fn changes_fit_what_is_there() {
    let text = || Content::Text("one\n".into());
    let list = || Content::Json(json!([1]));
    let object = || Content::Json(json!({"a": 1}));
    let table = [
        (text(), ContentChange::Append(json!("two\n")), Ok(Content::Text("one\ntwo\n".into()))),
        (text(), ContentChange::Append(json!(2)), Err(Code::InvalidPayload)),
        (text(), ContentChange::Patch(json!({})), Err(Code::InvalidPayload)),
        (text(), ContentChange::Replace(json!({"a": 1})), Ok(object())),
        (list(), ContentChange::Append(json!([2])), Ok(Content::Json(json!([1, [2]])))),
        (object(), ContentChange::Append(json!("x")), Err(Code::InvalidPayload)),
        (object(), ContentChange::Patch(json!({"a": 2})), Ok(Content::Json(json!({"a": 2})))),
        (object(), ContentChange::Patch(json!("said")), Ok(Content::Text("said".into()))),
        (text(), ContentChange::Append(json!("x".repeat(LIMIT))), Err(Code::TooLarge)),
    ];
    for (before, change, expected) in table {
        assert_eq!(before.changed(change).map_err(|error| error.code), expected);
    }
}

#[test]
fn a_file_keeps_its_form_while_it_can() {
    let text = Content::Text(String::new());
    let json = Content::Json(json!({}));
    assert_eq!(Content::written(b"{\"a\":1}", &text), Ok(Content::Text("{\"a\":1}".into())));
    assert_eq!(Content::written(b"{\"a\":1}\n", &json), Ok(Content::Json(json!({"a": 1}))));
    assert_eq!(Content::written(b"plain", &json), Ok(Content::Text("plain".into())));
    assert_eq!(Content::written(b"ab\xff", &text).unwrap_err().message, "a memory is UTF-8 text; byte 2 is not");
}

#[test]
fn the_limit_is_a_mebibyte() {
    assert!(Content::given(json!("x".repeat(LIMIT))).is_ok());
    assert_eq!(Content::given(json!("x".repeat(LIMIT + 1))).unwrap_err().code, Code::TooLarge);
}

proptest! {
    #[test]
    fn what_is_kept_comes_back(text in ".{0,40}", n: i64) {
        for content in [Content::Text(text.clone()), Content::Json(json!({"t": text, "n": n}))] {
            prop_assert_eq!(Content::kept(content.form(), content.text()).unwrap(), content);
        }
    }
}
