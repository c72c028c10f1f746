//! The tree over HTTP: `/fs/<path>`.
//!
//! `GET` reads a file (with `Range` where its size is known) or lists a directory; a read that waits is a long poll with a
//! deadline (`?wait=SECONDS`), or a stream of events. `PUT` and `POST` write; a `POST` to a control file starts a call and can
//! wait for its own answer. `DELETE`, `MKCOL` and `MOVE` change names where the tree lets them. Refusals are
//! `application/problem+json` with the codes and sentences of the tree.

mod events;
mod path;
mod range;
mod stream;

use std::time::{Duration, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::any;
use serde_json::{Value, json};

use super::listener::guard::empty;
use super::listener::{HttpDoor, problem, read_body, respond};
use super::tree::{DoorEntry, DoorFile, DoorTree, Wait};
use super::{DoorCaller, DoorContext};
use crate::agent::tools::EntryKind;
use acheron_base::{Code, Error, Result};
use acheron_vfs::Kind;
use range::AskedRange;

pub const DOOR: HttpDoor = HttpDoor { flag: "fs", prefix: "/fs", routes, shape: problem::shape, open: &[] };

/// The largest write.
const BODY: usize = 16 << 20;
/// The largest file whose size is known only by reading.
const COMPUTED: usize = 64 << 20;
/// The names of a listing, unless another number is asked for, and at most.
const NAMES: usize = 1000;
const MOST_NAMES: usize = 10_000;
/// How long a read waits, unless another time is asked for, and at most.
const WAIT: u64 = 60;
const LONGEST_WAIT: u64 = 3600;
/// The size of one piece of a file.
const PIECE: usize = 128 << 10;

fn routes(context: DoorContext) -> Router {
    Router::new()
        .route("/fs", any(serve))
        .route("/fs/", any(serve))
        .route("/fs/{*path}", any(serve))
        .with_state(context)
}

async fn serve(
    State(context): State<DoorContext>,
    Extension(caller): Extension<DoorCaller>,
    request: Request,
) -> Response {
    let answered = async {
        let tree = context.tree_of(&caller)?;
        let (request, body) = request.into_parts();
        let path = path::parse(request.uri.path())?;
        let method = request.method.as_str().to_owned();
        match method.as_str() {
            "GET" => get(&tree, &path, &request).await,
            "HEAD" => head(&tree, &path).await,
            "PUT" => put(&tree, &path, &request, body).await,
            "POST" => post(&tree, &path, &request, body).await,
            "DELETE" => tree.remove(&path).await.map(|()| empty(204)),
            "MKCOL" => tree.make_dir(&path).await.map(|()| empty(201)),
            "MOVE" => rename(&tree, &path, &request).await,
            _ => {
                let error =
                    Error::unknown_operation(format!("{} is not understood here", acheron_base::quoted(&method)));
                let mut response = problem::shape(405, &error, None);
                let allowed = "GET, HEAD, PUT, POST, DELETE, MKCOL, MOVE";
                response.headers_mut().insert("allow", axum::http::HeaderValue::from_static(allowed));
                Ok(response)
            }
        }
    };
    answered.await.unwrap_or_else(|error| problem::problem(&error))
}

fn header<'r>(request: &'r Parts, name: &str) -> Option<&'r str> {
    request.headers.get(name)?.to_str().ok()
}

fn number(request: &Parts, key: &str, usual: u64, most: u64) -> Result<u64> {
    let Some(word) = path::query(request.uri.query(), key)? else { return Ok(usual) };
    match word.parse::<u64>() {
        Ok(number) if number <= most => Ok(number),
        _ => Err(Error::invalid(format!("`{key}` is a number from 0 to {most}"))),
    }
}

async fn get(tree: &DoorTree, path: &str, request: &Parts) -> Result<Response> {
    let entry = tree.stat(path).await?;
    let streamed = header(request, "accept").is_some_and(|accept| accept.contains("text/event-stream"));
    if streamed && path == "/" {
        return stream::of_files(tree, request).await;
    }
    if path::query(request.uri.query(), "stat")?.is_some() {
        return Ok(respond(200, &[("content-type", "application/json")], shown(&entry).to_string()));
    }
    if entry.kind == EntryKind::Directory {
        return list(tree, path, request).await;
    }
    let wait = number(request, "wait", WAIT, LONGEST_WAIT)?;
    if let (true, Some(kind)) = (streamed, entry.file) {
        // Opened once here, so that a refusal is an answer of its own.
        drop(tree.open(path).await?);
        let from = match header(request, "last-event-id") {
            Some(id) => id.trim().parse().map_err(|_| Error::invalid("Last-Event-ID is a number"))?,
            None => number(request, "from", 0, u64::MAX)?,
        };
        return Ok(stream::of_file(tree.clone(), path.to_owned(), kind, from));
    }
    let file = tree.open(path).await?;
    if file.entry.has_true_size() {
        return Ok(sized(file, header(request, "range")));
    }
    let read = file.rest(0, COMPUTED + 1, if wait == 0 { Wait::Never } else { Wait::UntilReady });
    let bytes = match wait {
        0 => read.await?,
        wait => within(wait, read).await?,
    };
    if bytes.len() > COMPUTED {
        return Err(Error::too_large(format!("the file has more than {COMPUTED} bytes")));
    }
    Ok(respond(200, &[("content-type", content_type(&file.entry.name))], bytes))
}

/// Waits for an answer until the deadline.
async fn within<T>(seconds: u64, read: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(Duration::from_secs(seconds), read).await {
        Ok(read) => read,
        Err(_) => Err(Error::timeout(format!("there was no answer within {seconds} s; ask again to wait on"))),
    }
}

/// A file of known size, or a part of it, piece by piece.
fn sized(file: DoorFile, range: Option<&str>) -> Response {
    let size = file.entry.size;
    let (status, begin, end) = match range::parse(range, size) {
        AskedRange::Whole => (200, 0, size),
        AskedRange::Part(begin, end) => (206, begin, end),
        AskedRange::Unsatisfiable => {
            let error = Error::invalid(format!("the file has {size} bytes"));
            let mut response = problem::shape(416, &error, None);
            if let Ok(value) = axum::http::HeaderValue::from_str(&format!("bytes */{size}")) {
                response.headers_mut().insert("content-range", value);
            }
            return response;
        }
    };
    let (length, part) = ((end - begin).to_string(), format!("bytes {begin}-{}/{size}", end.saturating_sub(1)));
    let mut headers =
        vec![("content-type", content_type(&file.entry.name)), ("content-length", &length), ("accept-ranges", "bytes")];
    if status == 206 {
        headers.push(("content-range", &part));
    }
    let pieces = futures_util::stream::try_unfold((file, begin), move |(file, at)| async move {
        if at >= end {
            return Ok(None);
        }
        let most = PIECE.min(usize::try_from(end - at).unwrap_or(PIECE));
        let piece = file.read(at, most, Wait::Never).await?;
        match piece.len() {
            // The length was promised: a client must not take less for the whole.
            0 => Err(Error::conflict("the file became shorter while it was read")),
            read => Ok(Some((piece, (file, at + read as u64)))),
        }
    });
    respond(status, &headers, Body::from_stream(pieces))
}

async fn head(tree: &DoorTree, path: &str) -> Result<Response> {
    let entry = tree.stat(path).await?;
    if entry.kind == EntryKind::Directory {
        return Ok(respond(200, &[("content-type", "application/json")], Body::empty()));
    }
    let file = tree.open(path).await?;
    let mut headers = vec![("content-type", content_type(&entry.name))];
    let length = file.entry.size.to_string();
    if file.entry.has_true_size() {
        headers.extend([("content-length", length.as_str()), ("accept-ranges", "bytes")]);
    }
    Ok(respond(200, &headers, Body::empty()))
}

async fn list(tree: &DoorTree, path: &str, request: &Parts) -> Result<Response> {
    let most = number(request, "max", NAMES as u64, MOST_NAMES as u64)? as usize;
    let mut entries = match path::query(request.uri.query(), "after")? {
        Some(after) => tree.list_after(path, &after, most + 1).await?,
        None => tree.list(path, most + 1).await?,
    };
    let truncated = entries.len() > most;
    entries.truncate(most);
    let shown: Vec<Value> = entries.iter().map(shown).collect();
    let body = json!({"path": path, "entries": shown, "truncated": truncated});
    Ok(respond(200, &[("content-type", "application/json")], body.to_string()))
}

fn shown(entry: &DoorEntry) -> Value {
    let kind = match entry.kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Link => "link",
    };
    let modified = entry.modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let mut shown = json!({"name": entry.name, "type": kind, "size": entry.size, "modified_ms": modified});
    if let Some(file) = entry.file {
        shown["kind"] = match file {
            Kind::Text => "text",
            Kind::Live => "live",
            Kind::Waiting => "waiting",
            Kind::Log => "log",
            Kind::Control => "control",
            Kind::Message => "message",
            Kind::Item => "item",
            Kind::Scratch => "scratch",
        }
        .into();
    }
    if let Some(target) = &entry.target {
        shown["target"] = target.as_str().into();
    }
    shown
}

/// Replaces a file, or makes it.
async fn put(tree: &DoorTree, path: &str, request: &Parts, body: Body) -> Result<Response> {
    let append = path::query(request.uri.query(), "append")?.is_some();
    let body = read_body(&request.headers, body, BODY).await?;
    let written = tree.write(path, &body, append, false).await?;
    Ok(started(written.job.as_deref(), path).unwrap_or_else(|| empty(204)))
}

/// Writes a command or a message; with `wait` the answer to it.
async fn post(tree: &DoorTree, path: &str, request: &Parts, body: Body) -> Result<Response> {
    let wait = match path::query(request.uri.query(), "wait")? {
        Some(_) => number(request, "wait", WAIT, LONGEST_WAIT)?,
        None => 0,
    };
    let body = read_body(&request.headers, body, BODY).await?;
    let takes = matches!(tree.stat(path).await?.file, Some(Kind::Control | Kind::Message));
    let written = tree.write(path, &body, false, takes && wait > 0).await?;
    if !takes || wait == 0 {
        return Ok(started(written.job.as_deref(), path).unwrap_or_else(|| empty(204)));
    }
    let answer = match within(wait, written.answer()).await {
        // The call goes on: whoever waits longer finds its result by its job.
        Err(error) if error.code == Code::Timeout => {
            let mut response = problem::problem(&error);
            if let Some(job) = written.job.as_deref() {
                locate(&mut response, &location(path, job));
            }
            return Ok(response);
        }
        answer => answer?,
    };
    let kind = if path.ends_with(".json") { "application/json" } else { "text/plain; charset=utf-8" };
    let mut response = respond(200, &[("content-type", kind)], answer);
    if let Some(job) = written.job.as_deref() {
        locate(&mut response, &location(path, job));
    }
    Ok(response)
}

/// The answer about a job that was started.
fn started(job: Option<&str>, path: &str) -> Option<Response> {
    let job = job?;
    let at = location(path, job);
    let body = json!({"job_id": job, "location": at});
    let mut response = respond(202, &[("content-type", "application/json")], body.to_string());
    locate(&mut response, &at);
    Some(response)
}

fn location(path: &str, job: &str) -> String {
    let mut names = path.split('/').filter(|name| !name.is_empty());
    let agent = match (names.next(), names.next()) {
        (Some("agents"), Some(agent)) => agent,
        _ => "self",
    };
    path::url(&format!("/agents/{agent}/jobs/{job}"))
}

fn locate(response: &mut Response, location: &str) {
    if let Ok(value) = axum::http::HeaderValue::from_str(location) {
        response.headers_mut().insert("location", value);
    }
}

async fn rename(tree: &DoorTree, from: &str, request: &Parts) -> Result<Response> {
    let to = header(request, "destination")
        .ok_or_else(|| Error::invalid("MOVE needs the header `Destination: /fs/<path>`"))?;
    if !to.starts_with("/fs/") {
        return Err(Error::invalid("a destination is a path of this listener: /fs/<path>"));
    }
    tree.rename(from, &path::parse(to)?).await?;
    Ok(empty(204))
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("json") => "application/json",
        Some("ndjson") => "application/x-ndjson",
        Some("md") => "text/markdown; charset=utf-8",
        Some("txt" | "log") => "text/plain; charset=utf-8",
        // Never as a page: what agents wrote must not run in the browser of the operator.
        _ => "application/octet-stream",
    }
}
