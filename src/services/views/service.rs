//! The operations on one view.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::all::Views;
use super::files;
use super::view::View;
use crate::contract::Operation;
use crate::policy::{Principal, PrincipalCaller};
use crate::service::{Cx, Service};
use acheron_base::{Error, Result, blocking};
use acheron_vfs::{Caller, Node};

/// One view as a service.
pub struct ViewService {
    view: Arc<View>,
    views: Arc<Views>,
    fs: Node,
}

impl ViewService {
    pub fn new(view: Arc<View>, views: Arc<Views>, fs: Node) -> ViewService {
        ViewService { view, views, fs }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Carries changes back into the project: all of them that nothing holds back, or those that are named.
    ///
    /// Everything is checked and staged first; then it happens whole, also if the host dies meanwhile. A path that the project
    /// has changed too is a conflict, and nothing is promoted. What other programs run or obey by themselves (`held` in
    /// `changes.json`), what is ignored, and `.git` go only if they are named.
    Promote {
        /// Paths as `changes.json` writes them; a directory stands for what is in it, but not for what is held back.
        #[serde(default)]
        paths: Option<Vec<String>>,
    },
    /// Undoes the last promote of this view. The view stays as it is. Refused if the project has changed there since.
    Undo {},
    /// Throws the view away with all its changes, or only the named changes.
    Discard {
        /// The project shows at these paths again.
        #[serde(default)]
        paths: Option<Vec<String>>,
    },
    /// Keeps a copy of the changes, to come back to it with `restore`. What is ignored is left out.
    Snapshot {
        /// Up to 64 of a-z, 0-9, _ and -.
        name: String,
    },
    /// Brings the view back to a snapshot. Programs in the view are ended first; what was there becomes the snapshot `before`.
    Restore { name: String },
    /// Takes over the project as it is now, and lists what both sides have changed.
    Rebase {
        /// Conflicts in which the view is right: its next promote replaces what the project has.
        #[serde(default)]
        keep: Vec<String>,
    },
    /// Sends a remark on the changes to the agent that works in the view, as mail.
    Comment {
        text: String,
        /// The file that it is about.
        #[serde(default)]
        path: Option<String>,
        /// The line of that file in the view.
        #[serde(default)]
        line: Option<u64>,
    },
}

#[async_trait]
impl Service for ViewService {
    const NAME: &'static str = "view";
    const ABOUT: &'static str = "A working copy of a project: what is changed in `fs/` stays there until it is promoted.\n\n\
        `changes.json` lists the changes, removals first, with what is held back (`held`) and what the project has changed too \
        (`conflict`). `diff.patch` is the same as a patch for `git apply`. `status.json` says under `progress` whether the view \
        is mounted, which agent works in it, and what collides. Do not run programs of your own in `fs/`: what lies there may \
        be made to run something. Programs of the agent see the view as `/projects/<project>/fs`. \
        More: `/global/library/topics/views.md`.";
    type Command = Command;
    type Output = Value;

    fn operations() -> Vec<Operation> {
        vec![
            Operation::execute("promote").example(json!({"paths": ["src/main.rs"]})),
            Operation::execute("undo").example(json!({})),
            Operation::execute("discard").example(json!({"paths": ["src/main.rs"]})),
            Operation::execute("snapshot").example(json!({"name": "first"})),
            Operation::execute("restore").example(json!({"name": "first"})),
            Operation::execute("rebase").example(json!({})),
            Operation::execute("comment").example(json!({"path": "src/main.rs", "line": 3, "text": "why unwrap?"})),
        ]
    }

    fn files(&self) -> Vec<(String, Node)> {
        files::listed(&self.view, self.fs.clone())
    }

    fn progress(&self) -> Option<Value> {
        serde_json::to_value(self.view.status()).ok()
    }

    fn check(&self, caller: &Caller, command: Command) -> Result<()> {
        let changes_project = matches!(command, Command::Promote { .. } | Command::Undo {});
        if changes_project && caller.in_turn() {
            // A rule may allow it to a program; what a person has still to review is not merged by the agent itself.
            return Err(Error::forbidden("a turn does not promote its own work: the operator does"));
        }
        if let Command::Snapshot { name } = &command
            && !crate::spec::is_id(name)
        {
            return Err(Error::invalid("the name of a snapshot has up to 64 of a-z, 0-9, _ and -"));
        }
        Ok(())
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Value> {
        let (view, job) = (self.view.clone(), cx.job.clone());
        match command {
            Command::Promote { paths } => {
                blocking(move || view.promote(paths.as_deref(), &job.id, &|| job.decide())).await
            }
            Command::Undo {} => blocking(move || view.undo(&job.id, &|| job.decide())).await,
            Command::Discard { paths: Some(paths) } => blocking(move || view.drop_changes(&paths)).await,
            Command::Discard { paths: None } => {
                let views = self.views.clone();
                blocking(move || views.discard(&view)).await
            }
            Command::Snapshot { name } => blocking(move || view.snapshot(&name)).await,
            Command::Restore { name } => blocking(move || view.restore(&name)).await,
            Command::Rebase { keep } => blocking(move || view.rebase(&keep)).await,
            Command::Comment { text, path, line } => self.comment(cx, &text, path.as_deref(), line).await,
        }
    }
}

impl ViewService {
    async fn comment(&self, cx: &Cx, text: &str, path: Option<&str>, line: Option<u64>) -> Result<Value> {
        let agent = self.view.record().agent;
        let agent = agent.ok_or_else(|| Error::invalid("no agent works in this view: there is nobody to tell"))?;
        let place = match (path, line) {
            (Some(path), Some(line)) => format!("{path}:{line}: "),
            (Some(path), None) => format!("{path}: "),
            _ => String::new(),
        };
        let subject = format!("a comment on your changes in the view {}", self.view.name());
        let body = format!("{place}{text}");
        let by = match cx.caller.principal() {
            Principal::Agent(id) => id.clone(),
            _ => crate::services::mail::OPERATOR.to_owned(),
        };
        let arguments =
            json!({"to": agent, "subject": subject, "body": body, "thread": format!("view-{}", self.view.name())});
        let sent = cx.context.call(&cx.caller, &by, "mail", "send", arguments).await?;
        let sent = sent.end().await;
        match sent.outcome.as_deref() {
            Some(Ok(result)) => Ok(json!({"to": agent, "mail": result["id"]})),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::internal("the mail has no outcome")),
        }
    }
}
