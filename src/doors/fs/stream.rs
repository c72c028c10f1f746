//! Files as streams of events (`text/event-stream`): one file, or many on one connection, because a browser has few.

use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use serde_json::{Value, json};

use super::events::{FileChange, FileEvents};
use super::path;
use crate::doors::listener::respond;
use crate::doors::tree::DoorTree;
use acheron_base::{Error, Result};
use acheron_vfs::Kind;

/// A stream on which nothing happens says so, because something on the way may cut it otherwise.
const ALIVE: Duration = Duration::from_secs(15);
/// The most files on one connection.
const FILES: usize = 64;

/// The stream of a file; a log from `offset`.
pub fn of_file(tree: DoorTree, path: String, kind: Kind, offset: u64) -> Response {
    send(changes(FileEvents::new(tree, path, kind, offset)).map(|(_, change)| plain(change)).boxed())
}

/// The stream of several files: `follow=PATH`, each with `from=OFFSET` after it if it is a log. The data of each event is an object
/// that names its file. A file that cannot be followed is one event `error`, and the others go on.
pub async fn of_files(tree: &DoorTree, request: &Parts) -> Result<Response> {
    let follows = follows(request.uri.query().unwrap_or_default())?;
    let mut all = stream::SelectAll::new();
    for (path, offset) in follows {
        let followed: BoxStream<'static, (String, Result<FileChange>)> = match kind(tree, &path).await {
            Ok(kind) => changes(FileEvents::new(tree.clone(), path, kind, offset)).boxed(),
            Err(error) => stream::once(async move { (path, Err(error)) }).boxed(),
        };
        all.push(followed);
    }
    // What has ended says nothing more; the stream of the others goes on until the client leaves.
    Ok(send(all.map(|(path, change)| named(&path, change)).chain(stream::pending()).boxed()))
}

async fn kind(tree: &DoorTree, path: &str) -> Result<Kind> {
    let kind = tree.stat(path).await?.file;
    kind.ok_or_else(|| Error::invalid(format!("only files can be followed, and `{path}` is none")))
}

/// The paths that are to be followed, and where to begin.
fn follows(query: &str) -> Result<Vec<(String, u64)>> {
    let mut follows: Vec<(String, u64)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if key == "follow" {
            follows.push((path::parse(&format!("/fs/{value}"))?, 0));
            continue;
        }
        let Some((_, from)) = follows.last_mut().filter(|_| key == "from") else {
            return Err(Error::invalid("a stream of files is follow=PATH, and from=OFFSET after it"));
        };
        *from = value.parse().map_err(|_| Error::invalid("`from` is a number of bytes"))?;
    }
    match follows.len() {
        0..=FILES => Ok(follows),
        _ => Err(Error::invalid(format!("at most {FILES} files can be followed on one connection"))),
    }
}

/// The changes of a file, until it fails or is settled.
fn changes(events: FileEvents) -> impl futures_util::Stream<Item = (String, Result<FileChange>)> + Send + 'static {
    stream::unfold(events, |mut events| async move {
        if events.ended {
            return None;
        }
        let change = events.next().await;
        events.ended |= change.is_err();
        Some(((events.path.clone(), change), events))
    })
}

fn send(pieces: BoxStream<'static, Bytes>) -> Response {
    let pieces = stream::unfold(pieces, |mut pieces| async move {
        match tokio::time::timeout(ALIVE, pieces.next()).await {
            Ok(piece) => piece.map(|piece| (piece, pieces)),
            Err(_) => Some((Bytes::from_static(b": waiting\n\n"), pieces)),
        }
    });
    let headers = [("content-type", "text/event-stream"), ("x-accel-buffering", "no")];
    respond(200, &headers, Body::from_stream(pieces.map(Ok::<_, std::convert::Infallible>)))
}

/// The events of the only file: the id of a line is the offset after it.
fn plain(change: Result<FileChange>) -> Bytes {
    match change {
        Ok(FileChange::Lines { lines, end }) => {
            let (mut at, mut all) = (end - lines.len() as u64, Vec::new());
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                at += line.len() as u64;
                all.extend_from_slice(&event("line", Some(at), line));
            }
            all.into()
        }
        Ok(FileChange::Value { value, number }) => event("value", number, &value),
        Err(error) => event("error", None, serde_json::to_string(&error).unwrap_or_default().as_bytes()),
    }
}

/// An event of one of several files.
fn named(path: &str, change: Result<FileChange>) -> Bytes {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let (name, data) = match change {
        Ok(FileChange::Lines { lines, end }) => {
            let lines = text(&lines);
            let lines: Vec<&str> = lines.lines().collect();
            ("lines", json!({"path": path, "end": end, "lines": lines}))
        }
        Ok(FileChange::Value { value, .. }) => ("value", json!({"path": path, "value": text(&value)})),
        Err(error) => ("error", json!({"path": path, "error": serde_json::to_value(&error).unwrap_or(Value::Null)})),
    };
    event(name, None, data.to_string().as_bytes())
}

/// One event. A newline at the end of the data is left out.
fn event(name: &str, id: Option<u64>, data: &[u8]) -> Bytes {
    let text = String::from_utf8_lossy(data);
    let mut event = format!("event: {name}\n");
    if let Some(id) = id {
        event.push_str(&format!("id: {id}\n"));
    }
    for line in text.strip_suffix('\n').unwrap_or(&text).split('\n') {
        event.push_str(&format!("data: {}\n", line.trim_end_matches('\r')));
    }
    event.push('\n');
    event.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_names_its_files_and_where_they_begin() {
        let ok = |query: &str| follows(query).ok();
        let pair = |path: &str, from: u64| (path.to_owned(), from);
        assert_eq!(ok("follow=/a&from=7&follow=/b%20c"), Some(vec![pair("/a", 7), pair("/b c", 0)]));
        assert_eq!(ok("follow=/fs/fs"), Some(vec![pair("/fs/fs", 0)]));
        assert_eq!(ok("from=7&follow=/a"), None);
        assert_eq!(ok("follow=/a&from=x"), None);
        assert_eq!(ok("follow=/a/../b"), None);
        assert_eq!(ok(&"follow=/a&".repeat(65)), None);
    }

    #[test]
    fn an_event_of_many_lines_is_one_event() {
        assert_eq!(event("value", Some(1), b"a\r\nb\n"), "event: value\nid: 1\ndata: a\ndata: b\n\n");
        let lines = FileChange::Lines { lines: Bytes::from_static(b"x\ny\n"), end: 9 };
        assert_eq!(plain(Ok(lines)), "event: line\nid: 7\ndata: x\n\nevent: line\nid: 9\ndata: y\n\n");
        let value = FileChange::Value { value: Bytes::from_static(b"a\nb"), number: None };
        assert_eq!(named("/p", Ok(value)), "event: value\ndata: {\"path\":\"/p\",\"value\":\"a\\nb\"}\n\n");
    }
}
