use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Option<(ProxyRequest, usize)>, HeadFault> {
    ProxyRequest::read(text.as_bytes())
}

fn forwarded(text: &str) -> (String, String, u64) {
    match read(text).unwrap().unwrap().0 {
        ProxyRequest::Forward { to, head, body } => (to.to_string(), String::from_utf8(head).unwrap(), body),
        other => panic!("{other:?}"),
    }
}

#[test]
fn connect_is_read_as_programs_send_it() {
    // curl and Node; pip and urllib speak 1.0 and send no host.
    for text in [
        "CONNECT api.github.com:443 HTTP/1.1\r\nHost: api.github.com:443\r\nProxy-Connection: Keep-Alive\r\n\r\n",
        "CONNECT api.github.com:443 HTTP/1.0\r\n\r\n",
    ] {
        let (request, size) = read(text).unwrap().unwrap();
        assert_eq!((request, size), (ProxyRequest::Connect("api.github.com:443".parse_to()), text.len()));
    }
    assert_eq!(read("CONNECT api.github.com:443 HTTP/1.1\r\n"), Ok(None));
    let (_, size) = read("CONNECT a.example:1 HTTP/1.1\r\n\r\n\x16\x03").unwrap().unwrap();
    assert_eq!(size, 32);
}

trait ParseTo {
    fn parse_to(&self) -> Destination;
}

impl ParseTo for str {
    fn parse_to(&self) -> Destination {
        Destination::parse(self, None).unwrap()
    }
}

#[test]
fn a_url_of_plain_http_becomes_a_request_for_its_server() {
    let (to, head, body) = forwarded(
        "POST http://Example.org/a?b#c HTTP/1.1\r\nHost: other.example\r\nAccept: */*\r\nX-Own: 1\r\nConnection: x-own, \
         content-length\r\nProxy-Authorization: Basic x\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\nhello",
    );
    assert_eq!((to.as_str(), body), ("example.org:80", 5));
    let expected =
        "POST /a?b HTTP/1.1\r\nhost: Example.org\r\nAccept: */*\r\nContent-Length: 5\r\nconnection: close\r\n\r\n";
    assert_eq!(head, expected);
    let (to, head, _) = forwarded("GET http://[::1]:8080?x HTTP/1.0\r\n\r\n");
    assert_eq!((to.as_str(), head.lines().next()), ("[::1]:8080", Some("GET /?x HTTP/1.0")));
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    let refused = |text: &str| read(text).unwrap_err().status;
    let get = |headers: &str| format!("GET http://a.example/ HTTP/1.1\r\n{headers}\r\n\r\n");
    assert_eq!(refused(&get("Transfer-Encoding: chunked")), 411);
    for headers in [
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: +1",
        "Content-Length: ",
        "Content-Length : 1",
        "X: a\r\n folded",
        "X: a\nY: b",
        "X: \u{1}",
        "no colon",
    ] {
        assert_eq!(refused(&get(headers)), 400, "{headers:?}");
    }
    for line in [
        "GET / HTTP/1.1",
        "GET https://a.example/ HTTP/1.1",
        "GET http://user@a.example/ HTTP/1.1",
        "GET http:///x HTTP/1.1",
        "CONNECT a.example HTTP/1.1",
        "CONNECT a.example:443/x HTTP/1.1",
        "CONNECT a.example:443 HTTP/2.0",
        "CONNECT  a.example:443 HTTP/1.1",
        "",
    ] {
        assert_eq!(refused(&format!("{line}\r\n\r\n")), 400, "{line}");
    }
    assert_eq!(refused(&format!("GET http://a.example/{} HTTP/1.1\r\n\r\n", "x".repeat(MAX_HEAD))), 431);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, text in "[A-Z]{1,7} [ -~]{0,40} HTTP/1.[01]\r\n([ -~]{0,20}\r\n){0,3}\r\n") {
        _ = ProxyRequest::read(&bytes);
        if let Ok(Some((ProxyRequest::Forward { head, .. }, _))) = ProxyRequest::read(text.as_bytes()) {
            // One request, whatever was in it.
            let head = String::from_utf8(head).unwrap();
            prop_assert_eq!(head.matches("\r\n\r\n").count(), 1);
            prop_assert!(head.ends_with("connection: close\r\n\r\n"));
            prop_assert_eq!(head.to_ascii_lowercase().matches("\r\nhost: ").count(), 1);
        }
    }
}
