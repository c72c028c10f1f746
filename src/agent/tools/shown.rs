//! Results as a model reads them: short. A listing has names instead of repeated paths, or is a tree by its indentation; what
//! says nothing new is left out. Transcripts and `acheron tool` keep the whole.

use serde_json::{Map, Value, json};

/// The short form of a result.
pub fn shown(result: &Value) -> Value {
    let Some(whole) = result.as_object() else { return result.clone() };
    if let Some(entries) = whole.get("entries").and_then(Value::as_array) {
        return listing(whole, entries);
    }
    let told = |key: &str, value: &Value| match key {
        "path" => false,
        "ready" | "truncated" => *value == Value::Bool(key == "truncated"),
        "bytes" => whole["truncated"] == true,
        "bytes_written" => !whole.contains_key("job_id"),
        _ => true,
    };
    match whole.contains_key("content") || whole.contains_key("bytes_written") {
        true => whole.iter().filter(|(key, value)| told(key, value)).map(|(k, v)| (k.clone(), v.clone())).collect(),
        false => result.clone(),
    }
}

/// One entry: the names of its path below the listed directory, and its kind.
type Named<'a> = (Vec<&'a str>, &'a str);

fn listing(whole: &Map<String, Value>, entries: &[Value]) -> Value {
    let asked = whole.get("path").and_then(Value::as_str).unwrap_or_default().trim_end_matches('/');
    let named = |entry| -> Named<'_> {
        let path = word(entry, "path");
        let below = path.strip_prefix(asked).map_or(path, |rest| rest.trim_start_matches('/'));
        (below.split('/').collect(), word(entry, "type"))
    };
    let mut names: Vec<Named<'_>> = entries.iter().map(named).collect();
    let mut shown = match names.iter().any(|(path, _)| path.len() > 1) {
        true => json!({ "tree": tree(&mut names) }),
        false => by_kind(&names),
    };
    if whole.get("truncated") == Some(&Value::Bool(true)) {
        shown["truncated"] = true.into();
    }
    shown
}

fn word<'v>(entry: &'v Value, key: &str) -> &'v str {
    entry[key].as_str().unwrap_or_default()
}

/// The names of one directory, by their kind.
fn by_kind(names: &[Named<'_>]) -> Value {
    let mut shown = json!({});
    for (kind, key) in [("directory", "directories"), ("file", "files"), ("link", "links")] {
        let of: Vec<String> = names.iter().filter(|name| name.1 == kind).map(|name| plain(name.0[0])).collect();
        if !of.is_empty() {
            shown[key] = of.join(" ").into();
        }
    }
    match shown.as_object().is_some_and(Map::is_empty) {
        true => json!({"files": ""}),
        false => shown,
    }
}

/// One line per name, below the directory that it is in; directories end with `/`, links with `@`.
fn tree(names: &mut [Named<'_>]) -> String {
    names.sort();
    let mut tree = String::new();
    for (path, kind) in names.iter() {
        let mark = match *kind {
            "directory" => "/",
            "link" => "@",
            _ => "",
        };
        let name = path.last().copied().unwrap_or_default();
        tree.push_str(&format!("{:depth$}{}{mark}\n", "", plain(name), depth = path.len() - 1));
    }
    tree
}

/// A name; in quotes if it could be taken for two.
fn plain(name: &str) -> String {
    match name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"') {
        true => Value::from(name).to_string(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_reads_names_and_nothing_that_it_knows() {
        let entry = |path: &str, kind: &str| json!({"path": path, "type": kind, "size": 7});
        let flat = json!({"path": "agents/self/", "truncated": false, "entries": [
            entry("agents/self/chat", "directory"), entry("agents/self/a b", "file"), entry("agents/self/c", "file"),
            entry("agents/self/memory", "directory"), entry("agents/self/to", "link")]});
        assert_eq!(shown(&flat), json!({"directories": "chat memory", "files": "\"a b\" c", "links": "to"}));
        let deep = json!({"path": ".", "truncated": true, "entries": [entry("src", "directory"), entry("a-b", "file"),
            entry("src/lib", "directory"), entry("src/main.rs", "file"), entry("src/lib/a.rs", "file")]});
        assert_eq!(shown(&deep), json!({"tree": "a-b\nsrc/\n lib/\n  a.rs\n main.rs\n", "truncated": true}));
        assert_eq!(shown(&json!({"path": "/", "entries": [], "truncated": false})), json!({"files": ""}));
        let read = json!({"path": "a", "content": "x", "bytes": 1, "truncated": false, "ready": true});
        assert_eq!(shown(&read), json!({"content": "x"}));
        let part = json!({"path": "a", "content": "x", "bytes": 1, "truncated": true, "ready": true, "lossy": true});
        assert_eq!(shown(&part), json!({"content": "x", "bytes": 1, "truncated": true, "lossy": true}));
        let later = json!({"path": "a", "content": "", "bytes": 0, "truncated": false, "ready": false});
        assert_eq!(shown(&later), json!({"content": "", "ready": false}));
        let wrote = json!({"path": "a", "bytes_written": 2, "ready": true});
        assert_eq!(shown(&wrote), json!({"bytes_written": 2}));
        let called = json!({"path": "a", "bytes_written": 2, "ready": true, "job_id": "job-1"});
        assert_eq!(shown(&called), json!({"job_id": "job-1"}));
    }
}
