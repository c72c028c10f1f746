//! `projects/<p>/views`: makes views.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::all::Views;
use crate::contract::Operation;
use crate::service::{Cx, Service};
use acheron_base::{Error, Result, blocking};

/// The views of one project.
pub struct ViewsService {
    views: Arc<Views>,
    base: PathBuf,
    project: String,
}

impl ViewsService {
    pub fn new(views: Arc<Views>, base: PathBuf, project: String) -> ViewsService {
        ViewsService { views, base, project }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Makes a view of the project as it is now. Nothing is copied.
    Create {
        /// Up to 64 of a-z, 0-9, _ and -.
        name: String,
    },
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CreatedView")]
pub struct CreatedView {
    name: String,
    /// Where it is.
    path: String,
}

#[async_trait]
impl Service for ViewsService {
    const NAME: &'static str = "views";
    const ABOUT: &'static str = "Working copies of the project, each a directory here.\n\n\
        What is changed in `<view>/fs` changes nothing in the project until it is promoted. An agent whose entry in the \
        mountspec says `\"view\": \"own\"` has one of its own, under its name; those with `\"shared\"` have one together. \
        More: `/global/library/topics/views.md`.";
    type Command = Command;
    type Output = CreatedView;

    fn operations() -> Vec<Operation> {
        vec![Operation::execute("create").example(json!({"name": "try"}))]
    }

    async fn invoke(&self, _cx: &Cx, command: Command) -> Result<CreatedView> {
        let Command::Create { name } = command;
        if !crate::spec::is_id(&name) || name == "control" {
            return Err(Error::invalid("the name of a view has up to 64 of a-z, 0-9, _ and -, and is not `control`"));
        }
        let (views, base) = (self.views.clone(), self.base.clone());
        let path = format!("/projects/{}/views/{name}", self.project);
        let made = name.clone();
        blocking(move || views.create(&base, &made, None)).await?;
        Ok(CreatedView { name, path })
    }
}
