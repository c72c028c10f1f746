//! The behaviours of `../behaviours.md`; `tests/house/behaviours.rs` checks that each has its test.

mod construction;
mod disclosing;
mod rendering;
mod reuse;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::load::{Files, load};
use crate::{Fault, Prompt, PromptTemplate};

/// Reads a prompt as the loader would: the manifest's `ns` and `key` are filled in, and `texts` are its files.
pub(crate) fn read(mut manifest: Value, texts: &[(&str, &str)]) -> Result<PromptTemplate, Vec<Fault>> {
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
