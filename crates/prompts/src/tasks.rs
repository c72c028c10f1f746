//! Task examples: a task, the tool calls that solve it, and the result.

use serde_json::Value;

use crate::fault::Fault;
use crate::manifest::TaskExample;
use crate::names;
use crate::output::Output;
use crate::tool::{Tool, fenced, payload};

const OBJECTIVE: usize = 500;
const TITLE: usize = 60;

pub fn check<'a>(
    example: &TaskExample,
    tool: &dyn Fn(&str) -> Option<&'a Tool>,
    output: Option<&Output>,
) -> Result<(), Fault> {
    let key = names::key("task example key", &example.key)?;
    names::line(&format!("the objective of task example `{key}`"), &example.objective, OBJECTIVE)?;
    if example.steps.is_empty() {
        return Err(Fault::validation(format!("task example `{key}` has no steps")));
    }
    for step in &example.steps {
        let known = tool(&step.tool).ok_or_else(|| {
            let name = names::clipped(&step.tool);
            Fault::validation(format!("task example `{key}` uses tool `{name}`, which this prompt does not have"))
        })?;
        names::line(&format!("a step of task example `{key}`"), &step.description, crate::tool::DESCRIPTION)?;
        known.fits(&step.input, &step.output)?;
    }
    let wrong = match (output, &example.outcome) {
        (None, Value::String(_)) => None,
        (None, _) => Some("must be a text".to_owned()),
        (Some(output), outcome) => output.complaints(outcome).first().map(ToString::to_string),
    };
    match wrong {
        None => Ok(()),
        Some(why) => Err(Fault::validation(format!("the outcome of task example `{key}`: {why}"))),
    }
}

/// The title, or as much of the objective as one line of a list takes.
pub fn title(example: &TaskExample) -> String {
    match &example.title {
        Some(title) => title.trim().to_owned(),
        None if example.objective.chars().count() <= TITLE => example.objective.clone(),
        None => format!("{}...", example.objective.chars().take(TITLE - 3).collect::<String>()),
    }
}

pub fn shown(examples: &[TaskExample]) -> String {
    examples.iter().map(one).collect::<Vec<String>>().join("\n\n")
}

fn one(example: &TaskExample) -> String {
    let mut out = format!("**{}**\n\nObjective: {}\n\nSteps:\n", title(example), example.objective.trim());
    for (index, step) in example.steps.iter().enumerate() {
        out.push_str(&format!("\n{}. {}: {}\n", index + 1, step.tool, step.description.trim()));
        out.push_str(&format!("   input:\n{}\n", fenced("json", &pretty(&step.input), 3)));
        out.push_str(&format!("   output:\n{}\n", fenced("", &payload(&step.output), 3)));
    }
    out.push_str(&match &example.outcome {
        Value::String(text) => format!("\nOutcome: {}", text.trim()),
        value => format!("\nOutcome:\n{}", fenced("json", &pretty(value), 0)),
    });
    out
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() // cannot: a Value always has its JSON
}
