//! `{ns}/{key}/{tag}.json`: the overrides of one prompt under one tag, as they lie on disk.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Fault;
use crate::manifest::{TaskExample, ToolExample, Visibility};
use crate::names;
use acheron_base::Code;

pub const VERSION: u32 = 2;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverrideFile {
    pub version: u32,
    pub ns: String,
    pub prompt_key: String,
    pub tag: String,
    /// By the path of the section, joined by `/`.
    #[serde(default)]
    pub sections: BTreeMap<String, SectionEntry>,
    /// By the name of the tool.
    #[serde(default)]
    pub tools: BTreeMap<String, ToolEntry>,
    #[serde(default)]
    pub task_example_overrides: Vec<TaskEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SectionEntry {
    pub path: Vec<String>,
    /// The hash of the text that this was written for.
    pub expected_hash: String,
    pub body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The hash of the summary that `summary` was written for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_summary_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolEntry {
    pub expected_contract_hash: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub param_descriptions: Option<BTreeMap<String, String>>,
    /// By the number of the example.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub examples: BTreeMap<usize, ExampleEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExampleEntry {
    pub expected_hash: String,
    pub example: ToolExample,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskEntry {
    pub path: Vec<String>,
    pub index: usize,
    pub expected_hash: String,
    pub example: TaskExample,
}

impl OverrideFile {
    pub fn new(ns: &str, key: &str, tag: &str) -> OverrideFile {
        OverrideFile {
            version: VERSION,
            ns: ns.to_owned(),
            prompt_key: key.to_owned(),
            tag: tag.to_owned(),
            sections: BTreeMap::new(),
            tools: BTreeMap::new(),
            task_example_overrides: Vec::new(),
        }
    }

    /// Reads a file; `shown` is how the sentence names it.
    pub fn read(bytes: &[u8], shown: &str) -> Result<OverrideFile, Fault> {
        let wrong = |why: String| Fault::overrides(format!("failed to parse the override file {shown}: {why}"));
        let value = crate::output::parse_json_bytes(bytes).map_err(wrong)?;
        if let Some(version) = value.get("version").filter(|version| **version != VERSION) {
            return Err(Fault::overrides(format!("unsupported override file version {version} in {shown}")));
        }
        let sections = value.get("sections").and_then(Value::as_object);
        for (path, entry) in sections.into_iter().flatten() {
            if let Some(other) = entry.get("visibility")
                && !matches!(other.as_str(), Some("full" | "summary"))
                && !other.is_null()
            {
                return Err(wrong(format!("section {path}: visibility is `full` or `summary`, not {other}")));
            }
        }
        let file: OverrideFile = serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
        file.check_hashes().map_err(|why| wrong(why.message))?;
        Ok(file)
    }

    /// Every digest has the form of one.
    pub fn check_hashes(&self) -> Result<(), Fault> {
        let sections = self.sections.iter().flat_map(|(path, entry)| {
            let summary = entry.expected_summary_hash.as_ref().map(|hash| (format!("summary of section {path}"), hash));
            [(format!("section {path}"), &entry.expected_hash)].into_iter().chain(summary)
        });
        let tools = self.tools.iter().flat_map(|(name, entry)| {
            let examples = entry.examples.iter();
            let examples = examples.map(move |(index, one)| (format!("example {name}#{index}"), &one.expected_hash));
            [(format!("tool {name}"), &entry.expected_contract_hash)].into_iter().chain(examples)
        });
        let tasks = self.task_example_overrides.iter();
        let tasks = tasks.map(|one| (format!("task example {}#{}", one.path.join("/"), one.index), &one.expected_hash));
        for (target, hash) in sections.chain(tools).chain(tasks) {
            let digest = hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if !digest {
                let hash = names::clipped(hash);
                return Err(Fault::overrides(format!("the hash of {target} is no SHA-256 in hexadecimal: `{hash}`")));
            }
        }
        let twisted = self.sections.iter().find(|(path, entry)| entry.path.join("/") != **path);
        match twisted {
            Some((path, _)) => Err(Fault::overrides(format!("section {path} names another path inside"))),
            None => Ok(()),
        }
    }

    /// The file is one of this version, of this prompt and tag.
    pub fn belongs(&self, ns: &str, key: &str, tag: &str) -> Result<(), Fault> {
        if self.version != VERSION {
            return Err(Fault::overrides(format!("an override file has version {VERSION}, not {}", self.version)));
        }
        match (self.ns.as_str(), self.prompt_key.as_str(), self.tag.as_str()) == (ns, key, tag) {
            true => Ok(()),
            false => {
                let own = format!("{}/{} {}", self.ns, self.prompt_key, self.tag);
                let why = format!("the override file is that of {own}, not of {ns}/{key} {tag}");
                Err(Fault::overrides(why).coded(Code::Conflict))
            }
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default(); // cannot: strings and numbers only
        bytes.push(b'\n');
        bytes
    }
}
