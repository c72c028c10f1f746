use proptest::prelude::*;
use serde_json::json;

use super::*;

fn said(text: &str) -> Vec<String> {
    match Spec::check(text) {
        Ok(_) => vec![],
        Err(faults) => faults.iter().map(ValueFault::to_string).collect(),
    }
}

#[test]
fn the_spec_in_the_program_is_sound_and_says_the_defaults() {
    let spec = Spec::check(DEFAULT).unwrap();
    assert_eq!(spec.default_agent(), "charon");
    let plain = Spec { schema_url: None, default_agent: None, ..spec };
    assert_eq!(plain, Spec::default());
    assert_eq!(Spec::check("{}").unwrap(), Spec::default());
}

#[test]
fn the_published_schema_is_the_generated_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/mountspec/SCHEMA.json");
    let generated = serde_json::to_string_pretty(&Spec::schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &generated).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(published == generated, "mountspec/SCHEMA.json is not what the types say; UPDATE_EXPECT=1 writes it");
    assert!(jsonschema::meta::is_valid(&Spec::schema()));
    let validator = jsonschema::draft202012::new(&Spec::schema()).unwrap();
    assert!(validator.is_valid(&serde_json::from_str(DEFAULT).unwrap()));
    assert!(!validator.is_valid(&json!({"agnets": {}})));
}

#[test]
fn every_fault_is_named_with_its_path() {
    let table: &[(&str, &[&str])] = &[
        ("", &["not JSON: EOF while parsing a value at line 1 column 0"]),
        ("{\"layout\": }", &["not JSON: expected value at line 1 column 12"]),
        ("{} x", &["not JSON: trailing characters at line 1 column 4"]),
        ("[]", &["must be an object, not an array"]),
        (r#"{"agnets": {}}"#, &[r#"unknown key `agnets`; did you mean agents?"#]),
        (r#"{"modle": {}}"#, &[r#"unknown key `modle`; did you mean model?"#]),
        (
            r#"{"model": {"kind": "openai", "name": "m", "api_key": "sk-1"}}"#,
            &["model: unknown key `api_key`: the mountspec holds no secrets; set the variable of the provider in the \
               environment of `acheron mount` (OPENAI_API_KEY, OPENROUTER_API_KEY, OLLAMA_API_KEY, VLLM_API_KEY, \
               LLAMA_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY)"],
        ),
        (r#"{"model": {"kind": "vllm"}}"#, &["model.name: must name the model"]),
        (
            r#"{"model": {"kind": "anthropic", "name": "m", "api": "responses"}}"#,
            &["model.api: anthropic has no responses API; leave it out"],
        ),
        (
            r#"{"agents": {"a": {"limits": {"ruonds": 3}}}}"#,
            &[r#"agents.a.limits: unknown key `ruonds`; did you mean rounds?"#],
        ),
        (
            r#"{"agents": {"a": {"limits": {"rounds": "3"}}}}"#,
            &["agents.a.limits.rounds: must be a whole number, not a string"],
        ),
        (r#"{"agents": {"a": {"limits": {"rounds": 0}}}}"#, &["agents.a.limits.rounds: must be at least 1, not 0"]),
        (r#"{"layout": "acheron-2"}"#, &[r#"layout: `acheron-2` is not known; this program knows acheron-1"#]),
        (r#"{"default_agent": "charom"}"#, &[r#"default_agent: there is no agent `charom`; did you mean charon?"#]),
        (r#"{"agents": {}}"#, &["agents: must name at least one agent"]),
        (
            r#"{"agents": {"self": {}}}"#,
            &["agents.self: self refers to the calling agent; it cannot be the id of an agent"],
        ),
        (
            r#"{"agents": {"A b": {}}}"#,
            &[r#"agents["A b"]: an id has up to 64 of a-z, 0-9, _ and -, and begins with a letter or a digit"#],
        ),
        (r#"{"sandbox": {"system": ["/opt", "/usr/local"]}}"#, &[]),
        (
            r#"{"sandbox": {"system": ["/opt", "opt", "/home/x"]}}"#,
            &[
                "sandbox.system[1]: `opt` is not absolute",
                "sandbox.system[2]: `/home/x` cannot be shown: /home is something else in a sandbox; bind it in a project \
                 instead",
            ],
        ),
        (r#"{"agents": {"a": {}, "a": {}}}"#, &["agents.a: is repeated"]),
        (
            r#"{"agents": {"a": {"projects": ["hree"]}}}"#,
            &[r#"agents.a.projects[0]: there is no project `hree`; did you mean here?"#],
        ),
        (
            r#"{"agents": {"a": {"limits": {"money": 2}}}}"#,
            &["agents.a.limits.money: needs model.prices; without prices every call costs 0"],
        ),
        (r#"{"agents": {"a": {"limits": {"money": 0}}}}"#, &["agents.a.limits.money: must be more than 0"]),
        (r#"{"model": {"prices": {"output_per_mtok": 1}}, "agents": {"a": {"limits": {"money": 2}}}}"#, &[]),
        (
            r#"{"agents": {"a": {"budget": {"money": 2, "rounds": 0}}}}"#,
            &[
                "agents.a.budget.rounds: must be at least 1, not 0",
                "agents.a.budget.money: needs model.prices; without prices every call costs 0",
            ],
        ),
        (r#"{"agents": {"a": {"budget": {"tokens": 2, "money": null}}}}"#, &[]),
        (r#"{"agents": {"a": {"limits": {"money": 2}, "model": {"prices": {"input_per_mtok": 3}}}}}"#, &[]),
        (
            r#"{"model": {"prices": {"input_per_mtok": -1}}}"#,
            &["model.prices.input_per_mtok: must be at least 0, not -1"],
        ),
        (
            r#"{"model": {"kind": "opneai", "name": "x"}}"#,
            &[r#"model.kind: `opneai` is not known; did you mean openai?"#],
        ),
        (
            r#"{"agents": {"charon": {"model": {"kind": "opena"}}}}"#,
            &["agents.charon.model.kind: `opena` is not known; did you mean openai?"],
        ),
        (
            r#"{"dm": {"narrator": {"kind": "opena"}}}"#,
            &["dm.narrator.kind: `opena` is not known; did you mean openai?"],
        ),
        (
            r#"{"dm": {"narrator": {"kind": 5}}}"#,
            &[
                "dm.narrator.kind: must be one of anthropic, script, replay, openai, gemini, ollama, openrouter, vllm, llamacpp, external, acp, not a number",
            ],
        ),
        (r#"{"model": {"kind": "openai"}}"#, &["model.name: must name the model"]),
        (
            r#"{"model": {"kind": "openai", "name": "x", "base_url": "localhost"}}"#,
            &[r#"model.base_url: `localhost` is not a URL; it must begin with http:// or https://"#],
        ),
        (r#"{"agents": {"a": {"model": {"kind": "anthropic"}}}}"#, &["agents.a.model.name: must name the model"]),
        (
            r#"{"agents": {"a": {"permissions": [{"path": "/x"}]}}}"#,
            &["agents.a.permissions[0]: neither allows nor denies nor asks anything"],
        ),
        (
            r#"{"agents": {"a": {"permissions": [{"allow": ["read"], "path": "x"}, {"alow": ["read"], "path": "/x"}]}}}"#,
            &[
                r#"agents.a.permissions[1]: unknown key `alow`; did you mean allow?"#,
                "agents.a.permissions[0].path: must begin with /",
                "agents.a.permissions[1]: neither allows nor denies nor asks anything",
            ],
        ),
        (
            r#"{"agents": {"a": {"wake": [{"on": "/agents/self/events/sources/tmie/after/1.json", "say": " "}]}}}"#,
            &[
                "agents.a.wake[0].on: sources/tmie/after/1.json is not a source: the path is too deep",
                "agents.a.wake[0].say: must not be empty",
            ],
        ),
        (
            r#"{"projects": {"here": {"binds": {"a": {"path": ""}, "/b/../c": {"path": "x"}, "/": {}}}}}"#,
            &[
                r#"projects.here.binds["/"]: path is missing"#,
                r#"projects.here.binds["/b/../c"]: must be a plain path, without //, ., .. or a slash at the end"#,
                "projects.here.binds.a: must begin with /, the root of the project's fs/",
                "projects.here.binds.a.path: must name a directory",
            ],
        ),
        (
            r#"{"projects": {"here": {"binds": {"a": {"path": ""}, "/b/../c": {"path": "x"}, "/d/": {"path": "x"}}}}}"#,
            &[
                r#"projects.here.binds["/b/../c"]: must be a plain path, without //, ., .. or a slash at the end"#,
                r#"projects.here.binds["/d/"]: must be a plain path, without //, ., .. or a slash at the end"#,
                "projects.here.binds.a: must begin with /, the root of the project's fs/",
                "projects.here.binds.a.path: must name a directory",
            ],
        ),
        (
            r#"{"services": {"weather": {}}}"#,
            &[
                "services.weather: has no command, and is not a built-in service; built-in services are agents, dm, mail, memory, mounts, phases, prompts, queues, recall, search_code, sub_brains, symbols, terminal, web_search",
            ],
        ),
        (
            r#"{"services": {"web_serach": {"backend": "searxng", "url": "http://x"}}}"#,
            &["services.web_serach: has no command, and is not a built-in service; did you mean web_search?"],
        ),
        (r#"{"services": {"web_search": {"backend": "searxng", "url": "http://x"}}}"#, &[]),
        (
            r#"{"services": {"web_search": {"backend": "searxng"}}}"#,
            &["services.web_search.url: must be the URL of the backend, such as http://127.0.0.1:8888"],
        ),
        (r#"{"services": {"w": {"command": ["./w.py"], "operations": {"today": {}}}}}"#, &[]),
        (
            r#"{"services": {"w": {"command": [""], "operations": {"today": {}}}}}"#,
            &["services.w.command[0]: must name the program"],
        ),
        (r#"{"services": {"w": {"command": ["w"]}}}"#, &["services.w.operations: must name at least one operation"]),
        (
            r#"{"services": {"terminal": {"command": ["w"], "operations": {"x": {}}}}}"#,
            &["services.terminal: this name is reserved; choose another"],
        ),
        (
            r#"{"services": {"w": {"command": ["w"], "operations": {"To Day": {}}}}}"#,
            &[r#"services.w.operations: `To Day` cannot be the name of an operation"#],
        ),
        (
            r#"{"services": {"w": {"command": ["w"], "operations": {"x": {"arguments": {"type": "object", "required": ["a"]}, "example": {}}}}}}"#,
            &["services.w.operations: the example of x is refused: x: a is missing"],
        ),
        (
            r#"{"symbols": {"backend": "redis"}}"#,
            &["symbols.url: the redis backend needs a URL: redis://127.0.0.1:6379/0"],
        ),
        (r#"{"symbols": {"url": "redis://x"}}"#, &["symbols.url: applies only to the redis backend"]),
        (
            r#"{"retention": {"jobs": 0}, "state": ""}"#,
            &["retention.jobs: must be at least 1, not 0", "state: must name a directory"],
        ),
    ];
    for (text, expected) in table {
        assert_eq!(said(text), *expected, "{text}");
    }
}

#[test]
fn an_agent_changes_only_what_it_says_about_its_model() {
    let text = r#"{"model": {"kind": "openai", "name": "big", "base_url": "http://x", "context_tokens": 9000},
        "agents": {"a": {"model": {"name": "small"}}, "b": {"model": {"kind": "script"}}}}"#;
    let spec = Spec::check(text).unwrap();
    let a = spec.model_of(&spec.agents["a"]);
    assert_eq!(
        (a.kind, a.name.as_deref(), a.base_url.as_deref()),
        (ModelKind::Openai, Some("small"), Some("http://x"))
    );
    let b = spec.model_of(&spec.agents["b"]);
    assert_eq!((b.kind, b.name, b.base_url, b.context_tokens), (ModelKind::Script, None, None, 9000));
}

#[test]
fn a_program_has_a_contract_like_any_service() {
    let text = r#"{"services": {"weather": {"command": ["./weather.py"], "about": "Weather.", "operations": {"today": {
        "arguments": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false},
        "effect": "read", "timeout_ms": 5000, "idempotent": true, "example": {"city": "Oslo"}}}}}}"#;
    let spec = Spec::check(text).unwrap();
    let contract = contract_of("weather", &spec.services["weather"]).unwrap();
    assert_eq!(contract.ops()["today"]["deadline_ms"], 5000);
    assert!(contract.check("today", &json!({"city": 7})).is_err());
}

#[test]
fn a_file_is_loaded_or_all_its_faults_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spec.json");
    assert_eq!(Spec::load(&path).unwrap_err().code, acheron_base::Code::NotFound);
    assert_eq!(Spec::load(dir.path()).unwrap_err().code, acheron_base::Code::InvalidPayload);
    std::fs::write(&path, r#"{"agnets": {}, "layout": "x"}"#).unwrap();
    let message = Spec::load(&path).unwrap_err().message.replace(path.to_str().unwrap(), "FILE");
    expect_test::expect![[r#"
        FILE cannot be mounted:
          unknown key `agnets`; did you mean agents?
          layout: `x` is not known; this program knows acheron-1"#]]
    .assert_eq(&message);
    std::fs::write(&path, "{}").unwrap();
    Spec::load(&path).unwrap();
}

proptest! {
    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        let _ = Spec::check(&text);
    }

    #[test]
    fn nearly_a_spec_is_answered(cut in 0..DEFAULT.len(), put in "[\\[\\]{}\":,0-9a-z]{0,3}") {
        if DEFAULT.is_char_boundary(cut) {
            let _ = Spec::check(&format!("{}{put}{}", &DEFAULT[..cut], &DEFAULT[cut..]));
        }
    }
}

#[test]
fn what_cannot_be_read_does_not_hide_other_faults() {
    let table: &[(&str, &[&str])] = &[
        (
            r#"{"agnts": {}, "librari": "x", "agents": {"c": {"projects": ["zz"]}},
                "services": {"x": {"command": [], "operations": {"A b": {"effect": "maybe"}}}}}"#,
            &[
                "unknown key `agnts`; other keys are $schema, layout, default_agent, state, library, skills, prompts, \
                 model, projects, sandbox, memory, symbols, recall, dm, retention, limits, …",
                "unknown key `librari`; did you mean library?",
                r#"services.x.operations["A b"].effect: `maybe` is not known; possible values are read, write, execute"#,
                "agents.c.projects[0]: there is no project `zz`; projects are here",
                "services.x.command: must name the program",
                "services.x.operations: `A b` cannot be the name of an operation",
            ],
        ),
        // A part that cannot be read is not also missing.
        (
            r#"{"agents": {"c": 5}, "projects": {"p": []}, "default_agent": "d"}"#,
            &[
                "agents.c: must be an object, not a number",
                "projects.p: must be an object, not an array",
                "default_agent: there is no agent `d`; did you mean c?",
            ],
        ),
        (
            r#"{"agents": {"c": {"projects": ["p", "q"], "permissions": [{"allow": ["read"]}]}}, "projects": {"p": 1}}"#,
            &[
                "agents.c.permissions[0]: path is missing",
                "projects.p: must be an object, not a number",
                "agents.c.projects[1]: there is no project `q`; did you mean p?",
            ],
        ),
        (
            r#"{"symbols": {"backend": "redi", "url": "redis://x"}, "model": {"prices": 3},
                "agents": {"c": {"limits": {"money": 2}}}}"#,
            &[
                "symbols.backend: `redi` is not known; did you mean redis?",
                "model.prices: must be an object, not a number",
            ],
        ),
    ];
    for (text, expected) in table {
        assert_eq!(said(text), *expected, "{text}");
    }
}

#[test]
fn the_schemas_of_an_operation_are_schemas() {
    let said_of = |schema: &str| {
        said(&format!(r#"{{"services": {{"x": {{"command": ["true"], "operations": {{"go": {schema}}}}}}}}}"#))
    };
    assert_eq!(
        said_of(r#"{"arguments": {"type": "objekt"}}"#),
        ["services.x.operations.go.arguments.type: `objekt` is not known; did you mean object?"]
    );
    assert_eq!(
        said_of(r#"{"result": {"type": "object", "properties": {"n": {"type": ["integer", "nul"]}}}}"#),
        ["services.x.operations.go.result.properties.n.type[1]: `nul` is not known; did you mean null?"]
    );
    let wrong = said_of(r#"{"arguments": {"required": "name"}, "result": {"minimum": "1"}}"#);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(
        wrong[0].starts_with("services.x.operations.go.arguments.required: is not valid in a JSON Schema: "),
        "{wrong:?}"
    );
    assert!(
        wrong[1].starts_with("services.x.operations.go.result.minimum: is not valid in a JSON Schema: "),
        "{wrong:?}"
    );
    assert_eq!(
        said_of(r#"{"arguments": 7}"#),
        ["services.x.operations.go.arguments: is not a JSON Schema: it must be an object"]
    );
    assert_eq!(
        said_of(r#"{"arguments": {"type": "object", "properties": {"type": {"const": "objekt"}}}, "result": true}"#),
        [""; 0]
    );
}
