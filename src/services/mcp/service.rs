//! The service of an MCP server: one version of it, with what the server offered when it was made.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::pages::{self, TOOLS};
use super::peer::OnProgress;
use super::server::{McpServer, McpServerParts, ServerState, in_words};
use crate::contract::{Contract, check};
use crate::jobs::Call;
use crate::service::{Cx, Serve, ServicePlace};
use acheron_base::{Error, Result};
use acheron_mcp::catalogue::READ_RESOURCE;
use acheron_mcp::{Catalogue, ResourceBytes, content};
use acheron_vfs::{Answer, ComputedFile, Listing, Node, lazy_text, text};

/// How long the reader of a resource's file waits.
const READING: Duration = Duration::from_secs(60);

/// A version of the service.
pub struct McpService {
    contract: Arc<Contract>,
    catalogue: Option<Arc<Catalogue>>,
    server: Arc<McpServer>,
    slots: Semaphore,
    guard: Arc<DropGuard>,
    stop: CancellationToken,
}

impl McpService {
    /// The first version: the server is started when the service stands in the tree.
    pub fn new(parts: McpServerParts) -> Result<McpService> {
        let stop = parts.servers.stop.child_token();
        let guard = Arc::new(stop.clone().drop_guard());
        McpService::version(&McpServer::new(parts), None, guard, stop)
    }

    /// A version with what the server offers; without, one that says how the server is.
    pub fn version(
        server: &Arc<McpServer>,
        catalogue: Option<Arc<Catalogue>>,
        guard: Arc<DropGuard>,
        stop: CancellationToken,
    ) -> Result<McpService> {
        let McpServerParts { name, about, settings, flagged, concurrency, .. } = &server.parts;
        let contract = match &catalogue {
            Some(catalogue) => pages::contract(name, about, settings, catalogue)?,
            None => pages::unanswered(name, about, &server.state())?,
        };
        let (contract, slots) = (Arc::new(flagged(contract)), Semaphore::new(*concurrency));
        Ok(McpService { contract, catalogue, server: server.clone(), slots, guard, stop })
    }

    async fn call(&self, cx: &Cx, call: &Call) -> Result<Value> {
        let catalogue = self.catalogue.as_ref().ok_or_else(|| Error::unavailable("the server has not answered yet"))?;
        let peer = self.server.ready().await?;
        if call.operation == READ_RESOURCE && catalogue.identity.resources {
            let read = peer.request("resources/read", json!({ "uri": call.arguments["uri"] }), None).await;
            return read_resource(cx, &read.map_err(in_words)?);
        }
        let tool = catalogue.tool(&call.operation);
        let tool = tool.ok_or_else(|| Error::unknown_operation(format!("there is no tool {}", call.operation)))?;
        let progress: OnProgress = {
            let cx = cx.clone();
            Arc::new(move |progress| cx.progress(progress))
        };
        let params = json!({ "name": tool.name, "arguments": call.arguments });
        let result = peer.request("tools/call", params, Some(progress)).await.map_err(in_words)?;
        if result["resultType"] == "input_required" {
            return Err(Error::failed("the tool asks for input, which a call from here cannot give"));
        }
        let read = content::read(&result);
        for file in read.files {
            cx.log(&file.line);
            cx.keep_file(file.name, file.bytes);
        }
        let value = read.outcome.map_err(Error::failed)?;
        let operation = self.contract.operation(&call.operation)?;
        if let Some(faults) = check::sentence(&check::faults(&operation.result, self.contract.schema(), &value)) {
            cx.log(&format!("the result is not what the server promised: {faults}"));
        }
        Ok(value)
    }
}

/// The result of `read_resource`: its text, or a file beside the job.
fn read_resource(cx: &Cx, result: &Value) -> Result<Value> {
    let parts = result["contents"].as_array().map_or(&[][..], Vec::as_slice);
    let blocks: Vec<Value> = parts
        .iter()
        .map(|part| match part["text"].as_str() {
            Some(text) => json!({ "type": "text", "text": text }),
            None => json!({ "type": "resource", "resource": part }),
        })
        .collect();
    let read = content::read(&json!({ "content": blocks }));
    for file in read.files {
        cx.keep_file(file.name, file.bytes);
    }
    read.outcome.map_err(Error::failed)
}

/// `resources/`: what the server lists, read when it is read.
fn resources(server: &Arc<McpServer>, catalogue: &Arc<Catalogue>) -> Listing {
    let own = catalogue.clone();
    let mut listing = Listing::default().file("README.md", lazy_text(move || pages::resources(&own).into()));
    for resource in &catalogue.resources {
        let (server, uri) = (server.clone(), resource.uri.clone());
        let file = ComputedFile::fetched(move |_| {
            let (asked, uri) = (server.clone(), uri.clone());
            let reading = server.parts.runtime.spawn(async move {
                let read = async {
                    asked.ready().await?.request("resources/read", json!({ "uri": uri }), None).await.map_err(in_words)
                };
                let late =
                    || Error::timeout(format!("the server did not return the resource within {} s", READING.as_secs()));
                let result = tokio::time::timeout(READING, read).await.unwrap_or_else(|_| Err(late()))?;
                ResourceBytes::of(&result)
            });
            let reading = AbortOnDrop(reading);
            Answer::soon(async move {
                let mut reading = reading;
                (&mut reading.0).await.unwrap_or_else(|error| Err(Error::internal(error.to_string())))
            })
        });
        listing = listing.file(&resource.file, file);
    }
    listing
}

/// A reader that goes away cancels what it asked for.
struct AbortOnDrop(tokio::task::JoinHandle<Result<Bytes>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[async_trait]
impl Serve for McpService {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn files(&self) -> Vec<(String, Node)> {
        let mut files = vec![("log.txt".to_owned(), Node::file(self.server.log.clone()))];
        if let Some(catalogue) = &self.catalogue {
            let mut tools = Listing::default();
            for operation in &self.contract.operations {
                let (contract, name) = (self.contract.clone(), operation.name.clone());
                let page = lazy_text(move || contract.operation_page(&name).into());
                tools = tools.file(&format!("{}.md", operation.name), page);
            }
            if self.contract.operations.is_empty() {
                tools = tools.file("README.md", text("The server has no tools.\n"));
            }
            files.push((TOOLS.to_owned(), Node::dir(tools)));
            if catalogue.identity.resources {
                files.push(("resources".to_owned(), Node::dir(resources(&self.server, catalogue))));
            }
        }
        files
    }

    fn progress(&self) -> Option<Value> {
        let tools = self.catalogue.as_ref().map(|catalogue| catalogue.tools.len());
        let (server, error, again_at_ms) = match self.server.state() {
            ServerState::Waiting => ("waits for its first call", None, None),
            ServerState::Starting => ("starting", None, None),
            ServerState::Ready(_) => ("ready", None, None),
            ServerState::Down { error, again_at_ms } => ("down", Some(error), Some(again_at_ms)),
        };
        let mut told = json!({ "server": server, "tools": tools });
        if let (Some(error), Some(again_at_ms)) = (error, again_at_ms) {
            told["error"] = json!(error);
            told["again_at_ms"] = again_at_ms.into();
        }
        Some(told)
    }

    fn placed(&self, place: ServicePlace) {
        self.server.begin(place, &self.guard, self.stop.clone());
    }

    async fn invoke(&self, cx: &Cx, call: &Call) -> Result<Value> {
        let _place = self.slots.acquire().await.map_err(|_| Error::unavailable("the service was removed"))?;
        self.call(cx, call).await
    }
}
