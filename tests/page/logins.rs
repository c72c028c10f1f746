//! Logins, cookies and the headers of every answer, as a client that is no browser sees them.

use std::process::Command;

use serde_json::json;

use crate::common::until;
use crate::driver::PageHost;
use crate::served::{HttpAnswer, bearer, token};

fn two_agents() -> PageHost {
    PageHost::new(
        |model| json!({"layout": "acheron-1", "model": model, "default_agent": "charon", "agents": {"charon": {}, "ada": {}}}),
        |_| (),
    )
}

fn path_of(login: &str) -> &str {
    &login[login.find("/login").unwrap()..]
}

/// The cookie that an answer sets, as a browser would send it.
fn cookie(answer: &HttpAnswer) -> String {
    let set = answer.header("set-cookie").unwrap_or_else(|| panic!("{answer:?}"));
    for part in ["; httponly", "; samesite=strict", "; path=/", "; max-age="] {
        assert!(set.contains(part), "{set}");
    }
    set.split(';').next().unwrap().to_owned()
}

#[test]
fn a_login_is_good_once_and_becomes_a_cookie_with_the_rights_of_its_principal() {
    let page = two_agents();
    let served = &page.served;
    let get = |path: &str, cookie: &str| served.ask("GET", path, &[("cookie", cookie)], "");
    let login = page.login(&[]);
    assert!(login.starts_with(&served.url), "{login}");
    // A look ahead uses nothing up.
    assert_eq!(served.ask("GET", path_of(&login), &[("sec-purpose", "prefetch")], "").status, 401);
    assert_eq!(served.ask("HEAD", path_of(&login), &[], "").status, 401);
    let entered = served.ask("GET", path_of(&login), &[], "");
    assert_eq!((entered.status, entered.header("location")), (200, None));
    let operator = cookie(&entered);
    assert_eq!(served.ask("GET", path_of(&login), &[], "").status, 401, "twice");
    assert_eq!(served.ask("GET", "/login?code=0000", &[], "").status, 401);
    assert_eq!(get("/", &operator).status, 200);
    assert_eq!(get("/web/main.js", &operator).header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(get("/fs/meta/health.json", &operator).status, 200);
    // An agent's login shows what that agent sees.
    let ada = cookie(&served.ask("GET", path_of(&page.login(&["--agent", "ada"])), &[], ""));
    assert_eq!(get("/fs/agents/ada/chat/status.json", &ada).status, 200);
    assert_eq!(
        (get("/fs/agents/charon/chat/status.json", &ada).status, get("/fs/meta/agents.json", &ada).status),
        (404, 404)
    );
    // It stands in the audit, and ends when it is revoked, or by itself.
    let audit = page.house.says("jq -c 'select(.kind == \"login\") | .principal' meta/audit.ndjson");
    assert_eq!(audit, "\"operator\"\n\"agent ada\"\n");
    let rows = token(&page.house, &["list", "--json"]);
    let rows: Vec<serde_json::Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert!(rows.len() == 2 && rows.iter().all(|row| row["expires_at_ms"].is_u64()), "{rows:?}");
    let other = rows.iter().find(|row| row["principal"] == "agent ada").unwrap();
    token(&page.house, &["revoke", other["id"].as_str().unwrap()]);
    assert_eq!(get("/fs/agents/ada/chat/status.json", &ada).status, 401);
    let same = format!("http://{}", served.address());
    let out = served.ask("POST", "/logout", &[("cookie", &operator), ("origin", &same)], "");
    assert!(out.status == 204 && out.header("set-cookie").unwrap().contains("max-age=0"), "{out:?}");
    assert_eq!(get("/", &operator).status, 401);
}

#[test]
fn without_a_login_everything_is_a_401_that_runs_nothing_and_leads_nowhere() {
    let page = two_agents();
    let served = &page.served;
    let operator = cookie(&served.ask("GET", path_of(&page.login(&[])), &[], ""));
    let known = [("cookie", operator.as_str())];
    for method in ["GET", "HEAD"] {
        for path in
            ["/", "/web/main.js", "/web/nowhere", "/login", "/login?code=x", "/fs/", "/fs/meta/agents.json", "/nowhere"]
        {
            for headers in [&[][..], &known[..]] {
                let answer = served.ask(method, path, headers, "");
                let expected = match (headers.is_empty(), path) {
                    (true, _) | (false, "/login" | "/login?code=x") => 401,
                    (false, "/web/nowhere" | "/nowhere") => 404,
                    (false, _) => 200,
                };
                assert_eq!(answer.status, expected, "{method} {path}");
                let policy =
                    answer.header("content-security-policy").unwrap_or_else(|| panic!("{method} {path}: {answer:?}"));
                assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
                assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
                assert_eq!(answer.header("location"), None);
                for (name, value) in [
                    ("x-content-type-options", "nosniff"),
                    ("x-frame-options", "deny"),
                    ("referrer-policy", "no-referrer"),
                ] {
                    assert_eq!(answer.header(name), Some(value), "{method} {path}: {answer:?}");
                }
            }
        }
    }
    // Of the methods that change something, none passes either.
    for method in ["POST", "PUT", "DELETE", "MKCOL", "MOVE", "OPTIONS", "PATCH"] {
        let answer = served.ask(method, "/fs/agents/charon/chat/control/input", &[], "hi");
        assert!(answer.status == 401 && answer.header("content-security-policy").is_some(), "{method}: {answer:?}");
    }
}

#[test]
fn only_the_page_itself_asks_with_the_cookie() {
    let page = two_agents();
    let served = &page.served;
    let operator = cookie(&served.ask("GET", path_of(&page.login(&[])), &[], ""));
    let same = format!("http://{}", served.address());
    let input = "/fs/agents/charon/memory/control/search.json";
    for (headers, expected) in [
        (vec![("origin", same.as_str()), ("sec-fetch-site", "same-origin")], 202),
        (vec![("sec-fetch-site", "same-origin")], 202),
        (vec![("origin", same.as_str())], 202),
        (vec![], 403),
        (vec![("sec-fetch-site", "none")], 403),
        (vec![("sec-fetch-site", "same-site"), ("origin", same.as_str())], 403),
        (vec![("sec-fetch-site", "cross-site")], 403),
        (vec![("origin", "http://127.0.0.1:1")], 403),
        (vec![("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")], 403),
        (vec![("origin", "null")], 403),
        (vec![("host", "evil.example"), ("sec-fetch-site", "same-origin")], 403),
    ] {
        let mut all = vec![("cookie", operator.as_str())];
        all.extend(headers.clone());
        let answer = served.ask("POST", input, &all, r#"{"query":"x"}"#);
        assert_eq!(answer.status, expected, "{headers:?}: {answer:?}");
    }
    let get =
        |site: &str| served.ask("GET", "/fs/README.md", &[("cookie", &operator), ("sec-fetch-site", site)], "").status;
    assert_eq!(["same-origin", "none", "same-site", "cross-site"].map(get), [200, 200, 403, 403]);
    // The cookie of another port is none, and a token beside it counts alone.
    let renamed = format!("acheron-1={}", operator.split_once('=').unwrap().1);
    assert_eq!(served.ask("GET", "/fs/README.md", &[("cookie", &renamed)], "").status, 401);
    let wrong = [("cookie", operator.as_str()), ("authorization", "Bearer ach_0")];
    assert_eq!(served.ask("GET", "/fs/README.md", &wrong, "").status, 401);
    let word = bearer(&token(&page.house, &["create", "--operator"]));
    assert_eq!(served.ask("POST", input, &[("authorization", &word)], r#"{"query":"x"}"#).status, 202);
}

#[test]
fn what_files_hold_is_never_a_page() {
    let page = PageHost::new(
        |model| {
            json!({"layout": "acheron-1", "model": model, "agents": {"charon": {"projects": ["here"]}},
            "projects": {"here": {"binds": {"/": {"path": "."}}}}})
        },
        |here| {
            for name in ["evil.html", "evil.svg", "evil.xhtml", "evil", "<img src=x onerror=alert(1)>.md"] {
                std::fs::write(here.join(name), "<script>alert(1)</script>").unwrap();
            }
        },
    );
    let served = &page.served;
    let word = bearer(&token(&page.house, &["create", "--operator"]));
    for name in ["evil.html", "evil.svg", "evil.xhtml", "evil", "%3Cimg%20src=x%20onerror=alert(1)%3E.md"] {
        let answer = served.ask("GET", &format!("/fs/projects/here/fs/{name}"), &[("authorization", &word)], "");
        let kind = answer.header("content-type").unwrap();
        assert!(
            answer.status == 200 && ["application/octet-stream", "text/markdown; charset=utf-8"].contains(&kind),
            "{answer:?}"
        );
        assert!(answer.header("content-security-policy").unwrap().contains("sandbox"), "{answer:?}");
    }
}

#[test]
fn open_serves_the_page_itself_if_nobody_does_and_ends_with_its_command() {
    let mut page = two_agents();
    page.served.end();
    let state = page.house.state();
    let mut command = Command::new(env!("CARGO_BIN_EXE_acheron"));
    command.args(["open", "--print", "--listen", "127.0.0.1:0", "--state"]).arg(&state);
    let mut child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut url = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut url).unwrap();
    let host = url.split('/').nth(2).unwrap().to_owned();
    let asked = || std::net::TcpStream::connect(&host).is_ok();
    assert!(url.contains("/login?code=") && asked(), "{url}");
    // Another one finds it served.
    assert!(page.login(&[]).contains(&host));
    child.kill().unwrap();
    child.wait().unwrap();
    until("the listener is closed", || !asked());
    let unknown = Command::new(env!("CARGO_BIN_EXE_acheron"))
        .args(["open", "--print", "--agent", "nobody", "--state"])
        .arg(&state)
        .output()
        .unwrap();
    assert!(!unknown.status.success() && String::from_utf8_lossy(&unknown.stderr).contains("there is no agent"));
}
