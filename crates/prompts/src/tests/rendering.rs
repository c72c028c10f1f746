use expect_test::expect;
use serde_json::json;

use super::*;

fn intro() -> Prompt {
    let params = json!({"Intro": text_field("name"), "Tone": text_field("tone"), "End": {
        "type": "object", "properties": {"word": {"type": "string", "default": "bye"}}}});
    prompt(
        json!({"params": params, "headings": "path", "sections": [
            {"key": "intro", "title": "  Intro \n", "params": "Intro", "body": "intro.md"},
            {"key": "tone", "title": "Tone", "params": "Tone", "body": "tone.md"},
            {"key": "end", "title": "End", "params": "End", "body": "end.md"},
        ]}),
        &[("intro.md", "\n    Intro: $name\n"), ("tone.md", "Tone: ${tone}"), ("end.md", "End: $word")],
    )
}

#[test]
fn rows_22_27_32_three_sections_two_bound_one_by_default() {
    let mut prompt = intro();
    prompt.bind([("Intro", json!({"name": "hello"})), ("Tone", json!({"tone": "warm"}))]).unwrap();
    expect![[r#"
        ## 1. Intro (intro)

        Intro: hello

        ## 2. Tone (tone)

        Tone: warm

        ## 3. End (end)

        End: bye"#]]
    .assert_eq(&shown(&prompt));
    prompt.headings = Some(crate::manifest::Headings::Plain);
    assert!(shown(&prompt).starts_with("## 1. Intro\n\nIntro: hello\n\n## 2. Tone\n\n"));
}

#[test]
fn row_24_nesting_deepens_the_heading() {
    let leaf = json!([{"key": "leaf", "title": "Leaf"}]);
    let sections = json!([
        {"key": "parent", "title": "Parent", "children": [{"key": "child", "title": "Child", "children": leaf}]},
        {"key": "summary", "title": "Summary"},
    ]);
    expect![[r#"
        ## 1. Parent (parent)

        ### 1.1. Child (parent.child)

        #### 1.1.1. Leaf (parent.child.leaf)

        ## 2. Summary (summary)"#]]
    .assert_eq(&shown(&prompt(json!({"headings": "path", "sections": sections}), &[])));
}

#[test]
fn rows_25_26_59_what_is_disabled_leaves_a_gap_in_the_numbers_and_takes_its_tools_along() {
    let tool = |name: &str| json!([{"name": name, "description": "D."}]);
    let prompt = prompt(
        json!({"sections": [
            {"key": "a", "title": "A", "tools": tool("s.a")},
            {"key": "b", "title": "B", "enabled": false, "children": [{"key": "leaf", "title": "L", "tools": tool("s.b")}]},
            {"key": "c", "title": "C", "children": [
                {"key": "x", "title": "X", "enabled": {"session": "never"}},
                {"key": "y", "title": "Y", "tools": tool("s.c")},
            ]},
        ]}),
        &[],
    );
    let rendered = prompt.render().unwrap();
    assert_eq!(rendered.text, "## 1. A\n\n## 3. C\n\n### 3.2. Y");
    let tools: Vec<&str> = rendered.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["s.a", "s.c"]);
}

#[test]
fn rows_29_30_31_nothing_renders_as_nothing() {
    assert_eq!(shown(&prompt(json!({}), &[])), "");
    let sections = json!([{"key": "a", "title": "A", "body": "a.md"}, {"key": "b", "title": "B", "body": "b.md"}]);
    let texts = [("a.md", " \n"), ("b.md", "b")];
    assert_eq!(shown(&prompt(json!({"headings": "none", "sections": sections}), &texts)), "b");
    assert_eq!(shown(&prompt(json!({"sections": sections}), &texts)), "## 1. A\n\n## 2. B\n\nb");
}

#[test]
fn rows_34_36_37_values_go_in_as_they_are() {
    let text = |body: &str, value: &str| {
        let mut prompt = prompt(
            json!({"headings": "none", "params": {"P": text_field("v")}, "sections": [
                {"key": "a", "title": "A", "params": "P", "body": "a.md"}]}),
            &[("a.md", body)],
        );
        prompt.bind([("P", json!({"v": value}))]).unwrap();
        shown(&prompt)
    };
    assert_eq!(text("cost $$5 and $$name $v", "x"), "cost $5 and $name x");
    assert_eq!(text("[$v]", "$num ${flag} $$"), "[$num ${flag} $$]");
    assert_eq!(text("$v", "  x\n  y  \n\n"), "x\n  y");
}

#[test]
fn rows_39_to_42_params_are_looked_up_in_order() {
    let two = |first: Value, second: Value| {
        let section = |key: &str, default: Value| {
            let mut section = json!({"key": key, "title": key, "params": "P", "body": format!("{key}.md")});
            if !default.is_null() {
                section["default"] = default;
            }
            section
        };
        prompt(
            json!({"headings": "none", "params": {"P": text_field("v")},
                "sections": [section("a", first), section("b", second)]}),
            &[("a.md", "a=$v"), ("b.md", "b=$v")],
        )
    };
    let (alpha, beta) = (json!({"v": "alpha"}), json!({"v": "beta"}));
    let nothing = two(Value::Null, Value::Null);
    assert_eq!(shown(&nothing), "! missing parameters for section (section a, params P, placeholder v)");
    assert_eq!(shown(&two(alpha.clone(), beta.clone())), "a=alpha\n\nb=beta");
    assert_eq!(shown(&two(alpha.clone(), Value::Null)), "a=alpha\n\nb=alpha");
    assert_eq!(shown(&two(Value::Null, beta.clone())), "a=beta\n\nb=beta");
    let mut bound = two(alpha, beta);
    bound.bind([("P", json!({"v": "one"}))]).unwrap();
    assert_eq!(shown(&bound), "a=one\n\nb=one");
}

#[test]
fn rows_46_47_49_50_a_bind_takes_one_record_a_type_and_all_or_nothing() {
    let mut prompt = intro();
    let name = |name: &str| json!({"name": name});
    prompt.bind([("Intro", name("first")), ("Tone", json!({"tone": "t"}))]).unwrap();
    let before = shown(&prompt);
    prompt.bind(Vec::<(String, Value)>::new()).unwrap();
    assert_eq!(shown(&prompt), before);
    let rows: Vec<(Vec<(&str, Value)>, &str)> = vec![
        (
            vec![("Intro", name("a")), ("Intro", name("b"))],
            "the same params type is given twice in one call (params Intro)",
        ),
        (
            vec![("Intro", name("a")), ("Odd", json!({}))],
            "unexpected params type `Odd`; this prompt takes End, Intro, Tone (params Odd)",
        ),
        (vec![("Intro", json!("text"))], "params must be a record (params Intro)"),
        (vec![("Intro", json!({}))], "params do not fit: missing required field: `name` (params Intro)"),
        (
            vec![("Intro", json!({"name": 3}))],
            "params do not fit: name: expected string, not integer (params Intro, placeholder name)",
        ),
    ];
    for (given, expected) in rows {
        assert_eq!(prompt.bind(given).unwrap_err().to_string(), expected);
        assert_eq!(shown(&prompt), before, "a refused bind changes nothing");
    }
    let twice = json!([{"type": "Intro", "value": name("a")}, {"type": "Intro", "value": name("b")}]);
    assert!(prompt.bind_json(&twice).is_err());
    prompt.bind([("Intro", name("second"))]).unwrap();
    assert!(shown(&prompt).contains("Intro: second"));
}

#[test]
fn a_disabled_section_asks_for_no_params() {
    let schema = json!({"type": "object", "required": ["v", "on"], "properties": {
        "v": {"type": "string"}, "on": {"type": "boolean"}}});
    let sections = json!([
        {"key": "a", "title": "A", "params": "P", "body": "a.md", "enabled": {"param": "on"}},
        {"key": "b", "title": "B", "summary": "b.md", "visibility": "summary"},
    ]);
    let prompt = prompt(json!({"params": {"P": schema}, "sections": sections}), &[("a.md", "$v"), ("b.md", "short")]);
    assert!(shown(&prompt).starts_with("## 2. B\n\nshort"));
}

#[test]
fn row_56_a_condition_takes_what_is_true_in_spirit() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 0}}});
    let sections = json!([{"key": "a", "title": "A", "params": "P", "enabled": {"param": "n"}}]);
    let mut prompt = prompt(json!({"params": {"P": schema}, "sections": sections}), &[]);
    assert_eq!(shown(&prompt), "");
    prompt.bind([("P", json!({"n": 2}))]).unwrap();
    assert_eq!(shown(&prompt), "## 1. A");
}

#[test]
fn rows_60_112_tools_with_examples_are_listed_under_their_section() {
    let sections = json!([{"key": "a", "title": "A", "body": "a.md", "tools": [
        {"name": "x.find", "description": "Finds.", "examples": [
            {"description": "One", "input": {"q": "a"}, "output": {"hit": 1, "gone": null}},
            {"description": "Text", "input": {}, "output": "```\nas it is\n```"},
            {"description": "None", "input": {}, "output": null},
            {"description": "List", "input": {}, "output": []},
        ]},
        {"name": "x.quiet", "description": "Has no examples."},
    ]}]);
    expect![[r#"
        ## 1. A

        Body.

        Tools:
        - x.find: Finds.
          - x.find examples:
            - description: One
              input:
                ```json
                {
                  "q": "a"
                }
                ```
              output:
                ```
                {
                  "hit": 1
                }
                ```
            - description: Text
              input:
                ```json
                {}
                ```
              output:
                ````
                ```
                as it is
                ```
                ````
            - description: None
              input:
                ```json
                {}
                ```
              output:
                ```

                ```
            - description: List
              input:
                ```json
                {}
                ```
              output:
                ```
                []
                ```"#]]
    .assert_eq(&shown(&prompt(json!({"sections": sections}), &[("a.md", "Body.")])));
}

#[test]
fn a_rendered_prompt_says_what_it_wants_back() {
    let mut prompt =
        prompt(json!({"output": {"name": "Hit", "container": "array", "schema": text_field("file")}}), &[]);
    prompt.deadline_ms = Some(17);
    let rendered = serde_json::to_value(prompt.render().unwrap()).unwrap();
    assert_eq!(rendered["output_type"], "Hit");
    assert_eq!(rendered["container"], "array");
    assert_eq!(rendered["deadline"], 17);
    assert_eq!(rendered["output_schema"]["properties"]["items"]["items"]["additionalProperties"], false);
}

#[test]
fn a_workspace_says_where_its_files_are_and_task_examples_are_shown() {
    let sections = json!([
        {"key": "files", "title": "Files", "kind": "workspace", "project": "here",
            "tools": [{"name": "search_code.search", "description": "Finds lines."}]},
        {"key": "tasks", "title": "So it goes", "kind": "task_examples", "examples": [
            {"key": "one", "objective": "Find the parser", "outcome": "It is in src.", "steps": [
                {"tool": "search_code.search", "description": "Search", "input": {"query": "parse"}, "output": ["src"]}]}]},
    ]);
    expect![[r#"
        ## 1. Files

        The files of project `here` are under `/projects/here/fs`.

        ## 2. So it goes

        **Find the parser**

        Objective: Find the parser

        Steps:

        1. search_code.search: Search
           input:
           ```json
           {
             "query": "parse"
           }
           ```
           output:
           ```
           [
             "src"
           ]
           ```

        Outcome: It is in src."#]]
    .assert_eq(&shown(&prompt(json!({"sections": sections}), &[])));
}

proptest::proptest! {
    #[test]
    fn rendering_is_deterministic(name in ".{0,20}", tone in "[$a-z{} ]{0,20}") {
        let mut prompt = intro();
        prompt.bind([("Intro", json!({"name": name})), ("Tone", json!({"tone": tone}))]).unwrap();
        let again = prompt.clone();
        proptest::prop_assert_eq!(prompt.render().unwrap(), again.render().unwrap());
        proptest::prop_assert!(shown(&prompt).contains(tone.trim()));
    }
}
