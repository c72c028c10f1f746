//! What the door answers: the methods of the protocol, for both of its worlds.
// Subscriptions of the old world are deprecated by the protocol, and most clients still speak it.
#![allow(deprecated)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
    Tool, ToolAnnotations, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::calls::{self, tool_schemas};
use super::changes::PathChanges;
use super::uri;
use crate::doors::tree::{DoorTree, Wait};
use crate::doors::{DoorCaller, DoorContext};
use acheron_base::{Code, Error};

/// How often a call that waits tells that it does.
const TELLING: Duration = Duration::from_secs(2);
/// The most subscriptions of one client.
const SUBSCRIPTIONS: usize = 64;
/// The largest resource that is read as one.
const LARGEST: usize = 4 << 20;

const INSTRUCTIONS: &str = "A tree of files through which everything here is done: read /AGENTS.md first. A write to \
    control/<op>.json calls a service; a read of a result waits for it. Resources are acheron:/<path>; a subscription tells of \
    changes at or below a path.";

/// The server for one client, or for one session or request over HTTP.
#[derive(Clone)]
pub struct TreeServer {
    context: DoorContext,
    /// The caller of a stream; over HTTP it comes with each request.
    caller: Option<DoorCaller>,
    subscribed: Arc<Mutex<HashMap<String, AbortOnDropHandle<()>>>>,
}

impl TreeServer {
    pub fn new(context: DoorContext, caller: Option<DoorCaller>) -> TreeServer {
        TreeServer { context, caller, subscribed: Arc::default() }
    }

    /// The tree with the rights of the caller, and the caller.
    fn tree(&self, cx: &RequestContext<RoleServer>) -> Result<(DoorTree, DoorCaller), Error> {
        let caller = self.caller.clone().or_else(|| super::caller_of(&cx.extensions));
        let caller = caller.ok_or_else(|| Error::forbidden("nobody is known to have sent this request"))?;
        Ok((self.context.tree_of(&caller)?, caller))
    }

    /// Runs work for a request until it is done, the client cancels it, the caller's rights end or the host goes down. Tells of
    /// its progress meanwhile, if the client asked for that.
    async fn attended<T>(
        &self,
        cx: &RequestContext<RoleServer>,
        caller: &DoorCaller,
        waits_for: &str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let telling = async {
            let Some(token) = cx.meta.get_progress_token() else { return std::future::pending().await };
            for step in 1_u32.. {
                tokio::time::sleep(TELLING).await;
                let told = ProgressNotificationParam::new(token.clone(), f64::from(step))
                    .with_message(format!("waiting for {waits_for}"));
                // A client that does not listen is noticed by its end.
                _ = cx.peer.notify_progress(told).await;
            }
        };
        tokio::select! {
            done = work => done,
            () = cx.ct.cancelled() => Err(Error::cancelled("the client cancelled the request")),
            () = caller.ended.cancelled() => Err(Error::forbidden("the token was revoked")),
            () = self.context.down.cancelled() => Err(Error::unavailable("the host is going down")),
            () = telling => Err(Error::internal("the request was told of without end")),
        }
    }
}

/// A refusal as an error of the protocol, for methods whose result is not read by a model.
fn refused(error: &Error) -> ErrorData {
    match error.code {
        Code::NotFound => ErrorData::resource_not_found(calls::refusal(error), None),
        Code::Internal => ErrorData::internal_error(calls::refusal(error), None),
        _ => ErrorData::invalid_params(calls::refusal(error), None),
    }
}

fn path_of(uri: &str) -> Result<String, ErrorData> {
    uri::path(uri).ok_or_else(|| {
        let said = format!("{} is no resource here: they are called acheron:/<path>", acheron_base::quoted(uri));
        ErrorData::resource_not_found(said, None)
    })
}

impl ServerHandler for TreeServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_resources_subscribe().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("acheron", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |(name, about, schema, reads): (&'static str, &'static str, Value, bool)| {
            let schema = schema.as_object().cloned().unwrap_or_default();
            let tool = Tool::new(name, about, Arc::new(schema));
            if reads { tool.with_annotations(ToolAnnotations::new().read_only(true)) } else { tool }
        };
        Ok(ListToolsResult::with_all_items(tool_schemas().into_iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let called = async {
            let (tree, caller) = self.tree(&cx)?;
            let arguments = request.arguments.unwrap_or_default();
            let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
            let short: String = path.chars().take(200).collect();
            self.attended(&cx, &caller, &short, calls::call(&tree, &request.name, arguments)).await
        };
        Ok(match called.await {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(calls::refusal(&error))]).into(),
        })
    }

    /// One small page: clients list all resources at once, and the tree is large.
    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (tree, _) = self.tree(&cx).map_err(|error| refused(&error))?;
        let mut resources = Vec::new();
        for (path, about) in [
            ("/AGENTS.md", "What this tree is, on one screen; read it first."),
            ("/README.md", "How to begin."),
            ("/agents/self/services/SERVICES.json", "What can be called."),
            ("/agents/self/chat/history.ndjson", "The chat with the agent."),
            ("/agents/self/events/log.ndjson", "Everything that happened."),
        ] {
            if tree.stat(path).await.is_ok() {
                let name = path.rsplit('/').next().unwrap_or_default();
                resources.push(Resource::new(uri::of(path), name).with_description(about));
            }
        }
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let any = ResourceTemplate::new("acheron:/{+path}", "path").with_description("Any file of the tree.");
        Ok(ListResourceTemplatesResult::with_all_items(vec![any]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let path = path_of(&request.uri)?;
        let read = async {
            let (tree, caller) = self.tree(&cx)?;
            let reading = async {
                let bytes = tree.read(&path, LARGEST + 1, Wait::UntilReady).await?;
                match bytes.len() > LARGEST {
                    true => {
                        Err(Error::too_large(format!("it has more than {LARGEST} bytes; file_read reads it in pages")))
                    }
                    false => Ok(bytes),
                }
            };
            self.attended(&cx, &caller, &path, reading).await
        };
        let bytes = read.await.map_err(|error| refused(&error))?;
        let contents = match String::from_utf8(bytes.to_vec()) {
            Ok(text) => ResourceContents::text(text, request.uri),
            Err(blob) => ResourceContents::blob(STANDARD.encode(blob.as_bytes()), request.uri),
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let path = path_of(&request.uri)?;
        if self.subscribed.lock().len() >= SUBSCRIPTIONS {
            return Err(ErrorData::invalid_params(format!("busy: {SUBSCRIPTIONS} subscriptions are the most"), None));
        }
        let (tree, caller) = self.tree(&cx).map_err(|error| refused(&error))?;
        let mut changes = PathChanges::of(tree, &path).await.map_err(|error| refused(&error))?;
        let (peer, uri, down) = (cx.peer.clone(), request.uri.clone(), self.context.down.clone());
        let watching = tokio::spawn(async move {
            loop {
                let changed = tokio::select! {
                    changed = changes.next() => changed,
                    () = caller.ended.cancelled() => return,
                    () = down.cancelled() => return,
                };
                // An error ends it: the path cannot be watched any more.
                if changed.is_err()
                    || peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri.clone())).await.is_err()
                {
                    return;
                }
            }
        });
        self.subscribed.lock().insert(request.uri, AbortOnDropHandle::new(watching));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _cx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribed.lock().remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        let wanted = requested.resource_subscriptions.iter().flatten();
        accepted.resource_subscriptions =
            Some(wanted.filter(|uri| uri::path(uri).is_some()).take(SUBSCRIPTIONS).cloned().collect());
        Some(accepted)
    }

    async fn listen(&self, cx: SubscriptionContext) -> Result<(), ErrorData> {
        let (tree, caller) = self.tree(cx.request_context()).map_err(|error| refused(&error))?;
        let uris = cx.accepted().resource_subscriptions.clone().unwrap_or_default();
        let watched = uris.into_iter().map(|uri| {
            let (tree, sink) = (tree.clone(), cx.sink().clone());
            async move {
                let Some(path) = uri::path(&uri) else { return };
                // One that cannot be watched is left out: the others are still told of.
                let Ok(mut changes) = PathChanges::of(tree, &path).await else { return };
                while changes.next().await.is_ok() && sink.notify_resource_updated(uri.clone()).await.is_ok() {}
            }
        });
        let watching = async {
            futures_util::future::join_all(watched).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = watching => (),
            () = cx.cancelled() => (),
            () = caller.ended.cancelled() => (),
            () = self.context.down.cancelled() => (),
        }
        Ok(())
    }
}
