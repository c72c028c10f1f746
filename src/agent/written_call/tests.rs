use super::*;

#[test]
fn a_call_in_the_form_of_any_model_is_recognised() {
    for words in [
        r#"{"tool_calls":[{"name":"file_list","arguments":{}}]}"#,
        r#"{"name":"file_read","arguments":{"path":"/AGENTS.md"}}"#,
        "```json\n{\"name\":\"file_read\",\"arguments\":{\"path\":\"/AGENTS.md\"}}\n```",
        r#"{"tool_call":{"name":"file_read","arguments":{"path":"/AGENTS.md"}}}"#,
        r#"{"type":"function","name":"file_read","parameters":{"path":"/AGENTS.md"}}"#,
        r#"{"type":"function","function":{"name":"file_read","arguments":"{\"path\":\"/AGENTS.md\"}"}}"#,
        r#"[{"name":"file_read","arguments":{"path":"/AGENTS.md"}}]"#,
        "<tool_call>\n{\"name\":\"file_read\",\"arguments\":{\"path\":\"/AGENTS.md\"}}\n</tool_call>",
        "I look.\n<tool_call>{\"name\":\"file_read\"}</tool_call>",
        r#"[TOOL_CALLS][{"name":"file_read","arguments":{"path":"/AGENTS.md"}}]"#,
        "<function=file_read><parameter=path>/AGENTS.md</parameter></function>",
        r#"{"name":"file_list"}"#,
    ] {
        assert!(is_written_call(words), "{words}");
    }
}

#[test]
fn an_answer_about_calls_is_an_answer() {
    for words in [
        "Done.",
        "Write a call like this:\n```json\n{\"name\":\"file_read\",\"arguments\":{\"path\":\"/x\"}}\n```\nand wait.",
        r#"{"name":"Ada","age":36}"#,
        "Some models write `<tool_call>` before a call.",
        "```\n<tool_call>\n```",
        "[1, 2]",
        "[]",
    ] {
        assert!(!is_written_call(words), "{words}");
    }
}
