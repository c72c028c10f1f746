//! The tools of a server as operations.

use serde_json::{Value, json};

use crate::names::UniqueNames;
use crate::schema;
use crate::text::one_line;

/// The longest description of a tool, in characters.
const DESCRIPTION: usize = 1200;
/// The longest name of a tool, in bytes.
const NAME: usize = 256;
/// The most bytes of all schemas of a server together.
const SCHEMAS: usize = 4 << 20;

/// One tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name on the wire.
    pub name: String,
    /// The name of the operation.
    pub operation: String,
    /// The words of the server, in one line.
    pub about: String,
    pub arguments: Value,
    pub result: Option<Value>,
    /// What the server claims about the tool; nothing is decided by it.
    pub claims: Vec<&'static str>,
    /// What could not be taken as it was.
    pub notes: Vec<String>,
}

/// The tools among the entries of `tools/list`, and how many entries are none.
pub fn read(entries: &[Value], names: &mut UniqueNames) -> (Vec<Tool>, usize) {
    let mut room = SCHEMAS;
    let tools: Vec<Tool> = entries.iter().filter_map(|entry| tool(entry, names, &mut room)).collect();
    let refused = entries.len() - tools.len();
    (tools, refused)
}

fn tool(entry: &Value, names: &mut UniqueNames, room: &mut usize) -> Option<Tool> {
    let name = entry["name"].as_str().filter(|name| !name.is_empty() && name.len() <= NAME)?;
    let mut notes = Vec::new();
    let mut taken = |word: &str| {
        let given = entry.get(word).filter(|schema| !schema.is_null())?;
        let usable = schema::usable(given).and_then(|schema| {
            *room = room.checked_sub(schema.to_string().len()).ok_or("the server has too many large schemas")?;
            Ok(schema)
        });
        match usable {
            Ok(schema) => Some(schema),
            Err(why) => {
                let whose = if word == "inputSchema" { "arguments" } else { "result" };
                notes.push(format!(
                    "The schema of its {whose} cannot be used here, because {why}; only the server checks it."
                ));
                None
            }
        }
    };
    let (arguments, result) = (taken("inputSchema"), taken("outputSchema"));
    let described = entry["description"].as_str().or(entry["title"].as_str()).unwrap_or_default();
    let claim = |key: &str, word: &'static str| (entry["annotations"][key] == json!(true)).then_some(word);
    let claims = [
        claim("readOnlyHint", "reads only"),
        claim("destructiveHint", "may destroy"),
        claim("idempotentHint", "may be repeated"),
        claim("openWorldHint", "reaches the world outside"),
    ];
    Some(Tool {
        name: name.to_owned(),
        operation: names.operation(name),
        about: one_line(described, DESCRIPTION),
        arguments: arguments.unwrap_or_else(|| json!({ "type": "object" })),
        result,
        claims: claims.into_iter().flatten().collect(),
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_read_and_what_is_none_is_counted() {
        let entries = [
            json!({"name": "getLog", "description": "Shows\nthe \u{1b}[1mlog", "inputSchema": {"type": "object"},
                   "annotations": {"readOnlyHint": true, "destructiveHint": "yes"}}),
            json!({"name": "get_log", "inputSchema": {"$ref": "http://x"}, "outputSchema": {"type": "object"}}),
            json!({"name": ""}),
            json!(7),
        ];
        let (tools, refused) = read(&entries, &mut UniqueNames::without(&["invoke"]));
        assert_eq!(refused, 2);
        assert_eq!((tools[0].operation.as_str(), tools[1].operation.as_str()), ("get_log", "get_log-2"));
        assert_eq!((tools[0].about.as_str(), &tools[0].claims[..]), ("Shows the log", &["reads only"][..]));
        assert_eq!(tools[1].arguments, json!({"type": "object"}));
        assert_eq!(tools[1].notes.len(), 1);
        assert!(tools[1].notes[0].contains("`http://x`"), "{:?}", tools[1].notes);
    }
}
