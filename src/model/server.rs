//! The servers of models: their addresses, their keys, and the presets of those that people run.

use std::time::Duration;

use acheron_base::{Error, Result};
use acheron_http::{Request, Secret};

/// What is known of a kind of server.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerPreset {
    /// As the mountspec and `--model` name it.
    pub kind: &'static str,
    pub key_variable: &'static str,
    pub base_url_variable: &'static str,
    pub base_url: &'static str,
    /// Without a key it answers nobody.
    pub needs_key: bool,
}

impl ServerPreset {
    const fn local(
        kind: &'static str,
        key_variable: &'static str,
        base_url_variable: &'static str,
        base_url: &'static str,
    ) -> ServerPreset {
        ServerPreset { kind, key_variable, base_url_variable, base_url, needs_key: false }
    }
}

pub static OPENAI: ServerPreset = ServerPreset {
    kind: "openai",
    key_variable: "OPENAI_API_KEY",
    base_url_variable: "OPENAI_BASE_URL",
    base_url: "https://api.openai.com/v1",
    needs_key: true,
};
pub static ANTHROPIC: ServerPreset = ServerPreset {
    kind: "anthropic",
    key_variable: "ANTHROPIC_API_KEY",
    base_url_variable: "ANTHROPIC_BASE_URL",
    base_url: "https://api.anthropic.com/v1",
    needs_key: true,
};

/// Only programs behind the gateway speak to it, in its own language.
pub static GEMINI: ServerPreset = ServerPreset {
    kind: "gemini",
    key_variable: "GEMINI_API_KEY",
    base_url_variable: "GEMINI_BASE_URL",
    base_url: "https://generativelanguage.googleapis.com/v1beta",
    needs_key: true,
};

/// The servers that speak as OpenAI's does.
pub static COMPATIBLE: [&ServerPreset; 5] = [
    &OPENAI,
    &ServerPreset {
        kind: "openrouter",
        key_variable: "OPENROUTER_API_KEY",
        base_url_variable: "OPENROUTER_BASE_URL",
        base_url: "https://openrouter.ai/api/v1",
        needs_key: true,
    },
    &ServerPreset::local("ollama", "OLLAMA_API_KEY", "OLLAMA_BASE_URL", "http://127.0.0.1:11434/v1"),
    &ServerPreset::local("vllm", "VLLM_API_KEY", "VLLM_BASE_URL", "http://127.0.0.1:8000/v1"),
    &ServerPreset::local("llamacpp", "LLAMA_API_KEY", "LLAMA_BASE_URL", "http://127.0.0.1:8080/v1"),
];

/// Every server that is known.
pub fn all_presets() -> impl Iterator<Item = &'static ServerPreset> {
    COMPATIBLE.into_iter().chain([&ANTHROPIC, &GEMINI])
}

/// The environment variables with keys, for messages.
pub fn key_variables() -> String {
    all_presets().map(|preset| preset.key_variable).collect::<Vec<_>>().join(", ")
}

/// How long a server may be silent; absent values are those of every request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// From the request to the first byte of the answer.
    pub first_byte: Option<Duration>,
    /// Between two pieces of the answer.
    pub idle: Option<Duration>,
}

/// The address of a model and its credentials.
#[derive(Clone, Debug)]
pub struct ModelServer {
    pub preset: &'static ServerPreset,
    /// The provider's name of the model.
    pub model: String,
    /// With its version (`/v1`), and without a trailing slash.
    pub base_url: String,
    /// From the environment, never from a file. A local server may need none.
    pub key: Option<Secret>,
    pub silence: Silence,
}

impl ModelServer {
    /// Determines the server from the configuration and the environment, which `env` looks up.
    pub fn find(
        preset: &'static ServerPreset,
        model: &str,
        base_url: Option<&str>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ModelServer> {
        let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        let given = base_url.map(str::to_owned).or_else(|| env(preset.base_url_variable));
        let key = env(preset.key_variable).map(|key| Secret::new(key.trim()));
        if key.is_none() && given.is_none() && preset.needs_key {
            return Err(Error::unavailable(format!("{} is not set; {} needs it", preset.key_variable, preset.kind)));
        }
        let base_url = versioned(given.as_deref().unwrap_or(preset.base_url));
        Ok(ModelServer { preset, model: model.to_owned(), base_url, key, silence: Silence::default() })
    }

    /// The key, as its server wants it in a header.
    pub fn secret(&self) -> Option<(&'static str, &'static str, Secret)> {
        let (name, prefix) = match self.preset.kind {
            "anthropic" => ("x-api-key", ""),
            "gemini" => ("x-goog-api-key", ""),
            _ => ("authorization", "Bearer "),
        };
        self.key.clone().map(|key| (name, prefix, key))
    }

    /// A request to a path of the server.
    pub fn post(&self, path: &str, body: &serde_json::Value) -> Request {
        let mut request = Request::post(format!("{}{path}", self.base_url), body);
        (request.first_byte, request.idle) = (self.silence.first_byte, self.silence.idle);
        request
    }
}

/// The address with its version. People write it with and without `/v1`, and copy whole addresses of requests.
fn versioned(url: &str) -> String {
    let url = url.trim().trim_end_matches('/');
    let requests = ["/chat/completions", "/responses", "/messages", "/models"];
    let url = requests.iter().find_map(|path| url.strip_suffix(path)).unwrap_or(url);
    let path = url.split_once("://").map_or(url, |(_, rest)| rest).split_once('/').map_or("", |(_, path)| path);
    let is_version =
        |part: &str| part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if path.split('/').any(is_version) { url.to_owned() } else { format!("{url}/v1") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_with_and_without_its_version() {
        for (given, found) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1"),
            ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1"),
            ("https://openrouter.ai/api", "https://openrouter.ai/api/v1"),
            ("https://g.example/v1beta/openai/", "https://g.example/v1beta/openai"),
            ("http://h/v1/chat/completions", "http://h/v1"),
            ("https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1"),
            ("http://vault:9/x", "http://vault:9/x/v1"),
        ] {
            assert_eq!(versioned(given), found, "{given}");
        }
        for preset in all_presets() {
            assert_eq!(versioned(preset.base_url), preset.base_url);
        }
    }
}
