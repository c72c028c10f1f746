//! A tool of a prompt: an operation of a service, with the words and examples by which a model gets to know it.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::Value;

use crate::fault::Fault;
use crate::manifest::{ToolExample, ToolPart};
use crate::{names, schema};

#[derive(Debug)]
pub struct Tool {
    pub name: String,
    pub description: String,
    pub params: Value,
    pub result: Value,
    pub examples: Vec<ToolExample>,
    pub accepts_overrides: bool,
    fails_unless: BTreeMap<String, Value>,
    checks: Checks,
}

/// The two schemas, compiled.
struct Checks {
    input: Validator,
    output: Validator,
}

impl std::fmt::Debug for Checks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Checks")
    }
}

pub const DESCRIPTION: usize = 200;

impl Tool {
    pub fn read(part: &ToolPart) -> Result<Tool, Fault> {
        names::tool(&part.name)?;
        let description =
            names::line(&format!("the description of tool `{}`", part.name), &part.description, DESCRIPTION)?;
        let params = schema::strict(part.params.clone().unwrap_or_else(schema::anything));
        let result = part.result.clone().unwrap_or(Value::Bool(true));
        let of_type = |kind: &str| params.get("type").and_then(Value::as_str) == Some(kind);
        if !of_type("object") && !of_type("null") {
            return Err(Fault::validation(format!("the params of tool `{}` must be a record or null", part.name)));
        }
        let ready = |what: &str, schema: &Value| {
            schema::compile(schema)
                .map_err(|why| Fault::validation(format!("the {what} of tool `{}`: {why}", part.name)))
        };
        let checks = Checks { input: ready("params", &params)?, output: ready("result", &result)? };
        let tool = Tool {
            name: part.name.clone(),
            description,
            params,
            result,
            examples: Vec::new(),
            accepts_overrides: part.accepts_overrides.unwrap_or(true),
            fails_unless: part.fails_unless.clone(),
            checks,
        };
        let examples = part.examples.iter().map(|example| tool.example(example)).collect::<Result<_, _>>()?;
        Ok(Tool { examples, ..tool })
    }

    /// The example, if it is one of this tool.
    pub fn example(&self, example: &ToolExample) -> Result<ToolExample, Fault> {
        let name = &self.name;
        let description = names::line(&format!("an example of tool `{name}`"), &example.description, DESCRIPTION)?;
        self.fits(&example.input, &example.output)?;
        Ok(ToolExample { description, input: example.input.clone(), output: example.output.clone() })
    }

    /// Checks a call and its result against this tool.
    pub fn fits(&self, input: &Value, output: &Value) -> Result<(), Fault> {
        for (what, check, value) in [("input", &self.checks.input, input), ("output", &self.checks.output, output)] {
            if let Some(first) = schema::complaints(check, value).first() {
                return Err(Fault::validation(format!("the {what} of an example of tool `{}`: {first}", self.name)));
            }
        }
        Ok(())
    }

    pub fn input_complaint(&self, input: &Value) -> Option<String> {
        schema::complaints(&self.checks.input, input).first().map(ToString::to_string)
    }

    /// Whether a result says that the call failed: by its own word, or by a field that the section names.
    pub fn reports_failure(&self, result: &Value) -> bool {
        let said_so = ["ok", "success"].iter().any(|field| result.get(*field) == Some(&Value::Bool(false)));
        said_so || self.fails_unless.iter().any(|(field, right)| result.get(field).is_some_and(|found| found != right))
    }

    pub fn has_param(&self, field: &str) -> bool {
        self.params.get("properties").is_some_and(|fields| fields.get(field).is_some())
    }
}

/// The list of tools with examples, as it stands at the end of its section. Tools without examples are not listed:
/// the model has them in its list of tools already.
pub fn examples_block<'a>(tools: impl Iterator<Item = (&'a str, &'a str, &'a [ToolExample])>) -> String {
    let mut out = String::new();
    for (name, description, examples) in tools.filter(|(_, _, examples)| !examples.is_empty()) {
        if out.is_empty() {
            out.push_str("Tools:\n");
        }
        out.push_str(&format!("\n- {name}: {description}\n  - {name} examples:"));
        for example in examples {
            out.push_str(&format!("\n    - description: {}", example.description));
            out.push_str(&format!("\n      input:\n{}", fenced("json", &json_text(&example.input), 8)));
            out.push_str(&format!("\n      output:\n{}", fenced("", &payload(&example.output), 8)));
        }
    }
    out.replacen("Tools:\n\n", "Tools:\n", 1)
}

/// A fence that the text cannot close.
pub fn fenced(label: &str, text: &str, indent: usize) -> String {
    let longest = text.lines().map(|line| line.trim_start().bytes().take_while(|&b| b == b'`').count()).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let pad = " ".repeat(indent);
    let lines: Vec<String> =
        text.lines().map(|line| if line.is_empty() { String::new() } else { format!("{pad}{line}") }).collect();
    format!("{pad}{fence}{label}\n{}\n{pad}{fence}", lines.join("\n"))
}

/// A result as a model reads it: text as it is, nothing for null, JSON without its null fields for the rest.
pub fn payload(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => json_text(&without_nulls(other)),
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

fn json_text(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() // cannot: a Value always has its JSON
}
