use super::*;

fn served(kind: &str, model: &str) -> ModelConfig {
    let preset = all_presets().find(|preset| preset.kind == kind).unwrap();
    let (responses, silence) = (false, Silence::default());
    ModelConfig::Remote(RemoteConfig { preset, model: model.to_owned(), base_url: None, responses, silence })
}

#[test]
fn a_kind_and_a_name_are_a_model() {
    for (kind, name, wanted) in [
        ("script", None, Ok(ModelConfig::Script(None))),
        ("script", Some("a/b.ndjson"), Ok(ModelConfig::Script(Some("a/b.ndjson".into())))),
        ("ollama", Some("qwen3:8b"), Ok(served("ollama", "qwen3:8b"))),
        ("anthropic", Some("m"), Ok(served("anthropic", "m"))),
        ("anthropic", Some(""), Err("model anthropic needs the name of a model")),
        ("replay", None, Err("model replay needs the file of a recording")),
        ("external", None, Ok(ModelConfig::External)),
        (
            "oracle",
            None,
            Err("unknown model kind `oracle`; kinds are script, replay, openai, openrouter, ollama, vllm, llamacpp, \
                 anthropic, gemini and external"),
        ),
    ] {
        let read = ModelConfig::read(kind, name, None).map_err(|error| error.message);
        assert_eq!(read, wanted.map_err(str::to_owned), "{kind}");
    }
}

#[test]
fn a_key_is_asked_for_by_name() {
    let kind = ModelConfig::read("anthropic", Some("m"), None).unwrap();
    let http = Arc::new(Http::new(Default::default(), acheron_base::Clock::real()));
    let error = kind.open("ada", Path::new("."), &http, &|_| None, 0).err().unwrap();
    assert_eq!(error.message, "ANTHROPIC_API_KEY is not set; anthropic needs it");
}

#[test]
fn a_script_is_a_file_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    nix::unistd::mkfifo(&dir.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for path in [&dir.path().join("pipe"), dir.path(), Path::new("/dev/zero")] {
        assert_eq!(text(path).unwrap_err().to_string(), "it is not a file", "{}", path.display());
    }
}

#[test]
fn a_key_goes_into_the_header_of_its_server() {
    for (kind, header, prefix) in [
        ("openai", "authorization", "Bearer "),
        ("vllm", "authorization", "Bearer "),
        ("anthropic", "x-api-key", ""),
        ("gemini", "x-goog-api-key", ""),
    ] {
        let Ok(ModelConfig::Remote(remote)) = ModelConfig::read(kind, Some("m"), None) else { panic!("{kind}") };
        let server = remote.server(&|name| Some(name.to_owned()).filter(|name| name.ends_with("_API_KEY"))).unwrap();
        let (name, before, key) = server.secret().unwrap();
        assert_eq!((name, before), (header, prefix));
        assert_eq!(key.redacted(server.preset.key_variable), "[secret]", "the key is the one of its own variable");
    }
}
