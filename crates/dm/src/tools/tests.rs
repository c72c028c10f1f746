use super::*;

#[test]
fn rows_124_to_130_who_may_call_what() {
    let verdict = |role: &str, name: &str, arguments: Value| {
        let call = Call { name: name.into(), arguments };
        match Role::named(role).and_then(|role| admit(role, &call)) {
            Ok(_) => "ok".to_owned(),
            Err(fault) => fault.message,
        }
    };
    for (row, role, name, arguments, expected) in [
        ("124", "DM", "read_file", json!({"path": "x"}), "tool not allowed for role DM: read_file"),
        ("125", "KING", "read_file", json!({"path": "x"}), "unknown role: KING"),
        ("126", "DM", "nope", json!({}), "unknown tool: nope"),
        (
            "127",
            "AUTHOR",
            "read_file",
            json!({"path": "x", "max_lines": 401}),
            "read_file: max_lines must be a number from 1 to 400",
        ),
        (
            "127a",
            "AUTHOR",
            "read_file",
            json!({"path": "x", "max_lines": 0}),
            "read_file: max_lines must be a number from 1 to 400",
        ),
        ("128", "DM", "load_snapshot", json!({"campaign_path": "c"}), "ok"),
        ("128a", "DM", "write_patch", json!({}), "tool not allowed for role DM: write_patch"),
        (
            "130",
            "",
            "read_file",
            json!({"path": "x"}),
            "no role given: tools are called as AUTHOR, BUILDER, DM or SAVE_READ",
        ),
        (
            "70",
            "DM",
            "roll_check",
            json!({"dc": 12, "advantage": "lucky"}),
            "roll_check: advantage must be normal|advantage|disadvantage",
        ),
        ("70a", "DM", "roll_check", json!({"dc": 12}), "roll_check: advantage is missing"),
    ] {
        assert_eq!(verdict(role, name, arguments), expected, "row {row}");
    }
}

#[test]
fn row_24_a_new_campaign_is_three_calls_in_order() {
    let made = calls(&crate::input::Control::NewCampaign("c2".into()), "brinewick", "1.0.x");
    let names: Vec<&str> = made.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["copy_template", "bind_campaign", "set_active"]);
    assert_eq!(document()["tools"].as_array().map(Vec::len), Some(24));
}
