//! The generated pages of a service's directory: README.md, SCHEMA.json, CAPS.json, OPS.json, control/README.md.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{Contract, Effect, Operation};

/// More operations than these are not listed in a README that leads to a page of each.
const INDEXED: usize = 40;
/// The most parts of an example that follows from a schema: one that refers to itself has no end.
const SAMPLED: usize = 200;
/// The deepest type that is named in words.
const NAMED_DEPTH: usize = 4;

/// The rendered pages of a service's directory, the same for every agent.
#[derive(Clone, Debug)]
pub struct ContractPages {
    pub readme: Bytes,
    pub schema: Bytes,
    pub caps: Bytes,
    pub ops: Bytes,
    pub control: Bytes,
}

impl Contract {
    pub fn pages(&self) -> &ContractPages {
        let pretty = |value: &Value| Bytes::from(format!("{value:#}\n"));
        self.pages.get_or_init(|| ContractPages {
            readme: self.readme().into(),
            schema: pretty(self.schema()),
            caps: pretty(&self.caps()),
            ops: pretty(&self.ops()),
            control: self.control_readme().into(),
        })
    }

    /// README.md: the purpose, then each operation with an example that works when pasted in the directory.
    pub fn readme(&self) -> String {
        let mut page = format!("# {}\n\n{}\n", self.name, self.about);
        if self.operations.is_empty() {
            return page;
        }
        page.push_str(
            "\nWrite a command, then read `result.json`, which waits for its end; `status.json` says why a write was \
             refused.\n`SCHEMA.json` has every argument and result.\n",
        );
        match self.pages_in {
            None => self.operations.iter().for_each(|operation| page.push_str(&self.section(operation))),
            Some(pages_in) => page.push_str(&self.index(pages_in)),
        }
        page
    }

    /// One line per operation, where each has a page; none if there are so many that `ls` is the better index.
    fn index(&self, pages_in: &str) -> String {
        let count = self.operations.len();
        let mut text = format!(
            "\nEach of the {count} operations has a page, `{pages_in}/<name>.md`: find one with `ls {pages_in}`, or by a word \
             with\n`grep -il WORD {pages_in}/*`.\n\n"
        );
        for operation in self.operations.iter().filter(|_| count <= INDEXED) {
            text.push_str(&format!("- `{}`: {}\n", operation.name, first_line(&operation.about)));
        }
        text
    }

    /// The page of one operation.
    pub fn operation_page(&self, operation: &str) -> String {
        let section = self.operation(operation).map(|operation| self.section(operation)).unwrap_or_default();
        section.trim_start().replacen("## ", "# ", 1)
    }

    fn section(&self, operation: &Operation) -> String {
        let Operation { name, about, effect, .. } = operation;
        let mut text = format!("\n## {name}\n\n{about}\n\n");
        let arguments = self.resolved(&operation.arguments);
        let required: Vec<&str> =
            arguments["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (key, schema) in arguments["properties"].as_object().into_iter().flatten() {
            let fate = match (required.contains(&key.as_str()), schema.get("default")) {
                (true, _) => ", required".to_owned(),
                (false, None | Some(Value::Null)) => String::new(),
                (false, Some(default)) => format!(", {default} if absent"),
            };
            let about = self.description(schema);
            let about = if about.is_empty() { about } else { format!(": {about}") };
            // Schemas of others may hold anything.
            let line = format!("- `{key}` ({}{fate}){about}", self.kind(schema, 0)).replace(char::is_control, " ");
            text.push_str(&(line + "\n"));
        }
        if !text.ends_with("\n\n") {
            text.push('\n');
        }
        let control = operation.control_path();
        text.push_str(&format!(
            "```sh\necho {} > {control}\ncat result.json\n```\n",
            quoted(&self.template(operation))
        ));
        let again = if operation.idempotent { ", may be repeated" } else { "" };
        text.push_str(&match effect {
            Effect::Write => format!("\nEffect: write{again}; it {}.\n", effect.promise()),
            _ => format!("\nEffect: {}{again}; deadline: {} s.\n", effect.name(), operation.deadline.as_secs()),
        });
        text
    }

    /// SCHEMA.json.
    pub fn schema(&self) -> &Value {
        &self.document
    }

    /// CAPS.json.
    pub fn caps(&self) -> Value {
        let names: Vec<&str> = self.operations.iter().map(|operation| operation.name.as_str()).collect();
        let read_only = self.operations.iter().all(|operation| operation.effect == Effect::Read);
        let mut caps = json!({
            "service_id": self.name,
            "version": self.version,
            "invoke": !names.is_empty(),
            "operations": names,
            "read_only": read_only,
        });
        for (flag, value) in &self.flags {
            caps[flag] = value.clone();
        }
        caps
    }

    /// OPS.json: for each operation its control file, effect and deadline.
    pub fn ops(&self) -> Value {
        let described = |operation: &Operation| {
            json!({
                "control_path": operation.control_path(),
                "effect": operation.effect,
                "deadline_ms": operation.deadline.as_millis() as u64,
                "idempotent": operation.idempotent,
                "about": first_line(&operation.about),
            })
        };
        let all = self.operations.iter().map(|operation| (operation.name.clone(), described(operation)));
        Value::Object(all.collect::<Map<_, _>>())
    }

    /// control/README.md: one line per file, and how a caller finds its own call. Whoever reads the README of a service to
    /// call it once needs none of that.
    pub fn control_readme(&self) -> String {
        let mut page = format!(
            "# {}: control files\n\nThese are written, not replaced; reading one that you have not written shows a \
             template.\n\n- `invoke.json`: any operation, such as `{}`, and, if you like, a `correlation_id`\n",
            self.name,
            self.envelope_template()
        );
        for operation in &self.operations {
            page.push_str(&format!("- `{}.json`: {}\n", operation.name, first_line(&operation.about)));
        }
        page.push_str(
            "\nArguments alone may carry `\"_meta\": {\"correlation_id\": \"mine\"}`; the job is `jobs/by/mine` then. To read \
             the\nanswer to your own call only, keep one handle: `exec 3<>invoke.json; echo … >&3; cat <&3`.\n",
        );
        page
    }

    /// The content of an unwritten `control/<op>.json`: arguments that work, to be edited.
    pub fn template(&self, operation: &Operation) -> Value {
        operation.example.clone().unwrap_or_else(|| self.sample(&operation.arguments, 0, &mut { SAMPLED }))
    }

    /// The content of an unwritten `control/invoke.json`.
    pub fn envelope_template(&self) -> Value {
        let first = self.operations.first();
        first.map_or_else(|| json!({}), |first| json!({"op": first.name, "arguments": self.template(first)}))
    }

    /// The smallest value of a schema, for an operation without an example.
    fn sample(&self, schema: &Value, depth: usize, left: &mut usize) -> Value {
        *left = left.saturating_sub(1);
        let schema = self.resolved(schema);
        let given =
            schema.get("const").or(schema.get("default")).or(schema["enum"].get(0)).or(schema["examples"].get(0));
        if let Some(value) = given {
            return value.clone();
        }
        let kind = schema["type"].as_str().or(schema["type"][0].as_str());
        match kind {
            _ if depth > 8 || *left == 0 => Value::Null,
            Some("string") => "…".into(),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 0.into()),
            Some("boolean") => false.into(),
            Some("array") => json!([]),
            Some("object") => {
                let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let filled =
                    required.map(|key| (key.to_owned(), self.sample(&schema["properties"][key], depth + 1, left)));
                Value::Object(filled.collect())
            }
            _ => match schema["oneOf"].get(0).or(schema["anyOf"].get(0)) {
                Some(form) => self.sample(form, depth + 1, left),
                None => Value::Null,
            },
        }
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let target = schema["$ref"].as_str().and_then(|target| self.document.pointer(target.trim_start_matches('#')));
        target.unwrap_or(schema)
    }

    fn description(&self, schema: &Value) -> String {
        let own = schema["description"].as_str().or(self.resolved(schema)["description"].as_str());
        own.unwrap_or_default().replace('\n', " ")
    }

    /// A schema's type in a few words.
    fn kind(&self, schema: &Value, depth: usize) -> String {
        if depth > NAMED_DEPTH {
            return "anything".to_owned();
        }
        let resolved = self.resolved(schema);
        let forms = || ["oneOf", "anyOf"].into_iter().filter_map(|word| resolved[word].as_array()).flatten();
        let words: Vec<&str> = forms().filter_map(|form| form["const"].as_str()).collect();
        match (&resolved["type"], &resolved["enum"]) {
            (_, Value::Array(several)) => join(several.iter().filter_map(Value::as_str)),
            (Value::String(one), _) if one == "array" => {
                format!("array of {}", self.kind(&resolved["items"], depth + 1))
            }
            (Value::String(one), _) => one.clone(),
            (Value::Array(several), _) => join(several.iter().filter_map(Value::as_str).filter(|word| *word != "null")),
            _ if !words.is_empty() => join(words.into_iter()),
            _ => match forms().find(|form| form["type"] != "null") {
                Some(form) => self.kind(form, depth + 1),
                None => "anything".to_owned(),
            },
        }
    }
}

fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(" | ")
}

fn first_line(about: &str) -> &str {
    about.lines().next().unwrap_or_default()
}

/// JSON as one shell word.
fn quoted(value: &Value) -> String {
    format!("'{}'", value.to_string().replace('\'', r"'\''"))
}
