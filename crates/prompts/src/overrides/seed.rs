//! The override file that says what a prompt says now: the start of an edit.

use super::file::{ExampleEntry, OverrideFile, SectionEntry, TaskEntry, ToolEntry};
use crate::template::Template;
use crate::tree::PromptTemplate;

/// An override file with the current words of a prompt and their hashes.
pub fn seed(template: &PromptTemplate, tag: &str) -> OverrideFile {
    let descriptor = template.descriptor();
    let mut file = OverrideFile::new(&template.ns, &template.key, tag);
    for mark in &descriptor.sections {
        let Some(node) = template.at(&mark.path).map(|index| &template.nodes[index]) else { continue };
        let source = |text: &Option<Template>| text.as_ref().map(|text| text.source().to_owned());
        let entry = SectionEntry {
            path: mark.path.split('/').map(str::to_owned).collect(),
            expected_hash: mark.content_hash.clone(),
            body: source(&node.section.body).unwrap_or_default(),
            summary: source(&node.section.summary),
            expected_summary_hash: mark.summary_hash.clone(),
            visibility: None,
        };
        file.sections.insert(mark.path.clone(), entry);
    }
    for mark in &descriptor.tools {
        let Some((_, tool)) = template.tool(&mark.name) else { continue };
        let described = tool.params.get("properties").and_then(serde_json::Value::as_object).into_iter().flatten();
        let described = described.filter_map(|(name, schema)| {
            let text = schema.get("description").and_then(serde_json::Value::as_str).filter(|text| !text.is_empty());
            Some((name.clone(), text?.to_owned()))
        });
        let hashed = tool.examples.iter().zip(&mark.example_hashes).enumerate();
        let examples = hashed.map(|(index, (example, hash))| {
            (index, ExampleEntry { expected_hash: hash.clone(), example: example.clone() })
        });
        let entry = ToolEntry {
            expected_contract_hash: mark.contract_hash.clone(),
            description: Some(tool.description.clone()),
            param_descriptions: Some(described.collect()),
            examples: examples.collect(),
        };
        file.tools.insert(mark.name.clone(), entry);
    }
    for mark in &descriptor.task_examples {
        let example = template.at(&mark.path).and_then(|index| template.nodes[index].section.examples.get(mark.index));
        if let Some(example) = example {
            file.task_example_overrides.push(TaskEntry {
                path: mark.path.split('/').map(str::to_owned).collect(),
                index: mark.index,
                expected_hash: mark.content_hash.clone(),
                example: example.clone(),
            });
        }
    }
    file
}
