//! Rendering a prompt of 200 sections, against the same text built by hand; reading a damaged answer.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use serde_json::json;

use super::Run;
use super::method::compare;
use super::table::{Aim, Figure};
use acheron_prompts::Prompt;
use acheron_prompts::check::{Source, build};
use acheron_prompts::manifest::{Container, Manifest, Part, Shape};
use acheron_prompts::output::Output;

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

/// An answer with bare keys, comments, single quotes, Python's words, a missing comma and a fence around it.
const DAMAGED: &str = "Here it is:\n```json\n{mood: 'happy', // so it seems\n \"score\": \"0.5\" \"pages\": None,\n \
    \"parts\": [{\"name\": \"the \"a\" part\", \"weight\": 1}, {\"name\": \"b\"},], \"done\": \"no\"}\n```\nDone.";

fn report() -> Output {
    let schema = json!({"type": "object", "required": ["mood", "score", "parts", "done"], "properties": {
        "mood": {"enum": ["happy", "angry"]}, "score": {"type": "number"}, "pages": {"type": ["integer", "null"]},
        "done": {"type": "boolean"}, "parts": {"type": "array", "items": {"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}}}}}});
    let shape = Shape { name: "Report".to_owned(), schema, container: Container::Object, allow_extra_keys: false };
    Output::new(&shape).expect("a good type")
}

/// Against the same value, sound, read by serde_json alone.
fn damaged(run: &Run) -> Figure {
    let output = report();
    let sound = output.parse(DAMAGED).expect("it can be read").value.to_string();
    let compared = compare(
        run.pace(60, 200),
        |_| drop(black_box(output.parse(black_box(DAMAGED)))),
        |_| drop(black_box(serde_json::from_str::<serde_json::Value>(black_box(&sound)))),
    );
    let detail = format!("{:.1} times what serde_json takes for the sound value", compared.ratio);
    Figure::number("reading a damaged answer", compared.ours * 1000.0, "ms", Aim::AtMost(0.1)).detail(detail)
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
    let rendering = format!("rendering a prompt of {SECTIONS} sections ÷ building it by hand");
    vec![Figure::ratio(rendering, compared, Aim::Told), damaged(run)]
}
