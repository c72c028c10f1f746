//! `acheron view` on the host's side: finds a view by its name, shows its project for a moment if it is not shown, and reads or
//! writes a file of the view with the rights of the operator.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::commands::{CommandSession, HostCommand};
use super::{HostState, edit};
use crate::policy::PrincipalCaller;
use crate::services::views::View;
use acheron_base::{Error, Result, blocking, quoted};
use acheron_vfs::Caller;

pub const COMMAND: HostCommand = HostCommand { word: "view", serve: |session| Box::pin(serve(session)) };

/// What is asked of views.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ViewRequest {
    List,
    /// A file of a view, as text.
    Read {
        view: String,
        here: PathBuf,
        file: String,
    },
    /// An operation on a view, with its arguments.
    Call {
        view: String,
        here: PathBuf,
        op: String,
        arguments: Value,
    },
}

/// One view.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListedView {
    pub name: String,
    pub base: PathBuf,
    pub agent: Option<String>,
    pub changes: u64,
    pub held: u64,
    /// Why it cannot be read.
    pub error: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ViewAnswer {
    Views(Vec<ListedView>),
    /// In base 64: a patch need not be text.
    Text(String),
    /// What the call says: `{ok, result, error, …}`.
    Done(Value),
}

async fn serve(mut session: CommandSession) {
    let answer = match session.request::<ViewRequest>() {
        Ok(request) => answer(&session.host.clone(), request).await,
        Err(error) => Err(error),
    };
    session.answer(answer).await;
}

async fn answer(host: &Arc<HostState>, request: ViewRequest) -> Result<ViewAnswer> {
    match request {
        ViewRequest::List => {
            let host = host.clone();
            blocking(move || Ok(ViewAnswer::Views(host.views.views.all().iter().map(|view| listed(view)).collect())))
                .await
        }
        ViewRequest::Read { view, here, file } => {
            let shown = ShownView::of(host, &view, &here).await?;
            let read = host.context.tree()?.read(&Caller::operator(), &format!("{}/{file}", shown.path)).await;
            shown.leave().await;
            Ok(ViewAnswer::Text(BASE64_STANDARD.encode(read?)))
        }
        ViewRequest::Call { view, here, op, arguments } => {
            let shown = ShownView::of(host, &view, &here).await?;
            let control = format!("{}/control/{op}.json", shown.path);
            let tree = host.context.tree()?;
            let asked = tree.ask(&Caller::operator(), &control, arguments.to_string().as_bytes()).await;
            shown.leave().await;
            let done = serde_json::from_slice(&asked?).map_err(|err| Error::internal(err.to_string()))?;
            Ok(ViewAnswer::Done(done))
        }
    }
}

fn listed(view: &View) -> ListedView {
    let record = view.record();
    let (counts, error) = match view.counts() {
        Ok(counts) => (counts, None),
        Err(error) => (Default::default(), Some(error.message)),
    };
    let changes = counts.0.iter().map(|(_, count)| count).sum();
    ListedView { name: record.name, base: record.base, agent: record.agent, changes, held: counts.1, error }
}

/// A view whose project is shown.
struct ShownView {
    host: Arc<HostState>,
    project: String,
    path: String,
}

impl ShownView {
    async fn of(host: &Arc<HostState>, name: &str, here: &Path) -> Result<ShownView> {
        let view = found(host.views.views.all(), name, here)?;
        let (base, inner) = (view.record().base, host.clone());
        let project = blocking(move || {
            let _inside = inner.context.runtime.enter();
            edit::add_guest(&inner, &base)
        });
        let project = project.await?;
        let path = format!("/projects/{project}/views/{name}");
        Ok(ShownView { host: host.clone(), project, path })
    }

    async fn leave(self) {
        let ShownView { host, project, .. } = self;
        let left = blocking(move || {
            let _inside = host.context.runtime.enter();
            edit::remove_guest(&host, &project);
            Ok(())
        });
        _ = left.await; // the next edit takes it away
    }
}

/// The view of this name: that of the directory where the command was started, or of one above it, if there are several.
fn found(all: Vec<Arc<View>>, name: &str, here: &Path) -> Result<Arc<View>> {
    let mut named: Vec<Arc<View>> = all.iter().filter(|view| view.name() == name).cloned().collect();
    if named.len() > 1 {
        named.retain(|view| here.starts_with(view.record().base));
        named.sort_by_key(|view| view.record().base.components().count());
    }
    named.pop().ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|view| view.name()).collect();
        let several = names.iter().filter(|known| *known == name).count() > 1;
        match several {
            true => {
                Error::invalid(format!("there are several views {}: go to the directory that you mean", quoted(name)))
            }
            false => {
                let hint = acheron_base::nearest::hint(name, names.iter().map(String::as_str), "views");
                Error::not_found(format!("there is no view {}{hint}", quoted(name)))
            }
        }
    })
}
