//! The table of behaviours of `reference/prompts.md` §12, row by row. Rows that another language's reflection asked for
//! stand in `not_applicable` with the reason.

mod construction;
mod disclosing;
mod rendering;
mod shelf;

use std::sync::Arc;

use serde_json::{Value, json};

use super::load::{Files, load};
use super::{Fault, Prompt, PromptTemplate};

/// Reads a prompt as the loader would: the manifest's `ns` and `key` are filled in, and `texts` are its files.
pub(in crate::services::prompts) fn read(
    mut manifest: Value,
    texts: &[(&str, &str)],
) -> Result<PromptTemplate, Vec<Fault>> {
    for name in ["ns", "key"] {
        if manifest.get(name).is_none() {
            manifest[name] = json!("t");
        }
    }
    let mut files = Files::new();
    files.insert("t/t/prompt.json".to_owned(), serde_json::to_vec_pretty(&manifest).unwrap());
    for (name, text) in texts {
        files.insert(format!("t/t/{name}"), text.as_bytes().to_vec());
    }
    let mut loaded = load(&files, "p");
    assert_eq!(loaded.faults, []);
    loaded.prompts.remove("t/t").unwrap()
}

/// The prompt, ready to be bound.
pub(super) fn prompt(manifest: Value, texts: &[(&str, &str)]) -> Prompt {
    Prompt::new(Arc::new(read(manifest, texts).unwrap_or_else(|faults| panic!("{}", lines(&faults)))))
}

pub(super) fn refused(manifest: Value, texts: &[(&str, &str)]) -> String {
    lines(&read(manifest, texts).expect_err("should be refused"))
}

pub(super) fn lines(faults: &[Fault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<String>>().join("\n")
}

/// A record with one text field, required.
pub(super) fn text_field(name: &str) -> Value {
    json!({"type": "object", "required": [name], "properties": {name: {"type": "string"}}})
}

pub(super) fn shown(prompt: &Prompt) -> String {
    prompt.render().map_or_else(|fault| format!("! {fault}"), |rendered| rendered.text)
}

/// Rows of the table that do not fit, each with its reason.
#[test]
fn every_row_that_does_not_fit_has_its_reason() {
    let not_applicable = [
        (9, "a template is behind an Arc and has no way to be changed"),
        (16, "children are sections by their type; anything else is a syntax fault with its line"),
        (21, "nodes own their defaults, placeholders and tools: there is no second index to disagree"),
        (44, "a record is made from its schema, not by a constructor that could return something else"),
        (45, "there are no classes to bind; a value that is no record is refused"),
        (49, "records are known by name; there are no subclasses"),
        (51, "sections hold no code that could raise; what can fail at render names path and type"),
        (52, "as 51: the fault is made where path and type are known"),
        (54, "conditions are data and cannot raise"),
        (55, "conditions are data; there are no signatures to tell apart"),
        (57, "slotted records are a matter of the origin's language"),
        (75, "set and clear are writes to a section's visibility file; a cloned prompt has its own session"),
        (109, "a result type is a JSON Schema; what is none is refused"),
        (111, "a tool is an operation of a service, whose words and types come from its contract"),
    ];
    assert!(not_applicable.iter().all(|(_, reason)| !reason.is_empty()));
}
