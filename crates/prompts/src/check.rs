//! Checks the declaration of a prompt and builds it: every rule that can be broken before anything is
//! rendered is looked at here, once, and every fault says where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::condition::Condition;
use crate::fault::Fault;
use crate::front::Front;
use crate::locate::{Step, locate};
use crate::manifest::{Headings, Manifest, Need, Part, PartKind, Selector, Shape, Visibility};
use crate::names;
use crate::output::Output;
use crate::record::Record;
use crate::template::{Dialect, Template};
use crate::tool::Tool;
use crate::tree::{Node, PromptTemplate, Section};

const DEPTH: usize = 16;
const SECTIONS: usize = 2000;
/// The files that stand beside a section's children in an open prompt.
const FILES: [&str; 3] = ["full", "summary", "visibility"];

/// Where the words of a prompt come from.
pub struct Source<'a> {
    /// The folder, as faults name it.
    pub folder: &'a str,
    /// The text of `prompt.json`, if there is one.
    pub manifest: Option<&'a str>,
    /// The texts of bodies and summaries by the name of their file.
    pub texts: &'a BTreeMap<String, String>,
}

/// The prompt, or everything that is wrong with it.
pub fn build(manifest: &Manifest, source: &Source<'_>) -> Result<PromptTemplate, Vec<Fault>> {
    let mut check =
        Check { source, faults: Vec::new(), nodes: Vec::new(), records: BTreeMap::new(), used: BTreeSet::new() };
    let ns = check.key("prompt namespace", &manifest.ns, &["ns".into()]);
    let key = check.key("prompt key", &manifest.key, &["key".into()]);
    for (name, schema) in &manifest.params {
        match Record::new(name, schema.clone()) {
            Ok(record) => {
                check.records.insert(name.clone(), Arc::new(record));
            }
            Err(why) => check.say(Fault::validation(why).record(name), &["params".into(), name.as_str().into()]),
        }
    }
    check.needs(&manifest.resources, &[]);
    if manifest.time_limit_ms == Some(0) {
        check.say(Fault::validation("time_limit_ms is at least 1"), &["time_limit_ms".into()]);
    }
    let output = manifest.output.as_ref().and_then(|shape| check.output(shape));
    check.siblings(&manifest.sections, None, 0, "", &mut vec!["sections".into()]);
    check.unique_tools();
    check.task_examples(output.as_ref(), manifest.output.is_some());
    check.idle_texts();
    if !check.faults.is_empty() {
        return Err(check.faults);
    }
    Ok(PromptTemplate {
        ns,
        key,
        name: manifest.name.clone(),
        headings: manifest.headings,
        nodes: check.nodes,
        records: check.records,
        output,
        resources: manifest.resources.clone(),
        time_limit_ms: manifest.time_limit_ms,
        front: Front::default(),
        single: false,
        sources: BTreeMap::new(),
        descriptor: OnceLock::new(),
    })
}

/// The words that say how much of a section is shown, of every section of a manifest: serde could not name the section.
pub(crate) fn visibility_words(manifest: &Value) -> Result<(), Fault> {
    let mut left: Vec<(String, &Value)> = vec![(String::new(), manifest)];
    while let Some((path, part)) = left.pop() {
        match part.get("visibility") {
            None | Some(Value::Object(_)) => (),
            Some(Value::String(word)) if word == "full" || word == "summary" => (),
            Some(other) => {
                let said = format!("visibility is `full`, `summary` or {{\"summary_when\": …}}, not {other}");
                return Err(Fault::validation(said).section(path));
            }
        }
        for name in ["sections", "children"] {
            for child in part.get(name).and_then(Value::as_array).into_iter().flatten() {
                let key = child.get("key").or_else(|| child.get("use")).and_then(Value::as_str).unwrap_or("?");
                left.push((if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") }, child));
            }
        }
    }
    Ok(())
}

/// A prompt of one file: one section without a heading, whose params are what its text asks for.
pub fn single(
    ns: &str,
    key: &str,
    file: &str,
    text: &str,
    front: Front,
    above: usize,
) -> Result<PromptTemplate, Fault> {
    let (ns, key) = (names::key("prompt namespace", ns), names::key("prompt key", key));
    let (ns, key) = (ns.map_err(|fault| fault.at(file, 1, 1))?, key.map_err(|fault| fault.at(file, 1, 1))?);
    let body = Template::parse(text, front.dialect)
        .map_err(|wrong| Fault::validation(wrong.message).at(file, wrong.line + above, wrong.column))?;
    let record = Record::asked_by(&body, front.dialect).map_err(|why| Fault::validation(why).at(file, 1, 1))?;
    let record = Arc::new(record);
    let has_params = !body.fields().is_empty();
    let section = Section {
        key: "body".to_owned(),
        title: key.clone(),
        kind: PartKind::Markdown,
        record: has_params.then(|| record.clone()),
        default: None,
        body: Some(body),
        summary: None,
        enabled: Condition::default(),
        visibility: Selector::default(),
        accepts_overrides: true,
        tools: Vec::new(),
        examples: Vec::new(),
        project: None,
        resources: BTreeMap::new(),
    };
    let node = Node { path: "body".to_owned(), number: "1".to_owned(), depth: 0, end: 1, parent: None, section };
    Ok(PromptTemplate {
        ns,
        key,
        name: None,
        headings: Headings::None,
        nodes: vec![node],
        records: has_params.then(|| (record.name.clone(), record)).into_iter().collect(),
        output: None,
        resources: BTreeMap::new(),
        time_limit_ms: None,
        front,
        single: true,
        sources: BTreeMap::new(),
        descriptor: OnceLock::new(),
    })
}

struct Check<'a> {
    source: &'a Source<'a>,
    faults: Vec<Fault>,
    nodes: Vec<Node>,
    records: BTreeMap<String, Arc<Record>>,
    /// The files that some section names.
    used: BTreeSet<String>,
}

impl Check<'_> {
    /// Notes a fault; where it has no place yet, its place is that of a value in `prompt.json`.
    fn say(&mut self, fault: Fault, steps: &[Step]) {
        let fault = match self.source.manifest {
            Some(text) if fault.whereabouts.spot.is_none() => {
                let (line, column) = locate(text, steps);
                fault.at(format!("{}/prompt.json", self.source.folder), line, column)
            }
            _ => fault,
        };
        self.faults.push(fault);
    }

    fn key(&mut self, what: &str, given: &str, steps: &[Step]) -> String {
        names::key(what, given).unwrap_or_else(|fault| {
            self.say(fault, steps);
            given.to_owned()
        })
    }

    fn siblings(&mut self, parts: &[Part], parent: Option<usize>, depth: usize, above: &str, steps: &mut Vec<Step>) {
        let mut seen = BTreeSet::new();
        for (index, part) in parts.iter().enumerate() {
            if depth >= DEPTH || self.nodes.len() >= SECTIONS {
                let limit = format!("a prompt has at most {SECTIONS} sections, {DEPTH} deep");
                return self.say(Fault::validation(limit), steps);
            }
            steps.push(index.into());
            let number = match parent {
                Some(parent) => format!("{}.{}", self.nodes[parent].number, index + 1),
                None => (index + 1).to_string(),
            };
            self.part(part, parent, depth, above, &number, steps, &mut seen);
            steps.pop();
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn part(
        &mut self,
        part: &Part,
        parent: Option<usize>,
        depth: usize,
        above: &str,
        number: &str,
        steps: &mut Vec<Step>,
        seen: &mut BTreeSet<String>,
    ) {
        let at = |steps: &[Step], name: &str| [steps, &[name.into()]].concat();
        let key = self.key("section key", &part.key, &at(steps, "key"));
        let path = if above.is_empty() { key.clone() } else { format!("{above}/{key}") };
        if !seen.insert(key.clone()) {
            let fault = Fault::validation(format!("two sections beside each other have the key `{key}`"));
            self.say(fault.section(&path), &at(steps, "key"));
        }
        if !above.is_empty() && FILES.contains(&key.as_str()) {
            let fault = Fault::validation(format!("a section inside another cannot have the key `{key}`"));
            self.say(fault.section(&path), &at(steps, "key"));
        }
        if part.title.trim().is_empty() || part.title.trim().contains('\n') {
            let fault = Fault::validation("a section's title must be one line that is not empty");
            self.say(fault.section(&path), &at(steps, "title"));
        }
        let record = part.params.as_ref().and_then(|name| {
            let record = self.records.get(name).cloned();
            if record.is_none() {
                let fault = Fault::validation(format!("params type `{name}` is not declared under params"));
                self.say(fault.section(&path).record(name), &at(steps, "params"));
            }
            record
        });
        let (body, summary) = (
            part.body.as_ref().and_then(|file| self.text(file, &path, part, record.as_deref(), &at(steps, "body"))),
            part.summary
                .as_ref()
                .and_then(|file| self.text(file, &path, part, record.as_deref(), &at(steps, "summary"))),
        );
        let default = self.default(part, &path, record.as_deref(), &at(steps, "default"));
        self.selectors(part, &path, record.as_deref(), steps);
        self.kind(part, &path, steps);
        self.needs(&part.resources, steps);
        let mut tools = Vec::new();
        for (index, tool) in part.tools.iter().enumerate() {
            match Tool::read(tool) {
                Ok(tool) => tools.push(tool),
                Err(fault) => self.say(fault.section(&path), &[&steps[..], &["tools".into(), index.into()]].concat()),
            }
        }
        let index = self.nodes.len();
        let section = Section {
            key,
            title: part.title.trim().to_owned(),
            kind: part.kind,
            record,
            default,
            body,
            summary,
            enabled: part.enabled.clone(),
            visibility: part.visibility.clone(),
            accepts_overrides: part.accepts_overrides.unwrap_or(part.kind != PartKind::Workspace),
            tools,
            examples: part.examples.clone(),
            project: part.project.clone(),
            resources: part.resources.clone(),
        };
        self.nodes.push(Node { path: path.clone(), number: number.to_owned(), depth, end: 0, parent, section });
        steps.push("children".into());
        self.siblings(&part.children, Some(index), depth + 1, &path, steps);
        steps.pop();
        self.nodes[index].end = self.nodes.len();
    }

    fn text(
        &mut self,
        file: &str,
        path: &str,
        part: &Part,
        record: Option<&Record>,
        steps: &[Step],
    ) -> Option<Template> {
        let Some(text) = self.source.texts.get(file) else {
            self.say(Fault::validation(format!("there is no file `{}`", names::clipped(file))).section(path), steps);
            return None;
        };
        self.used.insert(file.to_owned());
        let shown = format!("{}/{file}", self.source.folder);
        let template = match Template::parse(text, Dialect::Plain) {
            Ok(template) => template,
            Err(wrong) => {
                let fault = Fault::validation(wrong.message).section(path).at(shown, wrong.line, wrong.column);
                self.faults.push(fault);
                return None;
            }
        };
        // An unknown type has been reported; its placeholders would only be reported for the same reason.
        if part.params.is_none() || record.is_some() {
            for (fault, line, column) in strangers(&template, record) {
                self.faults.push(fault.section(path).at(&shown, line, column));
            }
        }
        Some(template)
    }

    fn default(
        &mut self,
        part: &Part,
        path: &str,
        record: Option<&Record>,
        steps: &[Step],
    ) -> Option<serde_json::Value> {
        let given = part.default.as_ref()?;
        let why = match (record, given.as_object()) {
            (None, _) if part.params.is_some() => return None,
            (None, _) => "a section without params takes no default".to_owned(),
            (Some(_), None) => "a section's default must be a record".to_owned(),
            (Some(record), Some(given)) => {
                let whole = record.completed(given);
                match record.complaints(&whole).first() {
                    None => return Some(whole),
                    Some(complaint) => format!("a section's default must match its params type: {complaint}"),
                }
            }
        };
        let fault = Fault::validation(why).section(path);
        let fault = match &part.params {
            Some(name) => fault.record(name),
            None => fault,
        };
        self.say(fault, steps);
        None
    }

    fn selectors(&mut self, part: &Part, path: &str, record: Option<&Record>, steps: &[Step]) {
        let summary_when = match &part.visibility {
            Selector::When { summary_when } => Some(summary_when),
            Selector::Constant(_) => None,
        };
        let conditions = [("enabled", Some(&part.enabled)), ("visibility", summary_when)];
        for (name, condition) in conditions {
            if let Some(field) = condition.and_then(|condition| condition.stranger(record)) {
                let fault = Fault::validation(format!("{name} looks at `{field}`, which is no field of its params"));
                self.say(fault.section(path).placeholder(field), &[steps, &[name.into()]].concat());
            }
        }
        if part.summary.is_none() && part.visibility != Selector::Constant(Visibility::Full) {
            let fault = Fault::validation(format!(
                "summary visibility requested for section `{}` but no summary is defined",
                part.key
            ));
            self.say(fault.section(path), &[steps, &["visibility".into()]].concat());
        }
    }

    fn kind(&mut self, part: &Part, path: &str, steps: &[Step]) {
        let mut refuse = |held: bool, name: &str, why: &str| {
            if held {
                self.say(Fault::validation(why).section(path), &[steps, &[name.into()]].concat());
            }
        };
        let (workspace, tasks) = (part.kind == PartKind::Workspace, part.kind == PartKind::TaskExamples);
        refuse(workspace && part.project.is_none(), "kind", "a workspace names its project");
        refuse(!workspace && part.project.is_some(), "project", "only a workspace names a project");
        refuse(tasks && part.examples.is_empty(), "kind", "task examples need at least one example");
        refuse(!tasks && !part.examples.is_empty(), "examples", "only a section of kind task_examples has examples");
        refuse(tasks && part.body.is_some(), "body", "task examples have no body of their own");
    }

    fn needs(&mut self, needs: &BTreeMap<String, Need>, steps: &[Step]) {
        for (name, need) in needs {
            let missing = need.kind == "filesystem" && need.project.is_none();
            let why = match () {
                () if names::key("resource", name).as_deref() != Ok(name) => {
                    format!("resource name `{}` must match {}", names::clipped(name), names::KEY)
                }
                () if need.kind.trim().is_empty() => format!("resource `{name}` has no kind"),
                () if missing => format!("resource `{name}` is a filesystem and names no project"),
                () => continue,
            };
            self.say(Fault::validation(why), &[steps, &["resources".into(), name.as_str().into()]].concat());
        }
    }

    fn output(&mut self, shape: &Shape) -> Option<Output> {
        match Output::new(shape) {
            Ok(output) => Some(output),
            Err(why) => {
                self.say(Fault::validation(why), &["output".into(), "schema".into()]);
                None
            }
        }
    }

    fn unique_tools(&mut self) {
        let mut seen = BTreeSet::new();
        let mut twice = Vec::new();
        for node in &self.nodes {
            for (index, tool) in node.section.tools.iter().enumerate() {
                if !seen.insert(&tool.name) {
                    let fault = Fault::validation(format!("tool `{}` is named twice in this prompt", tool.name));
                    let mut steps = self.steps_to(node);
                    steps.extend(["tools".into(), index.into()]);
                    twice.push((fault.section(&node.path), steps));
                }
            }
        }
        twice.into_iter().for_each(|(fault, steps)| self.say(fault, &steps));
    }

    /// Where in `prompt.json` a node was declared, from its number.
    fn steps_to(&self, node: &Node) -> Vec<Step> {
        let mut steps = Vec::new();
        for part in node.number.split('.') {
            steps.push(if steps.is_empty() { "sections".into() } else { "children".into() });
            steps.push(Step::Item(part.parse::<usize>().map_or(0, |number| number - 1)));
        }
        steps
    }

    /// A step's tool has to be a tool of this prompt, and its values ones of that tool.
    fn task_examples(&mut self, output: Option<&Output>, declared: bool) {
        let mut found = Vec::new();
        for node in &self.nodes {
            for (index, example) in node.section.examples.iter().enumerate() {
                let tool =
                    |name: &str| self.nodes.iter().flat_map(|node| &node.section.tools).find(|tool| tool.name == name);
                // An output type that is itself wrong has been reported.
                let known = output.is_some() || !declared;
                if let (true, Err(fault)) = (known, crate::tasks::check(example, &tool, output)) {
                    let mut steps = self.steps_to(node);
                    steps.extend(["examples".into(), index.into()]);
                    found.push((fault.section(&node.path), steps));
                }
            }
        }
        found.into_iter().for_each(|(fault, steps)| self.say(fault, &steps));
    }

    fn idle_texts(&mut self) {
        let idle: Vec<&String> = self.source.texts.keys().filter(|file| !self.used.contains(*file)).collect();
        for file in idle {
            let fault = Fault::validation("no section names this file");
            self.faults.push(fault.at(format!("{}/{file}", self.source.folder), 1, 1));
        }
    }
}

/// The placeholders of a text that its params do not have, or cannot show.
pub fn strangers(template: &Template, record: Option<&Record>) -> Vec<(Fault, usize, usize)> {
    let mut found = Vec::new();
    for field in template.fields() {
        let fault = match record {
            None => Fault::validation("section does not accept parameters but declares placeholders"),
            Some(record) if !record.has(&field.name) => {
                Fault::validation("template references unknown placeholder").record(&record.name)
            }
            Some(record) if record.unshowable(&field.name) => {
                let why = "template names a list or an object; its schema must say \"x-as\": \"json\" or \"bullets\"";
                Fault::validation(why).record(&record.name)
            }
            Some(_) => continue,
        };
        found.push((fault.placeholder(&field.name), field.line, field.column));
    }
    found
}
