use std::sync::Arc;

use serde_json::{Value, json};

use super::super::test_prompts::{read, shown, text_field};
use super::*;
use crate::service::WithoutCall;
use acheron_prompts::Prompt;

fn host(body: &str) -> Arc<PromptTemplate> {
    let params = json!({"type": "object", "required": ["q"], "properties": {
        "q": {"type": "string", "description": "What to find."}, "deep": {"type": "boolean"}}});
    let example = json!({"description": "One", "input": {"q": "x"}, "output": "y"});
    let task = json!({"key": "k", "objective": "Do", "outcome": "Done",
        "steps": [{"tool": "x.find", "description": "Find", "input": {"q": "a"}, "output": "b"}]});
    let manifest = json!({"params": {"P": text_field("v")}, "sections": [
        {"key": "a", "title": "A", "params": "P", "default": {"v": "1"}, "body": "a.md", "summary": "a.short.md",
            "tools": [{"name": "x.find", "description": "Finds.", "params": params, "examples": [example]}],
            "children": [{"key": "b", "title": "B", "body": "b.md"}]},
        {"key": "fixed", "title": "F", "body": "b.md", "accepts_overrides": false,
            "tools": [{"name": "x.fixed", "description": "Fixed.", "accepts_overrides": false}]},
        {"key": "tasks", "title": "T", "kind": "task_examples", "examples": [task]},
    ]});
    let texts = [("a.md", body), ("a.short.md", "short $v"), ("b.md", "b")];
    Arc::new(read(manifest, &texts).unwrap_or_else(|faults| panic!("{faults:?}")))
}

struct Kept {
    folder: tempfile::TempDir,
    store: OverrideStore,
}

fn kept() -> Kept {
    let folder = tempfile::tempdir().unwrap();
    let store = OverrideStore::new(ConfinedDir::open(folder.path()).unwrap());
    Kept { folder, store }
}

fn change(value: Value) -> OverrideChange {
    serde_json::from_value(value).unwrap()
}

fn body(text: &str) -> OverrideChange {
    change(json!({"target": "section", "path": "a", "body": text}))
}

fn said<T>(result: acheron_base::Result<T>) -> String {
    result.map_or_else(|error| format!("{}: {}", error.code.name(), error.message), |_| "fine".to_owned())
}

fn with(template: &Arc<PromptTemplate>, store: &OverrideStore) -> Prompt {
    let mut prompt = Prompt::new(template.clone());
    prompt.overrides = Arc::new(store.resolve(template, "latest").unwrap().overrides);
    prompt
}

#[test]
fn row_94_what_is_stored_resolves_and_is_gone_after_it_was_deleted() {
    let (template, kept) = (host("Body $v"), kept());
    kept.store.store(&WithoutCall, &template, "latest", &body("New $v")).unwrap();
    kept.store
        .store(&WithoutCall, &template, "latest", &change(json!({"target": "section", "path": "a.b", "body": "bb"})))
        .unwrap();
    let file: Value =
        serde_json::from_slice(&std::fs::read(kept.folder.path().join("t/t/latest.json")).unwrap()).unwrap();
    assert_eq!(file["version"], 2);
    assert_eq!(file["sections"]["a/b"]["path"], json!(["a", "b"]));
    let read = kept.store.read("t", "t", "latest").unwrap().unwrap();
    kept.store.upsert(&WithoutCall, &template, &read).unwrap();
    assert_eq!(kept.store.resolve(&template, "latest").unwrap().overrides.sections.len(), 2);
    assert_eq!(kept.store.tags("t", "t").unwrap(), ["latest"]);
    assert!(kept.store.delete(&WithoutCall, "t", "t", "latest").unwrap().deleted);
    assert!(!kept.store.delete(&WithoutCall, "t", "t", "latest").unwrap().deleted);
    assert!(kept.store.resolve(&template, "latest").unwrap().overrides.is_empty());
}

#[test]
fn rows_95_96_a_seed_holds_the_words_as_they_are_and_is_not_made_twice() {
    let (template, kept) = (host("  Body $v\n"), kept());
    let seed = kept.store.seed(&template, "v1").unwrap();
    assert_eq!(seed.sections.keys().collect::<Vec<_>>(), ["a", "a/b"]);
    assert_eq!(seed.sections["a"].body, "Body $v");
    assert_eq!(seed.tools.keys().collect::<Vec<_>>(), ["x.find"]);
    assert_eq!(seed.tools["x.find"].description.as_deref(), Some("Finds."));
    assert_eq!(seed.tools["x.find"].param_descriptions.as_ref().unwrap().keys().collect::<Vec<_>>(), ["q"]);
    assert_eq!(seed.task_example_overrides.len(), 1);
    assert_eq!(kept.store.seed(&template, "v1").unwrap(), seed);
    assert_eq!(kept.store.resolve(&template, "v1").unwrap().stale, []);
    std::fs::write(kept.folder.path().join("t/t/v1.json"), "{").unwrap();
    assert!(said(kept.store.seed(&template, "v1")).contains("failed to parse the override file t/t/v1.json"));
    let mut stale = OverrideFile::new("t", "t", "v1");
    stale.sections.insert(
        "a".to_owned(),
        acheron_prompts::overrides::file::SectionEntry { expected_hash: "0".repeat(64), ..seed.sections["a"].clone() },
    );
    std::fs::write(kept.folder.path().join("t/t/v1.json"), stale.bytes()).unwrap();
    assert!(said(kept.store.seed(&template, "v1")).contains("could not be resolved"));
}

#[test]
fn row_97_what_was_written_for_another_text_does_not_apply_and_is_listed() {
    let (old, kept) = (host("Body $v"), kept());
    kept.store.store(&WithoutCall, &old, "latest", &body("New $v")).unwrap();
    let new = host("Other body $v");
    let resolved = kept.store.resolve(&new, "latest").unwrap();
    assert!(resolved.overrides.is_empty());
    assert_eq!(resolved.stale.len(), 1);
    assert_eq!(
        (resolved.stale[0].target.as_str(), resolved.stale[0].reason.as_str()),
        ("a", "the section has changed")
    );
    // Another store beside it keeps the stale one in the file.
    kept.store
        .store(&WithoutCall, &new, "latest", &change(json!({"target": "section", "path": "a/b", "body": "bb"})))
        .unwrap();
    assert_eq!(kept.store.resolve(&new, "latest").unwrap().stale.len(), 1);
    // Indentation is not a change.
    assert_eq!(kept.store.resolve(&host("\n    Body $v\n"), "latest").unwrap().stale, []);
}

#[test]
fn row_99_a_malformed_file_is_an_error_that_names_it() {
    let (template, kept) = (host("Body $v"), kept());
    let seed = serde_json::to_value(kept.store.seed(&template, "latest").unwrap()).unwrap();
    let rows: &[(&str, Value)] = &[
        ("/sections", json!([])),
        ("/sections/a", json!("x")),
        ("/sections/a/expected_hash", json!(3)),
        ("/sections/a/expected_hash", json!("xyz")),
        ("/sections/a/body", json!(3)),
        ("/sections/a/summary", json!(3)),
        ("/sections/a/visibility", json!("loud")),
        ("/sections/a/path", json!(["b"])),
        ("/tools", json!(3)),
        ("/tools/x.find", json!([])),
        ("/tools/x.find/param_descriptions", json!([])),
        ("/tools/x.find/param_descriptions", json!({"q": 3})),
        ("/version", json!(3)),
        ("/ns", json!("other")),
    ];
    let path = kept.folder.path().join("t/t/latest.json");
    for (pointer, value) in rows {
        let mut file = seed.clone();
        if let Some(place) = file.pointer_mut(pointer) {
            *place = value.clone();
        } else {
            file["sections"]["a"][pointer.rsplit('/').next().unwrap()] = value.clone();
        }
        std::fs::write(&path, file.to_string()).unwrap();
        assert_ne!(said(kept.store.resolve(&template, "latest")), "fine", "{pointer} {value}");
    }
    for root in ["[]", "3", "null", ""] {
        std::fs::write(&path, root).unwrap();
        assert_ne!(said(kept.store.resolve(&template, "latest")), "fine", "{root}");
    }
    let mut file = seed;
    file["tools"]["x.find"]["param_descriptions"] = Value::Null;
    file["tools"]["x.find"]["description"] = Value::Null;
    std::fs::write(&path, file.to_string()).unwrap();
    assert_eq!(said(kept.store.resolve(&template, "latest")), "fine");
}

#[test]
fn rows_100_101_104_a_write_has_to_fit_the_prompt_as_it_is() {
    let (template, kept) = (host("Body $v"), kept());
    let rows = [
        (
            json!({"target": "section", "path": "zz", "body": "x"}),
            "not_found: section `zz` does not exist in this prompt",
        ),
        (
            json!({"target": "section", "path": "fixed", "body": "x"}),
            "not_permitted: section `fixed` does not accept overrides (section",
        ),
        (
            json!({"target": "section", "path": "tasks", "body": "x"}),
            "invalid_payload: section `tasks` has no text to override",
        ),
        (
            json!({"target": "section", "path": "a", "body": "x", "expected_hash": "00"}),
            "conflict: hash mismatch for section `a`",
        ),
        (
            json!({"target": "section", "path": "a", "body": "$oops"}),
            "invalid_payload: override of t/t/a, body:1:1: template references unknown",
        ),
        (
            json!({"target": "section", "path": "a", "body": "$5"}),
            "invalid_payload: override of t/t/a, body:1:1: malformed placeholder",
        ),
        (
            json!({"target": "section", "path": "a/b", "body": "x", "visibility": "summary"}),
            "invalid_payload: summary visibility is chosen",
        ),
        (json!({"target": "tool", "name": "x.none"}), "not_found: tool `x.none` is not registered"),
        (
            json!({"target": "tool", "name": "x.fixed", "description": "x"}),
            "not_permitted: tool `x.fixed` does not accept overrides",
        ),
        (
            json!({"target": "tool", "name": "x.find", "description": "é"}),
            "invalid_payload: the description of tool `x.find` must be one",
        ),
        (
            json!({"target": "tool", "name": "x.find", "expected_hash": "00"}),
            "conflict: hash mismatch for tool `x.find`",
        ),
        (
            json!({"target": "tool", "name": "x.find", "param_descriptions": {"zz": "x"}}),
            "invalid_payload: tool `x.find` has no parameter `zz`",
        ),
        (
            json!({"target": "tool_example", "name": "x.find", "index": 4, "example": {"description": "d"}}),
            "not_found: tool `x.find` has no example 4",
        ),
        (
            json!({"target": "tool_example", "name": "x.find", "index": 0, "example": {"description": "d", "input": {}}}),
            "invalid_payload: the input of an example",
        ),
        (
            json!({"target": "task_example", "path": "tasks", "index": 7, "example": {"key": "k", "objective": "o", "outcome": "x", "steps": []}}),
            "not_found: section `tasks` has no task example 7",
        ),
        (
            json!({"target": "task_example", "path": "tasks", "index": 0, "example": {"key": "k", "objective": "o", "outcome": "x", "steps": []}}),
            "invalid_payload: task example `k` has no steps",
        ),
    ];
    for (written, expected) in rows {
        let got = said(kept.store.store(&WithoutCall, &template, "latest", &change(written.clone())));
        assert!(got.starts_with(expected.trim_end_matches(" (section")), "{written}: {got}");
    }
    assert_eq!(kept.store.tags("t", "t").unwrap(), Vec::<String>::new());
    for tag in ["Key", " ", "LATEST", "../x", ""] {
        assert_ne!(said(kept.store.store(&WithoutCall, &template, tag, &body("x"))), "fine", "{tag}");
    }
    for (ns, key) in [("/", "t"), ("..", "t"), ("t", "/etc"), ("", "t")] {
        assert_ne!(said(kept.store.read(ns, key, "latest")), "fine");
    }
    let foreign = OverrideFile::new("u", "t", "latest");
    assert!(said(kept.store.upsert(&WithoutCall, &template, &foreign)).starts_with("conflict"));
    let mut stale = kept.store.seed(&template, "latest").unwrap();
    stale.sections.get_mut("a").unwrap().expected_hash = "0".repeat(64);
    assert!(
        said(kept.store.upsert(&WithoutCall, &template, &stale)).starts_with("conflict: a: the section has changed")
    );
}

#[test]
fn row_102_all_five_targets_are_seen_when_the_prompt_is_rendered() {
    let (template, kept) = (host("Body $v"), kept());
    let put = |value: Value| kept.store.store(&WithoutCall, &template, "latest", &change(value)).map(drop).unwrap();
    put(json!({"target": "section", "path": "a", "body": "Other $v", "summary": "brief $v"}));
    put(
        json!({"target": "tool", "name": "x.find", "description": "Seeks.", "param_descriptions": {"q": "The thing."}}),
    );
    put(json!({"target": "tool_example", "name": "x.find", "index": 0,
        "example": {"description": "Two", "input": {"q": "z"}, "output": "w"}}));
    put(json!({"target": "task_example", "path": "tasks", "index": 0, "example": {"key": "k", "objective": "Do more",
        "outcome": "All", "steps": [{"tool": "x.find", "description": "Go", "input": {"q": "a"}, "output": "b"}]}}));
    let mut prompt = with(&template, &kept.store);
    let rendered = prompt.render().unwrap();
    for words in ["Other 1", "- x.find: Seeks.", "description: Two", "Objective: Do more"] {
        assert!(rendered.text.contains(words), "{words}\n{}", rendered.text);
    }
    assert_eq!(rendered.tools[0].description, "Seeks.");
    assert_eq!(rendered.tools[0].params["properties"]["q"]["description"], "The thing.");
    // Reading and the summary see them too; another tag does not.
    prompt.set_visibility("a", acheron_prompts::manifest::Visibility::Summary).unwrap();
    assert!(shown(&prompt).contains("brief 1") && !shown(&prompt).contains("Other"));
    assert!(prompt.read_section("a").unwrap().contains("Other 1"));
    assert!(kept.store.resolve(&template, "v2").unwrap().overrides.is_empty());
    put(json!({"target": "section", "path": "a", "body": "Other $v", "visibility": "summary"}));
    assert!(shown(&with(&template, &kept.store)).contains("short 1"));
}

#[test]
fn row_105_many_writers_leave_a_whole_file() {
    let (template, kept) = (host("Body $v"), kept());
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (template, store) = (&template, &kept.store);
            scope.spawn(move || {
                for turn in 0..5 {
                    let path = if writer % 2 == 0 { "a" } else { "a/b" };
                    let change = change(json!({"target": "section", "path": path, "body": format!("{writer} {turn}")}));
                    store.store(&WithoutCall, template, "latest", &change).unwrap();
                }
            });
        }
    });
    assert_eq!(
        kept.store.read("t", "t", "latest").unwrap().unwrap().sections.len(),
        2,
        "no writer lost the other's entry"
    );
}

#[test]
fn row_106_the_descriptor_holds_what_may_be_overridden_and_the_hash_is_the_formula() {
    use acheron_prompts::descriptor::{contract_hash, json_hash, text_hash};
    let template = host("Body $v");
    let descriptor = template.descriptor();
    let paths: Vec<&str> = descriptor.sections.iter().map(|mark| mark.path.as_str()).collect();
    assert_eq!(paths, ["a", "a/b"]);
    assert_eq!(descriptor.tools.len(), 1);
    assert_eq!(descriptor.sections[0].content_hash, text_hash("Body $v"));
    assert_eq!(text_hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(json_hash(&json!({"b": 1, "a": [true]})), text_hash(r#"{"a":[true],"b":1}"#));
    let (_, tool) = template.tool("x.find").unwrap();
    let params = json!({"type": "object", "required": ["q"], "additionalProperties": false,
        "properties": {"q": {"type": "string"}, "deep": {"type": "boolean"}}});
    let parts = [text_hash("Finds."), json_hash(&params), json_hash(&Value::Bool(true))];
    assert_eq!(contract_hash(tool), text_hash(&parts.join("::")));
}

#[test]
fn row_107_inspection_lists_what_is_there() {
    let (template, kept) = (host("Body $v"), kept());
    assert_eq!(kept.store.inspect().unwrap(), []);
    kept.store.seed(&template, "v1").unwrap();
    std::fs::create_dir_all(kept.folder.path().join("t/t/dir.json")).unwrap();
    let all = kept.store.inspect().unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].prompt.as_str(), all[0].sections, all[0].tools, all[0].task_examples), ("t/t", 2, 1, 1));
    std::fs::write(kept.folder.path().join("t/t/bad.json"), "[]").unwrap();
    assert!(kept.store.inspect().is_err());
}

proptest::proptest! {
    #[test]
    fn an_override_never_applies_to_changed_text(old in "[a-z \n]{1,20}", new in "[a-z \n]{1,20}") {
        let (was, is) = (host(&old), host(&new));
        let mut file = OverrideFile::new("t", "t", "latest");
        body("override").put(&was, &mut file).unwrap();
        let resolved = resolve(&is, &file).unwrap();
        let same = was.nodes[0].section.body.as_ref().unwrap().source() == is.nodes[0].section.body.as_ref().unwrap().source();
        proptest::prop_assert_eq!(resolved.overrides.sections.contains_key("a"), same);
        proptest::prop_assert_eq!(resolved.stale.len(), usize::from(!same));
    }
}
