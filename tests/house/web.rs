//! `web_search` against a real HTTP server.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use expect_test::expect;
use parking_lot::Mutex;

use crate::test_host::TestHost;

/// A server that answers by what is searched for. It ends with the test.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut asked = String::new();
                _ = reader.read_line(&mut asked);
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                    line.clear();
                }
                let (head, body) = answer(&asked);
                let length = body.len();
                _ = write!(&stream, "HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            });
        }
    });
    address
}

/// When the server first said "come back in a second".
static ASKED_TO_WAIT: Mutex<Option<Instant>> = Mutex::new(None);

fn answer(asked: &str) -> (&'static str, String) {
    let found =
        r#"{"results":[{"title":"One","url":"http://a/1","content":"first"},{"title":"Two","url":"http://a/2"}]}"#;
    match asked {
        it if it.contains("nothing") => ("200 OK\r\ncontent-type: application/json", r#"{"results":[]}"#.to_owned()),
        // Refuses once; whoever comes back sooner than he was told is refused for good.
        it if it.contains("patience") => {
            let mut first = ASKED_TO_WAIT.lock();
            match *first.get_or_insert_with(Instant::now) {
                when if when.elapsed() >= Duration::from_secs(1) => ("200 OK", found.to_owned()),
                when if when.elapsed() < Duration::from_millis(100) => {
                    ("429 Too Many\r\nretry-after: 1", String::new())
                }
                _ => ("403 Forbidden", "too soon".to_owned()),
            }
        }
        it if it.contains("later") => ("429 Too Many Requests\r\nretry-after: 3600", "quota".to_owned()),
        it if it.contains("fault") => ("500 Internal Server Error", "a fault".to_owned()),
        it if it.contains("half") => ("200 OK\r\ncontent-type: application/json", r#"{"results":[{"ti"#.to_owned()),
        it if it.contains("busy") => ("429 Too Many Requests\r\nretry-after: 0", "slow down".to_owned()),
        it if it.contains("broken") => ("200 OK", "<html>not enabled</html>".to_owned()),
        it if it.contains("forbidden") => ("403 Forbidden", "no".to_owned()),
        it if it.contains("hang") => {
            std::thread::sleep(std::time::Duration::from_secs(3600));
            ("200 OK", String::new())
        }
        it if it.contains("site%3Aa.org") => ("200 OK", found.replace("http://a/", "http://a.org/")),
        _ => ("200 OK\r\ncontent-type: application/json", found.to_owned()),
    }
}

#[test]
fn the_web_is_searched_by_the_server_of_the_mountspec() {
    let spec = format!(
        r#"{{"layout":"acheron-1","agents":{{"a":{{}}}},"services":{{"web_search":{{"backend":"searxng","url":"{}"}}}}}}"#,
        server()
    );
    TestHost::of(&spec).check(
        r#"
        cd agents/a/web_search
        search() { echo "$1" > control/search.json; jq -c 'if .ok then .result else [.error.code, (.error.message | sub("1:[0-9]+"; "1:PORT") | sub("after .* GMT"; "after TIME"))] end' result.json; }
        search '{"query":"styx"}'
        search '{"query":"styx","max_results":1}' | jq -c '[.count, .truncated]'
        search '{"query":"styx","site":"a.org"}' | jq -c '[.results[].url]'
        search '{"query":"nothing"}'
        search '{"query":"busy"}' | jq -c '.[0]'
        search '{"query":"patience"}' | jq -c .count
        search '{"query":"later"}'
        search '{"query":"fault"}'
        search '{"query":"half"}'
        search '{"query":"broken"}' | jq -c '.[0]'
        search '{"query":"forbidden"}'
        search '{"query":" "}'
        echo '{"query":"hang"}' > control/search.json
        echo 1 > ../jobs/last/control/cancel
        jq -c .error.code result.json
        "#,
        expect![[r#"
            {"query":"styx","results":[{"title":"One","url":"http://a/1","snippet":"first"},{"title":"Two","url":"http://a/2","snippet":""}],"count":2,"truncated":false}
            [1,true]
            ["http://a.org/1","http://a.org/2"]
            {"query":"nothing","results":[],"count":0,"truncated":false}
            "busy"
            2
            ["busy","127.0.0.1:PORT/search answered 429 Too Many Requests: quota; try again after TIME (3600 s from now)"]
            ["provider_error","127.0.0.1:PORT/search answered 500 Internal Server Error: a fault (4 attempts)"]
            ["provider_error","the search server did not answer in JSON (is its JSON format enabled?): EOF while parsing a string at line 1 column 16"]
            "provider_error"
            ["provider_error","127.0.0.1:PORT/search answered 403 Forbidden: no"]
            ["invalid_payload","the query is empty"]
            "cancelled"
            ! environment: line 3: echo: write error: Invalid argument
        "#]],
    );
}

#[test]
fn a_server_that_never_answers_is_not_waited_for() {
    let spec = format!(
        r#"{{"layout":"acheron-1","agents":{{"a":{{}}}},
            "services":{{"web_search":{{"backend":"searxng","url":"{}","timeout_ms":200}}}}}}"#,
        server()
    );
    TestHost::of(&spec).check(
        r#"
        cd agents/a/web_search
        echo '{"query":"hang"}' > control/search.json
        jq -c '[.error.code, (.error.message | sub(":[0-9]+"; ":PORT"))]' result.json
        "#,
        expect![[r#"
            ["timeout","http://127.0.0.1:PORT did not answer within 200 ms"]
        "#]],
    );
}

#[test]
fn without_a_server_it_is_off_and_says_how_to_switch_it_on() {
    TestHost::new().check(
        r#"
        jq -c '.[] | select(.service_id == "web_search") | [.has_invoke, .invoke_path]' agents/self/services/SERVICES.json
        grep -c searxng agents/self/web_search/README.md
        "#,
        expect![[r#"
            [false,null]
            1
        "#]],
    );
}
