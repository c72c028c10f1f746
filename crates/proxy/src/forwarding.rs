//! The head of a request of plain HTTP as the server gets it.

use super::request_head::RequestHead;

/// Headers that are meant for the proxy, or for one connection.
const NOT_PASSED: [&str; 10] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The head with the path in place of the URL. The host is the one of the URL, which was checked; the connection ends with
/// the answer, so that each request is checked by itself.
pub fn head_for_server(asked: &RequestHead<'_>, authority: &str, path: &str) -> Vec<u8> {
    let path = path.split('#').next().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut head = format!("{} {slash}{path} {}\r\nhost: {authority}\r\n", asked.method, asked.version);
    let of_connection: Vec<&str> = asked.all("connection").flat_map(|value| value.split(',')).map(str::trim).collect();
    let listed = |name: &str, names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    for (name, value) in &asked.headers {
        let needed = name.eq_ignore_ascii_case("content-length");
        if needed || (!listed(name, &NOT_PASSED) && !listed(name, &of_connection)) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str("connection: close\r\n\r\n");
    head.into_bytes()
}
