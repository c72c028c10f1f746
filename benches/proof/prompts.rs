//! Rendering a prompt of 200 sections, against the same text built by hand.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use serde_json::json;

use super::Run;
use super::method::compare;
use super::table::{Aim, Figure};
use acheron_prompts::Prompt;
use acheron_prompts::check::{Source, build};
use acheron_prompts::manifest::{Manifest, Part};

const SECTIONS: usize = 200;

fn prompt() -> Prompt {
    let schema = json!({"type": "object", "required": ["name", "count"], "properties": {
        "name": {"type": "string"}, "count": {"type": "integer"}}});
    let part = |index: usize| Part {
        key: format!("s{index}"),
        title: format!("Section {index}"),
        params: Some("P".to_owned()),
        body: Some(format!("s{index}.md")),
        ..Part::default()
    };
    let manifest = Manifest {
        ns: "bench".to_owned(),
        key: "wide".to_owned(),
        params: [("P".to_owned(), schema)].into(),
        sections: (0..SECTIONS).map(part).collect(),
        ..Manifest::default()
    };
    let text = |index: usize| format!("Line {index} for $name.\n\nThere are ${{count}} of them, and $$5 is left.");
    let texts: BTreeMap<String, String> = (0..SECTIONS).map(|index| (format!("s{index}.md"), text(index))).collect();
    let template = build(&manifest, &Source { folder: "bench", manifest: None, texts: &texts }).expect("a good prompt");
    let mut prompt = Prompt::new(Arc::new(template));
    prompt.bind([("P", json!({"name": "Ada", "count": 3}))]).expect("good params");
    prompt
}

fn by_hand(name: &str, count: i64) -> String {
    let sections: Vec<String> = (0..SECTIONS)
        .map(|index| {
            let number = index + 1;
            format!(
                "## {number}. Section {index}\n\nLine {index} for {name}.\n\nThere are {count} of them, and $5 is left."
            )
        })
        .collect();
    sections.join("\n\n")
}

pub fn rows(run: &Run) -> Vec<Figure> {
    let prompt = prompt();
    let (rendered, hand) = (prompt.render().expect("it renders").text, by_hand("Ada", 3));
    assert_eq!(rendered, hand, "both must say the same");
    let compared = compare(
        run.pace(60, 20),
        |_| drop(black_box(prompt.render())),
        |_| drop(black_box(by_hand(black_box("Ada"), black_box(3)))),
    );
    vec![Figure::ratio(format!("rendering a prompt of {SECTIONS} sections ÷ building it by hand"), compared, Aim::Told)]
}
