//! Files and streams: what is read line by line or in pieces.

use futures_util::FutureExt as _;

use crate::driver::{Kind, Target};
use crate::kind;
use acheron::agent::transcript;
use acheron::model::replay::Replay;
use acheron::model::script::Script;
use acheron::model::{Message, Model as _, ModelRequest};
use acheron::services::terminal::sentinel::Listener;
use acheron::spec::Spec;
use acheron_http::sse::{Decoder, Event};
use acheron_prompts::front;
use acheron_prompts::template::{Dialect, Template, Values};
use acheron_recall::{links, page};

/// Two halves of an input, the same each time.
fn halves(input: &[u8]) -> (&[u8], &[u8]) {
    let sum = input.iter().fold(3usize, |sum, byte| sum.wrapping_mul(31) + usize::from(*byte));
    input.split_at(sum % (input.len() + 1))
}

/// Server-sent events, cut anywhere.
pub fn event_stream() -> Target {
    const WORDS: &[&str] =
        &["data: ", "data:", "event: x\n", "\n\n", "\r\r", "\r\n\r\n", ":", "[DONE]", "id: 1\n", "é"];
    fn run(input: &[u8]) -> Kind {
        let fed = |pieces: &[&[u8]]| -> Vec<Event> {
            let mut decoder = Decoder::default();
            pieces.iter().flat_map(|piece| decoder.feed(piece).unwrap()).collect()
        };
        let whole = fed(&[input]);
        let (one, other) = halves(input);
        assert_eq!(fed(&[one, other]), whole, "cut at {}", one.len());
        whole.len() as u64 * 16 + whole.iter().map(|event| event.data.len() as u64 % 4).sum::<u64>()
    }
    Target { name: "event_stream", words: WORDS, run }
}

/// What a shell prints, with our marks in it.
pub fn terminal_marks() -> Target {
    const WORDS: &[&str] = &[
        "\x1et1<\x1e",
        "\x1et1>0\x1e",
        "\x1et1>",
        "\x1et1=3\x1e",
        "\x1e",
        "t1",
        ">127\x1e",
        "\x1et1>-1\x1e",
        "\x1et1>99999999999\x1e",
    ];
    fn run(input: &[u8]) -> Kind {
        let heard = |pieces: &[&[u8]]| {
            let (mut listener, mut output) = (Listener::new("t1"), Vec::new());
            // the command has begun: before that everything is the shell's own
            listener.hear(b"\x1et1<\x1e");
            for piece in pieces {
                let said = listener.hear(piece);
                output.extend(said.output);
                if said.ended.is_some() {
                    return (output, said.ended.map(|ended| ended.code));
                }
            }
            (output, None)
        };
        let (output, ended) = heard(&[input]);
        assert!(output.len() <= input.len());
        let (one, other) = halves(input);
        let cut = heard(&[one, other]);
        // what may still become a mark is held back, and how much that is depends on the cut
        assert!(cut.1 == ended && (ended.is_none() || cut.0 == output), "cut at {}: {cut:?}", one.len());
        ended.map_or(output.len().min(3) as u64, |code| 10 + code.unsigned_abs() as u64 % 256)
    }
    Target { name: "terminal_marks", words: WORDS, run }
}

/// The record of a turn, as a crash may leave it.
pub fn transcript() -> Target {
    const WORDS: &[&str] =
        &["{\"kind\":\"", "\"at_ms\":1", "\n", "}\n", "\"ended\"", "\"said\"", "{\"replied\":\"x\"}"];
    fn run(input: &[u8]) -> Kind {
        match transcript::read(input) {
            Ok((records, whole)) => {
                assert!(whole <= input.len() && (whole == 0 || input[whole - 1] == b'\n'));
                let again: Vec<u8> = records
                    .iter()
                    .flat_map(|record| [serde_json::to_vec(record).unwrap(), vec![b'\n']].concat())
                    .collect();
                assert_eq!(transcript::read(&again).unwrap().0, records);
                1 + records.len() as u64
            }
            Err(why) => kind(&why),
        }
    }
    Target { name: "transcript", words: WORDS, run }
}

fn ask(text: &str) -> ModelRequest {
    let messages = vec![Message::user(text)];
    ModelRequest { system: String::new(), messages, ..ModelRequest::default() }
}

/// A script file, and what it answers.
pub fn model_script() -> Target {
    const WORDS: &[&str] = &[
        "{\"answer\":\"$1\",\"when\":\"(a+)\"}\n",
        "\"answer\":",
        "\"when\":\"",
        "\"repeat\":true",
        "# x\n",
        "\"hello\"\n",
        "(?P<x_json>.*)",
        "${x_json}",
        "$1",
        "(",
        "[a-",
        "{9999}",
        "\\\\p{L}",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        let script = match Script::read("s", &text) {
            Ok(script) => script,
            Err(error) => return kind(&error.message),
        };
        let mut kinds = 1;
        for message in ["aa \\\"b\\\" aa", &text] {
            let answered = script.answer(&ask(message), &mut |_| ()).now_or_never().expect("a script never waits");
            kinds = kinds * 4 + answered.map_or(0, |said| 1 + u64::from(said.text.is_empty()));
        }
        kinds
    }
    Target { name: "model_script", words: WORDS, run }
}

/// A recording of a model.
pub fn recording() -> Target {
    const WORDS: &[&str] = &[
        "{\"by\":\"charon\",",
        "\"said\":{",
        "\"text\":\"x\"",
        "\"usage\":{\"input\":1,\"output\":1}",
        "\"model\":\"m\"",
        "\n",
        "\"failed\":",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        match Replay::read("r", &text, Some("charon")) {
            Ok(replay) => {
                let answered = replay.answer(&ask("x"), &mut |_| ()).now_or_never().expect("a recording never waits");
                1 + u64::from(answered.is_ok())
            }
            Err(error) => kind(&error.message),
        }
    }
    Target { name: "recording", words: WORDS, run }
}

/// A namespace, written by hand.
pub fn mountspec() -> Target {
    const WORDS: &[&str] = &[
        "\"agents\":{",
        "\"charon\":{",
        "\"projects\":{",
        "\"binds\":{\"/\":{\"path\":\".\"}}",
        "\"permissions\":[",
        "{\"allow\":[\"read\"],\"path\":\"/**\"}",
        "\"limits\":{\"money\":1}",
        "\"model\":{\"kind\":\"script\"}",
        "\"layout\":\"acheron-1\"",
        "\"services\":{",
        "\"command\":[\"x\"]",
        "\"operations\":{",
        "\"retention\":{\"jobs\":1}",
        "\"wake\":[",
        "\"on\":\"/agents/self/x\"",
        "\"say\":\"x\"",
        "\"default_agent\":\"charon\"",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        match Spec::check(&text) {
            Ok(spec) => {
                let again = serde_json::to_string(&spec).unwrap();
                assert!(Spec::check(&again).is_ok_and(|it| serde_json::to_string(&it).unwrap() == again), "{again}");
                1
            }
            Err(faults) => {
                assert!(!faults.is_empty() && faults.iter().all(|fault| !fault.message.is_empty()));
                faults.iter().fold(0, |kinds, fault| kinds ^ kind(&fault.message))
            }
        }
    }
    Target { name: "mountspec", words: WORDS, run }
}

struct Filled;

impl Values for Filled {
    type Lack = ();

    fn text(&self, name: &str, indent: &str) -> Result<String, ()> {
        Ok(format!("{name}\n{indent}"))
    }

    fn holds(&self, name: &str) -> Result<bool, ()> {
        Ok(name.len().is_multiple_of(2))
    }
}

/// The text of a prompt, in both dialects.
pub fn template() -> Target {
    const WORDS: &[&str] = &[
        "$name",
        "${name}",
        "$$",
        "${",
        "$",
        "{{IF_INCLUDE_RECALL}}",
        "{{/IF_INCLUDE_RECALL}}",
        "__MEMORY_ROOT__",
        "\n    ",
        "\n\t",
        "\n\n",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        let mut kinds = 0;
        for dialect in [Dialect::Plain, Dialect::Recall] {
            kinds ^= match Template::parse(&text, dialect) {
                Ok(template) => {
                    let again = Template::parse(template.source(), dialect).expect("its own source is a template");
                    assert_eq!(again.source(), template.source(), "what is hashed does not change by being read again");
                    let names = |template: &Template| -> Vec<String> {
                        template.fields().iter().map(|it| it.name.clone()).collect()
                    };
                    assert_eq!(names(&again), names(&template));
                    assert_eq!(template.fill(&Filled), again.fill(&Filled));
                    1 + template.fields().len() as u64 % 16
                }
                Err(malformed) => {
                    assert!(malformed.line >= 1 && malformed.line <= text.matches('\n').count() + 1);
                    kind(&malformed.message)
                }
            };
        }
        kinds
    }
    Target { name: "template", words: WORDS, run }
}

/// The head of a prompt of one file.
pub fn front_matter() -> Target {
    const WORDS: &[&str] = &[
        "---\n",
        "phase_id: a\n",
        "aliases:\n",
        "  - b\n",
        "aliases: [a, \"b\"]\n",
        "max_visits: 3\n",
        "dialect: recall\n",
        "# x\n",
        ": ",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        match front::split(&text) {
            Ok((front, rest, lines)) => {
                assert!(text.ends_with(rest) && lines <= text.matches('\n').count() + 1);
                1 + u64::from(front.phase_id.is_some())
                    + 2 * u64::from(front.max_visits.is_some())
                    + 4 * front.aliases.len().min(9) as u64
            }
            Err(wrong) => kind(&wrong.message),
        }
    }
    Target { name: "front_matter", words: WORDS, run }
}

/// The links of a page, its headings and its sections.
pub fn wiki_link() -> Target {
    const WORDS: &[&str] = &[
        "[[",
        "]]",
        "[[dir/Title#h|a]]",
        "[t](other.md)",
        "](",
        "../",
        "![[",
        "\\[",
        "`",
        "```\n",
        "\n# A\n",
        "---\n",
        "%20",
        "#",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        let found = links::links("semantic/a.md", &text);
        let lines = text.matches('\n').count() + 1;
        assert!(found.windows(2).all(|pair| pair[0].line <= pair[1].line));
        assert!(found.iter().all(|link| link.line <= lines && !link.target.is_empty() && !link.target.contains('\n')));
        let body = page::body(&text);
        assert!(text.ends_with(body));
        let headings = page::headings(body);
        for heading in headings.iter().take(4) {
            assert!(
                page::section(body, heading.text).is_some_and(|section| section.starts_with('#')),
                "{:?}",
                heading.text
            );
        }
        found.len().min(50) as u64 * 64 + headings.len().min(50) as u64
    }
    Target { name: "wiki_link", words: WORDS, run }
}
