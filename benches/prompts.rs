//! Rendering a prompt of 200 sections, against the same text built by hand.
//!
//! `cargo bench --bench prompts`. Figures of one machine are compared with figures of the same machine: the ratio is
//! what says something.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acheron::services::prompts::Prompt;
use acheron::services::prompts::check::{Source, build};
use acheron::services::prompts::manifest::{Manifest, Part};
use serde_json::json;

const SECTIONS: usize = 200;
const ROUNDS: usize = 2000;

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

/// The fastest of ten, each the mean of many.
fn time(mut work: impl FnMut()) -> Duration {
    let each = ROUNDS / 10;
    let mut best = Duration::MAX;
    for _ in 0..10 {
        let start = Instant::now();
        (0..each).for_each(|_| work());
        best = best.min(start.elapsed() / u32::try_from(each).unwrap_or(1));
    }
    best
}

fn main() {
    let prompt = prompt();
    let (rendered, hand) = (prompt.render().expect("it renders").text, by_hand("Ada", 3));
    assert_eq!(rendered, hand, "both must say the same");
    let ours = time(|| drop(black_box(prompt.render())));
    let theirs = time(|| drop(black_box(by_hand(black_box("Ada"), black_box(3)))));
    println!("sections {SECTIONS}, bytes {}", rendered.len());
    println!("rendered {ours:?}, by hand {theirs:?}, ratio {:.1}", ours.as_secs_f64() / theirs.as_secs_f64());
}
