//! What a path of the gateway asks for.

use super::Dialect;
use super::request::GeminiTarget;

/// The paths that are served, for refusals.
pub const SERVED: &str = "POST /v1/chat/completions, POST /v1/responses, POST /v1/messages, POST /v1/messages/count_tokens, \
                          POST /v1beta/models/MODEL:generateContent, :streamGenerateContent and :countTokens, GET /v1/models";

/// The meaning of a method and a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// An answer of the model. In Gemini's language the path names the model and says whether the answer is streamed.
    Generate(Dialect, Option<GeminiTarget>),
    /// The number of tokens of a request.
    Count(Dialect, Option<GeminiTarget>),
    /// The list of models, in this language.
    Models(Dialect),
    /// A program asks whether the gateway is there.
    Hello,
    /// A WebSocket is asked for, which the gateway does not speak: the program is to use HTTP.
    Upgrade,
    /// Nothing that is served; the refusal is in this language.
    Unknown(Dialect),
}

/// Reads a method and a path without its query. Programs write the version twice (`/v1/v1/messages`) or not at all.
pub fn route(method: &str, path: &str, upgrade: bool) -> Route {
    let mut rest = path.trim_end_matches('/');
    while let Some(shorter) = ["/v1beta/", "/v1alpha/", "/v1/"].iter().find_map(|version| rest.strip_prefix(version)) {
        // A path such as `/v1//v1/messages` is one too.
        rest = &rest[rest.len() - shorter.len() - 1..];
    }
    let rest = rest.trim_start_matches('/');
    let gemini = rest.strip_prefix("models/").and_then(|name| name.rsplit_once(':'));
    match (method, rest) {
        ("GET", "responses") if upgrade => Route::Upgrade,
        ("POST", "chat/completions") => Route::Generate(Dialect::Chat, None),
        ("POST", "responses") => Route::Generate(Dialect::Responses, None),
        ("POST", "messages") => Route::Generate(Dialect::Messages, None),
        ("POST", "messages/count_tokens") => Route::Count(Dialect::Messages, None),
        ("GET", "models") if path.starts_with("/v1beta") => Route::Models(Dialect::Gemini),
        ("GET", "models") => Route::Models(Dialect::Chat),
        ("HEAD" | "GET", "api/hello" | "" | "v1") => Route::Hello,
        ("POST", _) => match gemini {
            Some((model, action)) => gemini_route(model, action),
            None => Route::Unknown(dialect_of(path)),
        },
        _ => Route::Unknown(dialect_of(path)),
    }
}

fn gemini_route(model: &str, action: &str) -> Route {
    let target = |stream| Some(GeminiTarget { model: model.to_owned(), stream });
    match action {
        "generateContent" => Route::Generate(Dialect::Gemini, target(false)),
        "streamGenerateContent" => Route::Generate(Dialect::Gemini, target(true)),
        "countTokens" => Route::Count(Dialect::Gemini, target(false)),
        _ => Route::Unknown(Dialect::Gemini),
    }
}

/// The language that a program which asks for this path probably speaks.
fn dialect_of(path: &str) -> Dialect {
    if path.contains("v1beta") || path.contains(":generate") {
        Dialect::Gemini
    } else if path.contains("messages") || path.contains("/api/") {
        Dialect::Messages
    } else if path.contains("responses") {
        Dialect::Responses
    } else {
        Dialect::Chat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_same_with_one_version_with_two_and_with_none() {
        for path in ["/v1/messages", "/v1/v1/messages", "/messages", "/v1/messages/"] {
            assert_eq!(route("POST", path, false), Route::Generate(Dialect::Messages, None), "{path}");
        }
        let target = GeminiTarget { model: "gemini-3".to_owned(), stream: true };
        for path in
            ["/v1beta/models/gemini-3:streamGenerateContent", "/v1/v1beta/models/gemini-3:streamGenerateContent"]
        {
            assert_eq!(route("POST", path, false), Route::Generate(Dialect::Gemini, Some(target.clone())), "{path}");
        }
        assert_eq!(route("GET", "/v1/responses", true), Route::Upgrade);
        assert_eq!(route("GET", "/v1/responses", false), Route::Unknown(Dialect::Responses));
        assert_eq!(route("HEAD", "/api/hello", false), Route::Hello);
        assert_eq!(route("GET", "/v1/models", false), Route::Models(Dialect::Chat));
        assert_eq!(route("GET", "/v1beta/models", false), Route::Models(Dialect::Gemini));
        assert_eq!(route("POST", "/v1/embeddings", false), Route::Unknown(Dialect::Chat));
        for odd in ["", "/", "//", "/v1", "/v1/", "/v1/v1", "/v1/models/:", ":"] {
            route("POST", odd, false);
        }
    }
}
