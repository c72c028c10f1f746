//! Which headers pass through the gateway. Keys, cookies and what concerns one connection do not.

/// Headers of a request that are not passed on.
const OWN_OF_REQUEST: [&str; 22] = [
    "host",
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "api-key",
    "cookie",
    "content-length",
    "content-type",
    "connection",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "accept-encoding",
    "forwarded",
    "origin",
    "referer",
    "via",
];

/// Headers of an answer that are not passed on.
const OWN_OF_ANSWER: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "set-cookie",
    "alt-svc",
    "strict-transport-security",
];

/// The headers of a request that go to a server of the same language.
pub fn of_request(headers: &[(String, String)]) -> Vec<(String, String)> {
    let passes = |name: &str| !OWN_OF_REQUEST.contains(&name) && !name.starts_with("x-forwarded-");
    headers.iter().filter(|(name, _)| passes(name)).cloned().collect()
}

/// The headers of an answer that go to the program.
pub fn of_answer(headers: &[(String, String)]) -> Vec<(String, String)> {
    headers.iter().filter(|(name, _)| !OWN_OF_ANSWER.contains(&name.as_str())).cloned().collect()
}

/// The query of a request without a key.
pub fn query_without_key(query: &str) -> String {
    let kept =
        query.split('&').filter(|part| !matches!(part.split('=').next(), Some("key" | "api_key" | "access_token")));
    kept.collect::<Vec<_>>().join("&")
}
