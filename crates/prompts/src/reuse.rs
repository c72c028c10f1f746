//! `"use": "shared/answer"`: a section of another prompt in this one, as it is or with changes.
//!
//! Worked out on the JSON of the manifest, before it is checked: a used section is a copy, with the fields that stand
//! beside `use` in place of its own. Its texts and its types come along; the copy shares nothing with the original.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::front;
use crate::load::Files;

/// How deep a used section may use others.
const DEEPEST: usize = 8;
const FORM: &str = "use names a prompt, `ns/key`, or one of its sections, `ns/key/section`";

/// What a prompt takes from others.
#[derive(Debug, Default)]
pub(crate) struct Reused {
    /// The texts of the used sections, by the name under which the manifest has them now.
    pub texts: BTreeMap<String, String>,
    /// The files that they were read from.
    pub files: BTreeSet<String>,
}

/// Puts the sections that a manifest uses into it. The fault names the section by its place.
pub(crate) fn expand(manifest: &mut Value, files: &Files) -> Result<Reused, String> {
    let mut reuse = Reuse { files, reused: Reused::default(), params: BTreeMap::new(), line: Vec::new() };
    if let Some(sections) = manifest.get_mut("sections").and_then(Value::as_array_mut) {
        sections.iter_mut().try_for_each(|section| reuse.section(section))?;
    }
    for (name, schema) in reuse.params {
        let own = manifest.as_object_mut().map(|fields| fields.entry("params").or_insert_with(|| json!({})));
        if let Some(types) = own.and_then(Value::as_object_mut) {
            match types.get(&name) {
                Some(other) if *other != schema.0 => return Err(format!("`{}` has another type `{name}`", schema.1)),
                _ => _ = types.insert(name, schema.0),
            }
        }
    }
    Ok(reuse.reused)
}

/// Whether a manifest uses anything.
pub(crate) fn is_used(json: &str) -> bool {
    json.contains("\"use\"")
}

struct Reuse<'a> {
    files: &'a Files,
    reused: Reused,
    /// The types of used sections, each with the prompt that it comes from.
    params: BTreeMap<String, (Value, String)>,
    /// The prompts that are being used, outermost first.
    line: Vec<String>,
}

impl Reuse<'_> {
    fn section(&mut self, section: &mut Value) -> Result<(), String> {
        let Some(fields) = section.as_object_mut() else { return Ok(()) };
        if let Some(used) = fields.remove("use") {
            let used = used.as_str().ok_or(FORM)?.to_owned();
            let mut copy = self.taken(&used)?;
            if let Some(whole) = copy.as_object_mut() {
                whole.append(fields);
            }
            *section = copy;
        }
        let children = section.get_mut("children").and_then(Value::as_array_mut);
        children.into_iter().flatten().try_for_each(|child| self.section(child))
    }

    /// A copy of the section that `used` names.
    fn taken(&mut self, used: &str) -> Result<Value, String> {
        let mut parts = used.splitn(3, '/');
        let (Some(ns), Some(key)) = (parts.next(), parts.next()) else { return Err(FORM.to_owned()) };
        let (id, path) = (format!("{ns}/{key}"), parts.next());
        if self.line.contains(&id) || self.line.len() >= DEEPEST {
            return Err(format!("`{id}` uses itself"));
        }
        let single = ["md", "txt"].iter().map(|end| format!("{id}.{end}")).find(|file| self.files.contains_key(file));
        if let Some(file) = single {
            let whole = self.text(&file)?;
            let (_, body, _) =
                front::split(&whole).map_err(|wrong| format!("`{id}` cannot be used: {}", wrong.message))?;
            let name = self.keep(&file, body.to_owned());
            return Ok(json!({"key": key, "title": key, "body": name}));
        }
        let file = format!("{id}/prompt.json");
        if !self.files.contains_key(&file) {
            return Err(format!("there is no prompt `{id}` to use"));
        }
        let text = self.text(&file)?;
        let whole: Value = crate::output::parse_json(&text).map_err(|why| format!("`{id}` cannot be used: {why}"))?;
        let mut copy = found(&whole, &id, path)?;
        self.line.push(id.clone());
        self.section(&mut copy)?;
        self.line.pop();
        self.own_texts(&mut copy, &id, &whole)?;
        Ok(copy)
    }

    /// Gives the texts and types of a section of `id`, and of those below it, a place in the prompt that uses them.
    fn own_texts(&mut self, section: &mut Value, id: &str, whole: &Value) -> Result<(), String> {
        let Some(fields) = section.as_object_mut() else { return Ok(()) };
        for field in ["body", "summary"] {
            let Some(name) = fields.get(field).and_then(Value::as_str) else { continue };
            let file = format!("{id}/{name}");
            if !self.reused.texts.contains_key(name) && self.files.contains_key(&file) {
                let text = self.text(&file)?;
                let kept = self.keep(&file, text);
                fields.insert(field.to_owned(), json!(kept));
            }
        }
        let record = fields.get("params").and_then(Value::as_str).map(str::to_owned);
        if let Some((name, schema)) =
            record.and_then(|name| Some((name.clone(), whole.pointer("/params")?.get(&name)?)))
        {
            match self.params.get(&name) {
                Some((other, _)) if other != schema => return Err(format!("`{id}` has another type `{name}`")),
                _ => _ = self.params.insert(name, (schema.clone(), id.to_owned())),
            }
        }
        let children = fields.get_mut("children").and_then(Value::as_array_mut);
        children.into_iter().flatten().try_for_each(|child| self.own_texts(child, id, whole))
    }

    /// Notes a text under a name that no file of the prompt can have.
    fn keep(&mut self, file: &str, text: String) -> String {
        self.reused.texts.insert(file.to_owned(), text);
        file.to_owned()
    }

    fn text(&mut self, file: &str) -> Result<String, String> {
        self.reused.files.insert(file.to_owned());
        let bytes = self.files.get(file).map(Vec::as_slice).unwrap_or_default();
        String::from_utf8(bytes.to_vec()).map_err(|_| format!("`{file}` is not UTF-8"))
    }
}

/// The section of a prompt at a path; without a path its only one.
fn found(whole: &Value, id: &str, path: Option<&str>) -> Result<Value, String> {
    let none = Vec::new();
    let sections = |of: &Value, name: &str| of.get(name).and_then(Value::as_array).cloned().unwrap_or(none.clone());
    let roots = sections(whole, "sections");
    let key_of = |section: &Value| section.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(path) = path else {
        return match &roots[..] {
            [one] => Ok(one.clone()),
            [] => Err(format!("`{id}` has no sections to use")),
            [first, ..] => {
                Err(format!("`{id}` has {} sections: name one, as in `{id}/{}`", roots.len(), key_of(first)))
            }
        };
    };
    let (mut level, mut section) = (roots, None);
    for key in path.split('/') {
        let next = level.iter().find(|section| key_of(section) == key).cloned();
        let next = next.ok_or_else(|| format!("`{id}` has no section `{}` to use", crate::names::clipped(path)))?;
        level = sections(&next, "children");
        section = Some(next);
    }
    section.ok_or_else(|| FORM.to_owned())
}
