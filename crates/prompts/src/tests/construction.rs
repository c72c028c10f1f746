use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn check(manifest: Value, texts: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&refused(manifest, texts));
}

#[test]
fn rows_1_2_a_blank_namespace_or_key_is_refused() {
    let faults = refused(json!({"ns": "   ", "key": "  "}), &[]);
    assert!(faults.contains("prompt namespace must be a non-empty string"), "{faults}");
    assert!(faults.contains("prompt key must be a non-empty string"), "{faults}");
}

#[test]
fn rows_4_to_7_section_keys_are_folded_and_checked() {
    let template = read(json!({"sections": [{"key": " spacing.OUT ", "title": "T"}]}), &[]).unwrap();
    assert_eq!(template.nodes[0].path, "spacing.out");
    check(
        json!({"sections": [{"key": "", "title": "T"}, {"key": "Invalid Key", "title": "T"}]}),
        &[],
        expect![[r#"
            p/t/t/prompt.json:4:14: section key must be a non-empty string
            p/t/t/prompt.json:8:14: section key `Invalid Key` must match ^[a-z0-9][a-z0-9._-]{0,63}$"#]],
    );
}

#[test]
fn row_10_the_descriptor_is_computed_once() {
    let template = read(json!({"sections": [{"key": "a", "title": "A", "body": "a.md"}]}), &[("a.md", "x")]).unwrap();
    assert!(Arc::ptr_eq(&template.descriptor(), &template.descriptor()));
}

#[test]
fn rows_11_12_35_a_placeholder_is_known_and_well_formed_when_it_is_loaded_in_the_summary_too() {
    check(
        json!({"params": {"P": text_field("value")}, "sections": [
            {"key": "invalid", "title": "T", "params": "P", "body": "a.md", "summary": "a.short.md"},
            {"key": "bare", "title": "T", "body": "b.md"},
            {"key": "money", "title": "T", "body": "c.md"},
        ]}),
        &[
            ("a.md", "fine $value\n  Missing ${oops}"),
            ("a.short.md", "$lost"),
            ("b.md", "${value}"),
            ("c.md", "cost $5"),
        ],
        expect![[r#"
            p/t/t/a.md:2:11: template references unknown placeholder (section invalid, params P, placeholder oops)
            p/t/t/a.short.md:1:1: template references unknown placeholder (section invalid, params P, placeholder lost)
            p/t/t/b.md:1:1: section does not accept parameters but declares placeholders (section bare, placeholder value)
            p/t/t/c.md:1:6: malformed placeholder `$5`: write $name or ${name}, and $$ for a dollar sign (section money)"#]],
    );
}

#[test]
fn rows_14_15_17_defaults_fit_the_params_type_and_a_params_type_is_a_record() {
    check(
        json!({"params": {"P": text_field("value"), "N": {"type": "integer"}}, "sections": [
            {"key": "a", "title": "T", "params": "P", "default": {"other": "x"}},
            {"key": "b", "title": "T", "params": "P", "default": 3},
            {"key": "c", "title": "T", "default": {}},
            {"key": "d", "title": "T", "params": "Q"},
        ]}),
        &[],
        expect![[r#"
            p/t/t/prompt.json:14:10: params `N` must be a record: a JSON Schema of type object (params N)
            p/t/t/prompt.json:23:18: a section's default must match its params type: extra keys not permitted: ["other"] (section a, params P)
            p/t/t/prompt.json:31:18: a section's default must be a record (section b, params P)
            p/t/t/prompt.json:36:18: a section without params takes no default (section c)
            p/t/t/prompt.json:41:17: params type `Q` is not declared under params (section d, params Q)"#]],
    );
}

#[test]
fn rows_19_20_a_tool_is_named_once_and_is_a_tool() {
    let tool = |name: &str| json!({"name": name, "description": "Does it."});
    let fine = json!({"sections": [{"key": "a", "title": "T", "tools": [tool("x.a"), tool("x.b")]}]});
    assert_eq!(read(fine, &[]).unwrap().tools().count(), 2);
    check(
        json!({"sections": [
            {"key": "a", "title": "T", "enabled": false, "tools": [tool("x.a"), tool("bad")]},
            {"key": "b", "title": "T", "children": [{"key": "c", "title": "T", "tools": [tool("x.a")]}]},
        ]}),
        &[],
        expect![[r#"
            p/t/t/prompt.json:12:9: a tool is <service>.<operation>, not `bad` (section a)
            p/t/t/prompt.json:26:13: tool `x.a` is named twice in this prompt (section b/c)"#]],
    );
    check(
        json!({"sections": [{"key": "a", "title": "T", "tools": ["x.a"]}]}),
        &[],
        expect![[r#"p/t/t/prompt.json:7:13: invalid type: string "x.a", expected struct ToolPart"#]],
    );
}

#[test]
fn siblings_do_not_share_a_key_and_a_summary_is_there_where_it_is_asked_for() {
    check(
        json!({"sections": [
            {"key": "a", "title": "T", "visibility": "summary"},
            {"key": "A", "title": " \n"},
            {"key": "c", "title": "T", "enabled": {"param": "x"}, "body": "nowhere.md"},
        ]}),
        &[("idle.md", "x")],
        expect![[r#"
            p/t/t/prompt.json:6:21: summary visibility requested for section `a` but no summary is defined (section a)
            p/t/t/prompt.json:9:14: two sections beside each other have the key `a` (section a)
            p/t/t/prompt.json:10:16: a section's title must be one line that is not empty (section a)
            p/t/t/prompt.json:18:15: there is no file `nowhere.md` (section c)
            p/t/t/prompt.json:15:18: enabled looks at `x`, which is no field of its params (section c, placeholder x)
            p/t/t/idle.md:1:1: no section names this file"#]],
    );
}

#[test]
fn a_manifest_that_is_no_manifest_says_where() {
    for (text, place) in [
        ("{\n  \"ns\": \"t\",\n  \"keys\": 1\n}", "p/t/t/prompt.json:3:8: unknown field `keys`"),
        ("{\"ns\": \"t\", \"ns\": \"t\", \"key\": \"t\"}", "p/t/t/prompt.json:1:16: the key `ns` stands twice"),
        ("[", "p/t/t/prompt.json:1:1: EOF while parsing a list"),
        ("{\"ns\": \"u\", \"key\": \"t\"}", "p/t/t/prompt.json:1:1: prompt `u/t` lies in the place of `t/t`"),
    ] {
        let files = Files::from([("t/t/prompt.json".to_owned(), text.as_bytes().to_vec())]);
        let faults = load(&files, "p").prompts.remove("t/t").unwrap().unwrap_err();
        assert!(lines(&faults).starts_with(place), "{}", lines(&faults));
    }
}

#[test]
fn row_87_an_answer_is_an_object_or_an_array() {
    let faults = refused(json!({"output": {"name": "O", "schema": text_field("x"), "container": "heap"}}), &[]);
    assert!(faults.contains("unknown variant `heap`"), "{faults}");
    let faults = refused(json!({"output": {"name": "O", "schema": {"type": "integer"}}}), &[]);
    assert!(faults.contains("the output type must be a record"), "{faults}");
}

#[test]
fn row_110_an_example_is_one_of_its_tool() {
    let with = |example: Value| {
        json!({"sections": [{"key": "a", "title": "T", "tools": [{
            "name": "x.a", "description": "Does it.", "params": text_field("q"),
            "result": {"type": "array", "items": {"type": "integer"}}, "examples": [example],
        }]}]})
    };
    let rows = [
        (
            json!({"description": "d", "input": {"q": 1}, "output": []}),
            "the input of an example of tool `x.a`: q: expected",
        ),
        (
            json!({"description": "d", "input": {"q": "x"}, "output": 3}),
            "the output of an example of tool `x.a`: expected array",
        ),
        (
            json!({"description": "d", "input": {"q": "x"}, "output": ["y"]}),
            "the output of an example of tool `x.a`: [0]",
        ),
        (
            json!({"description": "d", "input": null, "output": []}),
            "the input of an example of tool `x.a`: value cannot be null",
        ),
        (json!({"description": " ", "input": {"q": "x"}, "output": []}), "an example of tool `x.a` must be one line"),
        (json!({"description": "é", "input": {"q": "x"}, "output": []}), "an example of tool `x.a` must be one line"),
        (json!("words"), "invalid type: string \"words\", expected struct ToolExample"),
    ];
    for (example, expected) in rows {
        let faults = refused(with(example), &[]);
        assert!(faults.contains(expected), "{faults}");
    }
    assert!(read(with(json!({"description": "d", "input": {"q": "x"}, "output": [1, 2]})), &[]).is_ok());
}

#[test]
fn a_task_example_uses_tools_of_its_prompt_as_they_are() {
    let with = |example: Value, output: Value| {
        json!({"output": output, "sections": [
            {"key": "a", "title": "T", "tools": [{"name": "x.a", "description": "D.", "params": text_field("q")}]},
            {"key": "e", "title": "E", "kind": "task_examples", "examples": [example]},
        ]})
    };
    let example = |tool: &str, q: Value, outcome: Value| {
        json!({"key": "one", "objective": "Find it", "outcome": outcome,
            "steps": [{"tool": tool, "description": "Look", "input": {"q": q}, "output": "there"}]})
    };
    let shape = json!({"name": "O", "schema": text_field("found")});
    assert!(read(with(example("x.a", json!("y"), json!("done")), Value::Null), &[]).is_ok());
    assert!(read(with(example("x.a", json!("y"), json!({"found": "z"})), shape.clone()), &[]).is_ok());
    let rows = [
        (example("x.b", json!("y"), json!("done")), Value::Null, "uses tool `x.b`, which this prompt does not have"),
        (example("x.a", json!(1), json!("done")), Value::Null, "q: expected string, not integer"),
        (example("x.a", json!("y"), json!({})), Value::Null, "the outcome of task example `one`: must be a text"),
        (example("x.a", json!("y"), json!({})), shape, "missing required field: `found`"),
        (
            json!({"key": "one", "objective": "é", "outcome": "x", "steps": []}),
            Value::Null,
            "the objective of task example `one`",
        ),
        (json!({"key": "one", "objective": "e", "outcome": "x", "steps": []}), Value::Null, "has no steps"),
    ];
    for (example, output, expected) in rows {
        let faults = refused(with(example, output), &[]);
        assert!(faults.contains(expected), "{faults}");
    }
}

#[test]
fn row_124_a_cloned_section_keeps_its_condition_and_shares_nothing() {
    use crate::manifest::{Manifest, Part};
    let part: Part = serde_json::from_value(json!({
        "key": "a", "title": "A", "params": "P", "enabled": {"param": "on"}, "body": "a.md",
        "children": [{"key": "b", "title": "B"}],
    }))
    .unwrap();
    let mut copy = part.clone();
    copy.key = "again".to_owned();
    copy.children[0].title = "Other".to_owned();
    let schema = json!({"type": "object", "required": ["on"], "properties": {"on": {"type": "boolean"}}});
    let manifest = Manifest {
        ns: "t".to_owned(),
        key: "t".to_owned(),
        params: [("P".to_owned(), schema)].into(),
        sections: vec![part, copy],
        ..Manifest::default()
    };
    let texts = [("a.md".to_owned(), "body".to_owned())].into();
    let source = crate::check::Source { folder: "p", manifest: None, texts: &texts };
    let template = Arc::new(crate::check::build(&manifest, &source).unwrap());
    let mut prompt = Prompt::new(template);
    prompt.bind([("P", json!({"on": true}))]).unwrap();
    assert_eq!(shown(&prompt), "## 1. A\n\nbody\n\n### 1.1. B\n\n## 2. A\n\nbody\n\n### 2.1. Other");
    prompt.bind([("P", json!({"on": false}))]).unwrap();
    assert_eq!(shown(&prompt), "");
}
