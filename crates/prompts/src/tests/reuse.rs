//! Sections that several prompts share, and prompts that name their limits.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{lines, refused, shown, text_field};
use crate::load::{Files, Loaded, again, load};
use crate::overrides::{OverrideChange, OverrideFile};
use crate::{Prompt, PromptTemplate};

fn files(all: &[(&str, &str)]) -> Files {
    all.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
}

fn take(loaded: &mut Loaded, id: &str) -> PromptTemplate {
    loaded.prompts.remove(id).unwrap().unwrap_or_else(|faults| panic!("{}", lines(&faults)))
}

fn shared() -> Vec<(&'static str, String)> {
    let answer = json!({"ns": "shared", "key": "answer", "params": {"Form": text_field("form")}, "sections": [
        {"key": "answer", "title": "Answer", "params": "Form", "default": {"form": "prose"}, "body": "answer.md",
         "children": [{"key": "tone", "title": "Tone", "body": "tone.md"}]}]});
    vec![
        ("shared/answer/prompt.json", answer.to_string()),
        ("shared/answer/answer.md", "Answer in $form.".to_owned()),
        ("shared/answer/tone.md", "Be calm.".to_owned()),
        ("shared/rules.md", "Tell the truth.".to_owned()),
    ]
}

fn with(manifest: &Value, texts: &[(&str, &str)]) -> Files {
    let mut all: Files = shared().into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes())).collect();
    let mut manifest = manifest.clone();
    (manifest["ns"], manifest["key"]) = (json!("t"), json!("t"));
    all.insert("t/t/prompt.json".to_owned(), manifest.to_string().into_bytes());
    all.extend(texts.iter().map(|(name, text)| (format!("t/t/{name}"), text.as_bytes().to_vec())));
    all
}

#[test]
fn a_section_of_another_prompt_is_used_as_it_is_or_with_changes() {
    let manifest = json!({"sections": [
        {"use": "shared/rules"},
        {"use": "shared/answer"},
        {"use": "shared/answer", "key": "short", "title": "In short", "default": {"form": "one line"}, "children": []},
        {"use": "shared/answer/answer/tone", "body": "own.md"}]});
    let all = with(&manifest, &[("own.md", "Be wild.")]);
    let template = take(&mut load(&all, "p"), "t/t");
    let expected = "## 1. rules\n\nTell the truth.\n\n## 2. Answer\n\nAnswer in prose.\n\n### 2.1. Tone\n\nBe calm.\n\n\
        ## 3. In short\n\nAnswer in one line.\n\n## 4. Tone\n\nBe wild.";
    assert_eq!(shown(&Prompt::new(Arc::new(template))), expected);
    let template = take(&mut load(&all, "p"), "t/t");
    let kept = again("t/t", &template.sources).unwrap();
    assert_eq!(shown(&Prompt::new(Arc::new(kept))), expected, "what it uses is kept with it");
}

#[test]
fn a_section_that_cannot_be_used_says_why() {
    let mut circle = files(&[
        ("a/a/prompt.json", r#"{"ns":"a","key":"a","sections":[{"use":"b/b"}]}"#),
        ("b/b/prompt.json", r#"{"ns":"b","key":"b","sections":[{"use":"a/a"}]}"#),
    ]);
    circle.extend(files(&[(
        "a/two/prompt.json",
        r#"{"ns":"a","key":"two","sections":[
        {"key":"x","title":"X"},{"key":"y","title":"Y"}]}"#,
    )]));
    let told = |manifest: Value, more: Files| {
        let mut all = with(&manifest, &[]);
        all.extend(more);
        lines(&load(&all, "p").prompts.remove("t/t").unwrap().unwrap_err())
    };
    for (used, expected) in [
        (json!("shared/nothing"), "there is no prompt `shared/nothing` to use"),
        (json!("shared/answer/answer/none"), "`shared/answer` has no section `answer/none` to use"),
        (json!("a/two"), "`a/two` has 2 sections: name one, as in `a/two/x`"),
        (json!("a/a"), "`a/a` uses itself"),
        (json!(7), "use names a prompt, `ns/key`, or one of its sections, `ns/key/section`"),
        (json!("rules"), "use names a prompt, `ns/key`, or one of its sections, `ns/key/section`"),
    ] {
        let said = told(json!({"sections": [{"use": used}]}), circle.clone());
        assert!(said.contains(expected), "{used}: {said}");
    }
    let clash = json!({"params": {"Form": text_field("other")}, "sections": [{"use": "shared/answer"}]});
    let said = told(clash, Files::new());
    assert!(said.contains("`shared/answer` has another type `Form`"), "{said}");
}

#[test]
fn a_bad_visibility_names_its_section_and_the_words() {
    let manifest = json!({"sections": [{"key": "a", "title": "A", "children": [
        {"key": "b", "title": "B", "visibility": "sumary"}]}]});
    let said = refused(manifest, &[]);
    assert!(said.contains("visibility is `full`, `summary` or {\"summary_when\": …}, not \"sumary\""), "{said}");
    assert!(said.contains("section a/b"), "{said}");
    let file = json!({"version": 2, "ns": "t", "prompt_key": "t", "tag": "latest", "sections": {
        "a/b": {"path": ["a", "b"], "expected_hash": "0".repeat(64), "body": "x", "visibility": "hidden"}}});
    let said = OverrideFile::read(file.to_string().as_bytes(), "f").unwrap_err().to_string();
    assert!(said.contains("section a/b: visibility is `full` or `summary`, not \"hidden\""), "{said}");
}

#[test]
fn the_description_of_a_tool_and_of_its_params_are_overridden_apart() {
    let template = super::read(
        json!({"sections": [{"key": "a", "title": "A", "tools": [{"name": "x.y", "description": "Does.",
            "params": {"type": "object", "properties": {"p": {"type": "string"}, "q": {"type": "string"}}}}]}]}),
        &[],
    )
    .unwrap();
    let mut file = OverrideFile::new("t", "t", "latest");
    for change in [
        json!({"target": "tool", "name": "x.y", "description": "Does it."}),
        json!({"target": "tool", "name": "x.y", "param_descriptions": {"p": "the p"}}),
        json!({"target": "tool", "name": "x.y", "param_descriptions": {"q": "the q"}}),
    ] {
        let change: OverrideChange = serde_json::from_value(change).unwrap();
        change.put(&template, &mut file).unwrap();
    }
    let entry = &file.tools["x.y"];
    assert_eq!(entry.description.as_deref(), Some("Does it."));
    assert_eq!(json!(entry.param_descriptions), json!({"p": "the p", "q": "the q"}));
}

#[test]
fn a_file_of_another_version_belongs_to_no_prompt() {
    let mut file = OverrideFile::new("t", "t", "latest");
    file.belongs("t", "t", "latest").unwrap();
    file.version = 9;
    let said = file.belongs("t", "t", "latest").unwrap_err().to_string();
    assert_eq!(said, "an override file has version 2, not 9");
}

#[test]
fn a_prompt_may_have_a_time_limit() {
    let limited = super::read(json!({"time_limit_ms": 1500, "sections": []}), &[]).unwrap();
    assert_eq!(limited.time_limit_ms, Some(1500));
    assert!(refused(json!({"time_limit_ms": 0, "sections": []}), &[]).contains("time_limit_ms is at least 1"));
}
