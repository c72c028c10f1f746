use super::*;

fn shown(name: &str) -> ToolShown {
    ToolShown {
        name: name.to_owned(),
        description: String::new(),
        params: json!({}),
        section: String::new(),
        examples: vec![],
    }
}

#[test]
fn a_reply_is_a_call_only_if_it_is_one() {
    let tools = [shown(OPEN), shown(READ), shown("memory.search")];
    let wrong = |why: &str| ReplyRequest::Wrong { why: why.to_owned() };
    let rows = [
        ("The answer is 4.", ReplyRequest::Answer),
        (r#"{"verdict":"take"}"#, ReplyRequest::Answer),
        (
            r#"{"tool_calls":[{"name":"open_sections","arguments":{"section_keys":["a.b"],"reason":"why"}}]}"#,
            ReplyRequest::Open { keys: vec!["a.b".to_owned()], reason: "why".to_owned() },
        ),
        (
            "Let me see.\n```json\n{\"tool_calls\":[{\"name\":\"read_section\",\"arguments\":{\"section_key\":\"a\"}}]}\n```",
            ReplyRequest::Read { key: "a".to_owned() },
        ),
        (r#"{"tool_calls":[{"name":"read_section"}]}"#, wrong("read_section wants a section_key")),
        (
            r#"{"tool_calls":[{"name":"memory.search","arguments":{"query":"x"}}]}"#,
            ReplyRequest::Call { tool: "memory.search".to_owned(), arguments: json!({"query": "x"}) },
        ),
        (r#"{"tool_calls":[]}"#, wrong("give exactly one call at a time")),
        (
            r#"{"tool_calls":[{"name":"rm"}]}"#,
            wrong("there is no tool `rm`: open_sections, read_section, memory.search"),
        ),
    ];
    for (reply, expected) in rows {
        assert_eq!(wish(reply, &tools), expected, "{reply}");
    }
}
