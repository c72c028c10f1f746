//! `web_search`: asks a SearXNG server.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::contract::{Contract, Operation};
use crate::jobs::Call;
use crate::service::{Cx, Serve, Service};
use acheron_base::{Code, Error, Random, Result};
use acheron_http::{BodyBytes, Http, Request};
use acheron_vfs::Caller;

/// The longest answer that is read, and the longest text of one result.
const LARGEST: u64 = 8 << 20;
const SNIPPET: usize = 500;
/// How long a server may take unless the mountspec says otherwise.
pub const TIME_LIMIT: Duration = Duration::from_secs(45);

/// A web search with a server behind it.
pub struct WebSearch {
    /// Without a slash at its end.
    url: String,
    http: Http,
    /// How long the server may take, further attempts included.
    time_limit: Duration,
    random: Random,
}

impl WebSearch {
    pub fn new(url: &str, http: Http, time_limit: Duration, random: Random) -> Self {
        WebSearch { url: url.trim_end_matches('/').to_owned(), http, time_limit, random }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Searches the web.
    Search {
        #[schemars(length(min = 1, max = 1000))]
        query: String,
        #[serde(default = "ten")]
        #[schemars(range(min = 1, max = 100))]
        max_results: usize,
        /// Only pages of this site, such as `doc.rust-lang.org`.
        #[serde(default)]
        site: Option<String>,
    },
}

fn ten() -> usize {
    10
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WebResults {
    pub query: String,
    pub results: Vec<WebPage>,
    pub count: usize,
    /// Whether the server had more.
    pub truncated: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WebPage {
    pub title: String,
    pub url: String,
    pub snippet: String,
}

/// The words to search for.
fn words(query: &str, site: Option<&str>) -> Result<String> {
    let query = query.trim();
    if query.is_empty() {
        return Err(Error::invalid("the query is empty"));
    }
    match site {
        None => Ok(query.to_owned()),
        Some(site) if site.is_empty() || !site.chars().all(|c| c.is_alphanumeric() || ".-:/_~".contains(c)) => {
            Err(Error::invalid(format!("`{}` is not the name of a site", site.escape_debug())))
        }
        Some(site) => Ok(format!("{query} site:{site}")),
    }
}

/// The address that answers `words` in JSON.
fn address(url: &str, words: &str) -> String {
    let mut query = String::new();
    for byte in words.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => query.push(char::from(byte)),
            _ => query.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{url}/search?format=json&q={query}")
}

/// The results in what the server said. One without an address is of no use, and left out.
fn read(query: &str, body: &[u8], most: usize) -> Result<WebResults> {
    let value: Value = serde_json::from_slice(body).map_err(|err| {
        Error::provider(format!("the search server did not answer in JSON (is its JSON format enabled?): {err}"))
    })?;
    let list = value.get("results").and_then(Value::as_array);
    let list = list.ok_or_else(|| Error::provider("the search server's answer has no list of results"))?;
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let mut results: Vec<WebPage> = list
        .iter()
        .map(|entry| WebPage {
            title: text(entry, "title"),
            url: text(entry, "url"),
            snippet: text(entry, "content").chars().take(SNIPPET).collect(),
        })
        .filter(|page| !page.url.is_empty())
        .collect();
    let truncated = results.len() > most;
    results.truncate(most);
    Ok(WebResults { query: query.to_owned(), count: results.len(), results, truncated })
}

#[async_trait]
impl Service for WebSearch {
    const NAME: &'static str = "web_search";
    const ABOUT: &'static str = "Searches the web by the SearXNG server that the mountspec names.";

    type Command = Command;
    type Output = WebResults;

    fn operations() -> Vec<Operation> {
        let example = json!({ "query": "plan 9 file server", "max_results": 5 });
        vec![Operation::read("search").example(example).deadline(Duration::from_secs(60))]
    }

    fn flags(&self) -> Vec<&'static str> {
        vec!["network", "read_only"]
    }

    fn check(&self, _caller: &Caller, command: Command) -> Result<()> {
        let Command::Search { query, site, .. } = command;
        words(&query, site.as_deref()).map(drop)
    }

    async fn invoke(&self, _cx: &Cx, command: Command) -> Result<WebResults> {
        let Command::Search { query, max_results, site } = command;
        let mut request = Request::get(address(&self.url, &words(&query, site.as_deref())?));
        request.headers.push(("accept".into(), "application/json".to_owned()));
        request.limit = LARGEST;
        let mut body = BodyBytes::default();
        // Only the pauses between attempts depend on it.
        let mut dice: rand::rngs::StdRng = rand::SeedableRng::seed_from_u64(self.random.number());
        let fetch = self.http.fetch(&request, &mut dice, &mut body);
        let late = |_| Error::timeout(format!("{} did not answer within {} ms", self.url, self.time_limit.as_millis()));
        let fetched = tokio::time::timeout(self.time_limit, fetch).await.map_err(late)?;
        fetched.map_err(|failure| match failure.status {
            Some(429) => Error::new(Code::Busy, failure.error.message),
            _ => failure.error,
        })?;
        read(&query, &body.0, max_results)
    }
}

/// The service where no server is named: it says how to switch it on.
pub struct WebSearchOff(Contract);

impl WebSearchOff {
    pub fn new() -> Result<WebSearchOff> {
        let about = "Searches the web, once a server is named: it is off.\n\n\
            To switch it on, run a SearXNG server with its JSON format enabled (`search: formats: [html, json]` in its \
            `settings.yml`) and name it in the mountspec:\n\n    \
            \"services\": { \"web_search\": { \"backend\": \"searxng\", \"url\": \"http://127.0.0.1:8888\" } }";
        Ok(WebSearchOff(Contract::plain(WebSearch::NAME, about, Vec::new())?))
    }
}

#[async_trait]
impl Serve for WebSearchOff {
    fn contract(&self) -> &Contract {
        &self.0
    }

    async fn invoke(&self, _cx: &Cx, _call: &Call) -> Result<Value> {
        Err(Error::unavailable("web_search is off: the mountspec names no server"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_becomes_an_address() {
        let of = |query: &str, site: Option<&str>| words(query, site).map(|words| address("http://h", &words));
        assert_eq!(of(" a b&c ", None).unwrap(), "http://h/search?format=json&q=a%20b%26c");
        assert_eq!(of("é", Some("x.org")).unwrap(), "http://h/search?format=json&q=%C3%A9%20site%3Ax.org");
        assert_eq!(of("  ", None).unwrap_err().message, "the query is empty");
        assert_eq!(of("a", Some("x y")).unwrap_err().message, "`x y` is not the name of a site");
    }

    #[test]
    fn an_answer_is_read_and_cut() {
        let body = br#"{"results":[{"title":" T ","url":"http://a","content":"c"},{"title":"no address"},{"url":"http://b"}]}"#;
        let found = read("q", body, 1).unwrap();
        assert_eq!((found.count, found.truncated), (1, true));
        assert_eq!(found.results[0], WebPage { title: "T".into(), url: "http://a".into(), snippet: "c".into() });
        assert_eq!(read("q", br#"{"results":[]}"#, 5).unwrap().count, 0);
        for bad in [&b"<html>"[..], b"{}", b"{\"results\":3}", b""] {
            assert_eq!(read("q", bad, 5).unwrap_err().code, Code::ProviderError);
        }
    }
}
