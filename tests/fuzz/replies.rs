//! What models say: answers in prose, commands, payloads, tags, and the events of a provider's stream.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::driver::{Kind, Target};
use crate::kind;
use acheron::agent::native;
use acheron::model::ModelAnswer;
use acheron::model::anthropic::MessagesApi;
use acheron::model::openai::ChatCompletions;
use acheron::model::remote::{PartialAnswer, ProviderProtocol};
use acheron::model::responses::ResponsesApi;
use acheron::services::phases::{action, command, payload};
use acheron_prompts::manifest::{Container, Shape};
use acheron_prompts::output::Output;
use acheron_recall::{block, tag};

static SHAPES: LazyLock<[Output; 2]> = LazyLock::new(|| {
    [Container::Object, Container::Array].map(|container| {
        let schema = json!({
            "type": "object", "required": ["name", "score"],
            "properties": {
                "name": {"type": "string", "maxLength": 40},
                "score": {"type": "integer", "minimum": 0},
                "sure": {"type": "boolean"},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}},
            },
            "$defs": {"part": {"type": "object", "properties": {"name": {"type": "string"}}}},
        });
        Output::new(&Shape { name: "Judgement".into(), schema, container, allow_extra_keys: false }).unwrap()
    })
});

/// An answer of a type, somewhere in a reply.
pub fn structured_output() -> Target {
    const WORDS: &[&str] = &[
        "{\"name\":\"a\",\"score\":1}",
        "\"score\":\"2\"",
        "\"sure\":\"true\"",
        "\"parts\":[{\"name\":\"b\"}]",
        "{\"items\":[",
        "```json\n",
        "\n```\n",
        "<think>",
        "</think>",
        "\n<reasoning>",
        "{name: 'a', score: 1,}",
        "// note\n",
        "True",
        "“",
        "1,234.5",
        "\\u00e9",
    ];
    fn run(input: &[u8]) -> Kind {
        let reply = String::from_utf8_lossy(input);
        let mut kinds = 0;
        for shape in &*SHAPES {
            kinds ^= match shape.parse(&reply) {
                Ok(parsed) => {
                    assert!(shape.complaints(&parsed.value).is_empty(), "{} does not fit", parsed.value);
                    kind(parsed.from).wrapping_add(parsed.repairs.len() as u64)
                }
                Err(unparsed) => {
                    assert!(unparsed.tried.iter().all(|tried| tried.start <= reply.len()));
                    kind(&unparsed.message).wrapping_mul(3)
                }
            };
        }
        kinds
    }
    Target { name: "structured_output", words: WORDS, run }
}

const PHASE_WORDS: &[&str] = &[
    "⟐CMD {\"action\":\"query_symbols\",\"query\":\"x\"}",
    "⟐CMD",
    "⟐",
    ":",
    "{\"next_phase\":\"a\"}",
    "\"action\":",
    "\"store_symbol\"",
    "\"recurse_graph\"",
    "\"depth\":9",
    "\"ids\":[\"A\"]",
    "\"symbol\":{\"id\":\"A\",\"status\":\"validated\"}",
    "\"control_signature\":{\"emit\":[",
    "<think>",
    "</think>",
    "```",
];

/// `⟐CMD {…}`, and what each action makes of it.
pub fn phase_command() -> Target {
    fn run(input: &[u8]) -> Kind {
        let reply = String::from_utf8_lossy(input);
        let found = command::marked(&reply);
        let (mut kinds, mut last) = (found.diagnostics.len() as u64, 0);
        for asked in &found.commands {
            assert!(asked.span.start >= last && reply[asked.span.clone()].starts_with(command::MARKER));
            last = asked.span.end;
            kinds ^= match action::read(&asked.body) {
                Ok((row, _)) => kind(row.name),
                Err(result) => kind(&result.to_string()),
            };
        }
        assert!(found.diagnostics.iter().all(|diagnostic| reply.is_char_boundary(diagnostic.offset)));
        kinds
    }
    Target { name: "phase_command", words: PHASE_WORDS, run }
}

/// The payload of a reply, and what it emits.
pub fn phase_payload() -> Target {
    fn run(input: &[u8]) -> Kind {
        let reply = String::from_utf8_lossy(input);
        let marked = command::marked(&reply);
        let search = payload::find(&reply, &marked.commands);
        assert!(search.rejected.iter().all(|diagnostic| reply.is_char_boundary(diagnostic.offset)));
        let Some(found) = search.payload else { return search.rejected.len() as u64 };
        assert_eq!(serde_json::from_str::<Value>(&reply[found.span.clone()]).unwrap(), found.value);
        let wish = match payload::wish(&found.value) {
            payload::NextPhase::None => 1,
            payload::NextPhase::Phase(_) => 2,
            payload::NextPhase::Strange(shown) => 3 + shown.len() as u64 / 81,
        };
        let emitted = command::emitted(&found.value, &found.span);
        let all = command::all(marked, emitted);
        100 + wish * 1000 + all.commands.len() as u64 * 10 + all.diagnostics.len() as u64
    }
    Target { name: "phase_payload", words: PHASE_WORDS, run }
}

/// `<recall>…</recall>`, and the blocks that pages are put into.
pub fn recall_tag() -> Target {
    const WORDS: &[&str] = &[
        "<recall>",
        "</recall>",
        "<RECALL>",
        "<memory name=\"",
        "</memory>",
        "<cathedral>",
        "`",
        "```\n",
        "~~~\n",
        "\n\n",
        "# A\n",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        let tags = tag::tags(&text);
        let mut last = 0;
        for tag in &tags {
            assert!(tag.at.start >= last && tag.title.len() <= tag.at.len());
            assert!(text[tag.at.clone()].to_ascii_lowercase().starts_with("<recall>"));
            last = tag.at.end;
        }
        let shown = tag::shown(&text);
        assert!(tag::tags(&shown).is_empty(), "{shown:?} still asks for a page");
        let (page, cut) = block::memory(&text, &text, 50);
        assert_eq!(page.to_ascii_lowercase().matches("</memory").count(), 1, "a page ends its own block: {page}");
        tags.len() as u64 * 4 + u64::from(cut) * 2 + u64::from(shown == *text)
    }
    Target { name: "recall_tag", words: WORDS, run }
}

/// What a provider sends, as one event or as a whole body.
pub fn provider_event() -> Target {
    const WORDS: &[&str] = &[
        "\"choices\":[{\"delta\":{\"content\":\"x\"}}]",
        "\"message\":{",
        "\"finish_reason\":\"stop\"",
        "\"usage\":{\"prompt_tokens\":1}",
        "\"type\":\"content_block_delta\"",
        "\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}",
        "\"error\":{\"type\":\"overloaded_error\"}",
        "\"content\":[{\"type\":\"text\",\"text\":\"x\"}]",
        "\"tool_calls\":[{}]",
        "-5",
    ];
    fn run(input: &[u8]) -> Kind {
        let Ok(value) = serde_json::from_slice::<Value>(input) else { return 0 };
        let mut kinds = 1;
        for read in [ChatCompletions::event, ChatCompletions::whole, MessagesApi::event, MessagesApi::whole] {
            let mut answer = PartialAnswer::default();
            let heard = read(&value, &mut answer).is_ok();
            assert!(answer.text.len() <= input.len(), "no more text than was sent");
            let said =
                [!answer.text.is_empty(), !answer.thoughts.is_empty(), answer.native_call, answer.finished, heard];
            kinds = said.iter().fold(kinds, |kinds, it| kinds * 2 + u64::from(*it));
        }
        kinds
    }
    Target { name: "provider_event", words: WORDS, run }
}

/// The events of a stream with native calls, one per line, as each provider sends them.
pub fn native_stream() -> Target {
    const WORDS: &[&str] = &[
        "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"file_read\",\"arguments\":\"{\"}}]}}]}",
        "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":{}}}],\"reasoning_content\":\"x\"}}]}",
        "{\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"x\"}]}}]}",
        "{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"x\",\"input\":{}}}",
        "{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}",
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"s\"}}",
        "{\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"a\"}}",
        "{\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{}\"}",
        "{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"encrypted_content\":\"x\"}}",
        "\"index\":18446744073709551615",
        "\n",
        "-1",
        "null",
    ];
    fn read<P: ProviderProtocol>(events: &[Value], sent: usize) -> Kind {
        let mut answer = PartialAnswer::begin(true);
        let heard = events.iter().take_while(|event| P::event(event, &mut answer).is_ok()).count();
        let items = std::mem::take(&mut answer.items);
        let calls = answer.take_calls();
        let length: usize = calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len()).sum();
        // Arguments that came as an object may be longer as text: an escape of each byte.
        assert!(length <= 6 * sent, "no more calls than were sent");
        for call in &calls {
            assert!(serde_json::from_str::<serde_json::Map<String, Value>>(&call.object_text()).is_ok());
        }
        let kept = P::kept(items, &calls);
        let mut said = ModelAnswer { calls, ..ModelAnswer::default() };
        said.name_calls(Default::default());
        let ids: std::collections::HashSet<&str> = said.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids.len(), said.calls.len(), "every call has an id of its own");
        // Whatever the calls are, they have a meaning and a sentence.
        let read = native::first(&said).map_or_else(|wrong| kind(&wrong.why), |_| 1);
        read ^ (heard.min(7) as u64 * 64 + said.calls.len().min(7) as u64 * 8 + kept.len().min(7) as u64)
    }
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        let events: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let sent = input.len();
        read::<ChatCompletions>(&events, sent)
            ^ read::<MessagesApi>(&events, sent).rotate_left(8)
            ^ read::<ResponsesApi>(&events, sent).rotate_left(16)
    }
    Target { name: "native_stream", words: WORDS, run }
}
