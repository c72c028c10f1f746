use serde_json::json;

use super::*;

fn said(name: &str, arguments: Value) -> String {
    match ToolCall::read(name, arguments.as_object().unwrap().clone()) {
        Ok(tool) => serde_json::to_string(&tool).unwrap(),
        Err(Misuse::Unknown(why)) => format!("unknown: {why}"),
        Err(Misuse::Arguments(why)) => format!("arguments: {why}"),
    }
}

#[test]
fn calls_are_read_strictly() {
    for (name, arguments, wanted) in [
        ("file_read", json!({"path": "a"}), r#"{"name":"file_read","arguments":{"path":"a"}}"#),
        ("file_list", json!({}), r#"{"name":"file_list","arguments":{"path":"."}}"#),
        (
            "file_read",
            json!({"path": "a", "max_bytes": null, "wait_until_ready": false}),
            r#"{"name":"file_read","arguments":{"path":"a","wait_until_ready":false}}"#,
        ),
        ("file_read", json!({}), "arguments: file_read needs `path`"),
        ("file_write", json!({"path": "a"}), "arguments: file_write needs `content`"),
        ("file_write", json!({"path": null, "content": ""}), "arguments: file_write: missing field `path`"),
        ("file_read", json!({"pth": "a"}), "arguments: file_read has no argument `pth`; did you mean `path`?"),
        (
            "file_list",
            json!({"zzz": 1}),
            "arguments: file_list has no argument `zzz`; it takes path, recursive, max_entries",
        ),
        ("file_read", json!({"path": 3}), "arguments: file_read: invalid type: integer `3`, expected a string"),
        ("file_read", json!({"path": "a\0"}), "arguments: file_read: a path must not contain NUL"),
        ("shell", json!({}), "unknown: there is no tool `shell`; the tools are file_read, file_write and file_list"),
    ] {
        assert_eq!(said(name, arguments), wanted);
    }
}
