//! Prompts as files: what there is under `templates/`, what is open under `open/`.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use serde_json::{Value, json};

use super::opened::{Opened, whole_json};
use super::openings::Openings;
use crate::service::WithoutCall;
use acheron_base::{Error, Result, blocking};
use acheron_prompts::manifest::Visibility;
use acheron_prompts::{Fault, PromptTemplate, names};
use acheron_vfs::{Answer, Caller, Item, Listing, Node, STARTED, Stat, VersionStore, VirtualDir, live, pretty};

pub fn files(openings: &Arc<Openings>) -> Vec<(String, Node)> {
    let library = openings.library.clone();
    vec![
        ("templates".to_owned(), Node::dir(templates(openings))),
        ("open".to_owned(), Node::dir(open(openings))),
        ("faults.json".to_owned(), Node::file(live(move |_| Ok(pretty(&library.faults()))))),
    ]
}

fn templates(openings: &Arc<Openings>) -> VirtualDir {
    let (names, find) = (openings.clone(), openings.clone());
    let spaces = move || {
        let mut all: Vec<String> = names.library.list().into_iter().map(|(template, _)| template.ns.clone()).collect();
        all.dedup();
        all
    };
    VirtualDir::new(spaces, move |ns| {
        let there = !find.library.namespace(ns).is_empty();
        there.then(|| Node::dir(namespace(&find, ns)))
    })
}

fn namespace(openings: &Arc<Openings>, ns: &str) -> VirtualDir {
    let (names, find) = (openings.clone(), openings.clone());
    let (ns, of) = (ns.to_owned(), ns.to_owned());
    let keys = move || names.library.namespace(&of).iter().map(|template| template.key.clone()).collect();
    VirtualDir::new(keys, move |key| {
        let there = find.library.get(&ns, key).is_ok();
        there.then(|| Node::dir(template_files(&find, &ns, key)))
    })
}

/// Computed at each call, since an edit may replace the prompt while its directory is open.
fn template_files(openings: &Arc<Openings>, ns: &str, key: &str) -> Listing {
    let shown = |show: fn(&PromptTemplate) -> Bytes| {
        let (library, ns, key) = (openings.library.clone(), ns.to_owned(), key.to_owned());
        live(move |_: &Caller| Ok(show(&*library.get(&ns, &key)?)))
    };
    Listing::default()
        .file("README.md", shown(|template| readme(template).into()))
        .file("schema.json", shown(|template| pretty(&schema(template))))
        .file("sections.json", shown(|template| pretty(&sections(template))))
        .file("descriptor.json", shown(|template| pretty(&*template.descriptor())))
}

/// A summary to read before opening it.
pub fn readme(template: &PromptTemplate) -> String {
    let mut out = format!("# {}\n\n", template.name.as_deref().unwrap_or(&template.id()));
    out.push_str("Sections:\n\n");
    for node in &template.nodes {
        let indent = "  ".repeat(node.depth);
        out.push_str(&format!("{indent}- {} {} (`{}`)\n", node.number, node.section.title, node.path));
    }
    for record in template.records.values() {
        let fields: Vec<String> = record.fields().map(|field| format!("`{field}`")).collect();
        out.push_str(&format!("\nParams `{}`: {}\n", record.name, fields.join(", ")));
    }
    let tools: Vec<String> = template.tools().map(|(_, tool)| format!("`{}`", tool.name)).collect();
    if !tools.is_empty() {
        out.push_str(&format!("\nTools: {}\n", tools.join(", ")));
    }
    if let Some(output) = &template.output {
        let container = if output.container == acheron_prompts::manifest::Container::Array { "a list of " } else { "" };
        out.push_str(&format!("\nThe answer is {container}`{}`; `schema.json` has the types.\n", output.name));
    }
    out.push_str(&format!("\nOpen it: `echo '{{\"prompt\": \"{}\"}}' > ../../../control/open.json`\n", template.id()));
    out
}

fn schema(template: &PromptTemplate) -> Value {
    let params: serde_json::Map<String, Value> =
        template.records.iter().map(|(name, record)| (name.clone(), record.schema.clone())).collect();
    json!({"params": params, "output": template.output.as_ref().map(acheron_prompts::output::Output::whole)})
}

fn sections(template: &PromptTemplate) -> Value {
    let all = template.nodes.iter().map(|node| {
        json!({
            "path": node.path, "number": node.number, "title": node.section.title, "kind": node.section.kind,
            "params": node.section.record.as_ref().map(|record| &record.name),
            "enabled": node.section.enabled, "visibility": node.section.visibility,
            "accepts_overrides": node.section.accepts_overrides,
            "tools": node.section.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
            "placeholders": node.section.body.iter().flat_map(|body| body.fields()).map(|field| &field.name).collect::<Vec<_>>(),
        })
    });
    Value::Array(all.collect())
}

fn open(openings: &Arc<Openings>) -> VirtualDir {
    let (names, find) = (openings.clone(), openings.clone());
    VirtualDir::new(
        move || names.ids(),
        move |id| find.get(id).ok().map(|opened| Node::dir(opened_files(&find, &opened))),
    )
}

fn opened_files(openings: &Arc<Openings>, opened: &Arc<Opened>) -> Listing {
    let shown = |show: fn(&Opened) -> Result<Bytes>| {
        let opened = opened.clone();
        live(move |_: &Caller| show(&opened))
    };
    let (keeper, of) = (openings.clone(), opened.clone());
    let status = live(move |_: &Caller| Ok(pretty(&status(&keeper, &of))));
    let template = opened.prompt().template;
    let mut params = Listing::default();
    for name in template.records.keys() {
        params = params.file(&format!("{name}.json"), item(openings, opened, WritableFile::Params(name.clone())));
    }
    Listing::default()
        .dir("params", params)
        .dir("sections", sections_below(openings, opened, None))
        .file("text", shown(|opened| Ok((opened.render()?.text + "\n").into())))
        .file("rendered.json", shown(|opened| Ok(pretty(&opened.render()?))))
        .file("tools.json", shown(|opened| Ok(pretty(&opened.render()?.tools))))
        .file("output.json", shown(|opened| Ok(pretty(&opened.output()?))))
        .file("error.json", shown(|opened| Ok(pretty(&opened.error()))))
        .file("repairs.json", shown(|opened| Ok(pretty(&opened.repairs()))))
        .file("status.json", status)
        .file("session.json", item(openings, opened, WritableFile::Session))
        .file("reply", item(openings, opened, WritableFile::Reply))
}

fn status(openings: &Openings, opened: &Opened) -> Value {
    let (prompt, stale) = (opened.prompt(), openings.stale(opened));
    json!({"prompt": prompt.template.id(), "tag": opened.tag, "opened_at_ms": opened.opened_at_ms,
        "deadline_ms": prompt.deadline_ms, "time_limit_ms": opened.time_limit_ms(), "stale": stale.is_some(), "stale_because": stale})
}

/// The sections below one, or at the root. Worked out name by name: a prompt may have many.
fn sections_below(openings: &Arc<Openings>, opened: &Arc<Opened>, parent: Option<usize>) -> VirtualDir {
    let template = opened.prompt().template;
    let below = move |template: &PromptTemplate| -> Vec<(String, usize)> {
        let nodes = template.nodes.iter().enumerate().filter(|(_, node)| node.parent == parent);
        nodes.map(|(index, node)| (node.section.key.clone(), index)).collect()
    };
    let (openings, opened, of) = (openings.clone(), opened.clone(), template.clone());
    let own = parent.map(|index| template.nodes[index].path.clone());
    let files: &[&str] = if parent.is_some() { &["full", "summary", "visibility"] } else { &[] };
    let names = move || {
        let keys = below(&of).into_iter().map(|(key, _)| key);
        keys.chain(files.iter().map(ToString::to_string)).collect()
    };
    VirtualDir::new(names, move |name| {
        if let (Some(path), true) = (&own, files.contains(&name)) {
            return Some(section_file(&openings, &opened, path, name));
        }
        let found = below(&template).into_iter().find(|(key, _)| key == name);
        found.map(|(_, index)| Node::dir(sections_below(&openings, &opened, Some(index))))
    })
}

fn section_file(openings: &Arc<Openings>, opened: &Arc<Opened>, path: &str, name: &str) -> Node {
    let shown = |show: fn(&Opened, &str) -> Result<String, Fault>| {
        let (opened, path) = (opened.clone(), path.to_owned());
        Node::file(live(move |_: &Caller| Ok((show(&opened, &path)? + "\n").into())))
    };
    match name {
        "full" => shown(|opened, path| opened.prompt().full(path)),
        "summary" => shown(|opened, path| opened.prompt().short(path)),
        _ => Node::file(item(openings, opened, WritableFile::Visibility(path.to_owned()))),
    }
}

/// A file of an open prompt that can be written, and what writing it means.
struct Field {
    openings: Arc<Openings>,
    opened: Arc<Opened>,
    what: WritableFile,
}

#[derive(Clone)]
enum WritableFile {
    Params(String),
    Session,
    Reply,
    Visibility(String),
}

fn item(openings: &Arc<Openings>, opened: &Arc<Opened>, what: WritableFile) -> Item {
    Item::new(Arc::new(Field { openings: openings.clone(), opened: opened.clone(), what }))
}

impl Field {
    fn now(&self) -> Bytes {
        match &self.what {
            WritableFile::Params(name) => {
                let prompt = self.opened.prompt();
                let record = prompt.template.records.get(name);
                let empty = || record.map_or(Value::Null, |record| record.completed(&serde_json::Map::new()));
                pretty(&prompt.bound(name).cloned().unwrap_or_else(empty))
            }
            WritableFile::Session => pretty(&self.opened.prompt().session.values),
            WritableFile::Reply => self.opened.reply().unwrap_or_default().into(),
            WritableFile::Visibility(path) => {
                let prompt = self.opened.prompt();
                let view = acheron_prompts::view::View::new(&prompt);
                let shown = prompt.template.at(path).map_or(Visibility::Full, |index| view.visibility(index));
                if shown == Visibility::Full { "full\n".into() } else { "summary\n".into() }
            }
        }
    }

    fn take(&self, bytes: &[u8]) -> Result<()> {
        match &self.what {
            WritableFile::Params(name) => self.opened.bind_text(name, bytes)?,
            WritableFile::Session => match acheron_prompts::output::parse_json_bytes(bytes) {
                Ok(Value::Object(values)) => self.opened.set_session(values),
                _ => return Err(Error::invalid(SESSION_FORM)),
            },
            WritableFile::Reply => {
                let reply = std::str::from_utf8(bytes).map_err(|_| Error::invalid("the reply is not UTF-8"))?;
                // A reply without an output is a reply all the same: error.json says what is wrong with it.
                let _ = self.opened.take_reply(reply);
            }
            WritableFile::Visibility(path) => match visibility(path, bytes)? {
                Some(visibility) => self.opened.set_visibility(path, visibility)?,
                None => return Err(no_visibility(path, bytes)),
            },
        }
        Ok(())
    }
}

const SESSION_FORM: &str = "a session is one JSON object";

/// The visibility that a text names; none if more of the word may follow.
fn visibility(path: &str, bytes: &[u8]) -> Result<Option<Visibility>> {
    match std::str::from_utf8(bytes).unwrap_or("?").trim() {
        "full" => Ok(Some(Visibility::Full)),
        "summary" => Ok(Some(Visibility::Summary)),
        word if ["full", "summary"].iter().any(|whole| whole.starts_with(word)) => Ok(None),
        _ => Err(no_visibility(path, bytes)),
    }
}

fn no_visibility(path: &str, bytes: &[u8]) -> Error {
    let word = names::clipped(String::from_utf8_lossy(bytes).trim());
    Error::invalid(format!("section {path}: visibility is `full` or `summary`, not \"{word}\""))
}

impl VersionStore for Field {
    /// What is known to be wrong while it is written is refused then: a shell does not hear what is refused at the close.
    fn check(&self, _caller: &Caller, draft: &[u8], _new: Range<usize>) -> Result<()> {
        match &self.what {
            WritableFile::Params(name) => self.opened.check_params(name, draft),
            WritableFile::Session => match whole_json(draft, SESSION_FORM)? {
                None | Some(Value::Object(_)) => Ok(()),
                Some(_) => Err(Error::invalid(SESSION_FORM)),
            },
            WritableFile::Reply => match std::str::from_utf8(draft) {
                Err(error) if error.error_len().is_some() => Err(Error::invalid("the reply is not UTF-8")),
                _ => Ok(()),
            },
            WritableFile::Visibility(path) => match visibility(path, draft)? {
                Some(visibility) => self.opened.check_visibility(path, visibility),
                None => Ok(()),
            },
        }
    }

    fn stat(&self) -> Stat {
        let modified: SystemTime = STARTED;
        Stat { size: self.now().len() as u64, modified }
    }

    fn latest(&self) -> Answer<Bytes> {
        Answer::ok(self.now())
    }

    fn save(&self, _caller: &Caller, bytes: Bytes) -> Answer<()> {
        if let Err(error) = self.take(&bytes) {
            return Answer::refuse(error);
        }
        let (openings, opened) = (self.openings.clone(), self.opened.clone());
        Answer::soon(blocking(move || openings.save(&WithoutCall, &opened, Value::Null)))
    }
}
