//! Tests of the service on a real directory, by subject; what they share.

mod campaign_files;
mod cartridges;
mod inputs;
mod narrators;
mod tools;
mod two_players;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::super::narrator::{ModelNarrator, Narrator, NoNarrator};
use super::super::store::{Campaigns, ChangedBy};
use super::*;
use crate::model::{AnswerPiece, Model, ModelAnswer, ModelRequest};
use crate::policy::PrincipalCaller;
use acheron_base::{Clock, ConfinedDir, Error, Result};
use acheron_dm::act::Act;
use acheron_dm::brief::Brief;
use acheron_vfs::{Caller, Node, Open};

fn session(narrator: Arc<dyn Narrator>) -> (tempfile::TempDir, Arc<GameSession>) {
    let root = tempfile::tempdir().unwrap();
    let campaigns = Campaigns::open(ConfinedDir::open(root.path()).unwrap(), Default::default());
    (root, GameSession::new(campaigns, narrator, Clock::at(1_794_823_200_000)))
}

async fn begun(narrator: Arc<dyn Narrator>) -> (tempfile::TempDir, Arc<GameSession>, Vec<(String, Node)>) {
    let (root, session) = session(narrator);
    session.new_campaign(&ChangedBy::no_call(), "c1", "brinewick", Some(7)).await.unwrap();
    let answers = serde_json::from_value(json!({"preset": "Mystery Investigation", "pc_name": "Ann"})).unwrap();
    session.act(&ChangedBy::no_call(), "c1", Act::Init { answers: Box::new(answers) }).await.unwrap();
    let files = super::files::files(&session);
    (root, session, files)
}

fn find(files: &[(String, Node)], path: &str) -> Node {
    let mut parts = path.split('/');
    let first = parts.next().unwrap();
    let mut node = files.iter().find(|(name, _)| name == first).unwrap().1.clone();
    for part in parts {
        let Node::Dir(dir) = &node else { panic!("{path}") };
        node = dir.lookup(part).unwrap_or_else(|| panic!("no {part} in {path}"));
    }
    node
}

async fn read(files: &[(String, Node)], path: &str) -> String {
    let Node::File(file) = find(files, path) else { panic!("{path}") };
    let handle = file.open(&Caller::operator(), Open::READ).unwrap();
    let bytes = handle.read(0, 1 << 20).wait().await.unwrap_or_else(|fault| panic!("{path}: {fault}"));
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn say(files: &[(String, Node)], campaign: &str, text: &str) -> Result<()> {
    let Node::File(file) = find(files, &format!("campaigns/{campaign}/input")) else { panic!("input") };
    let handle = file.open(&Caller::operator(), Open::BOTH)?;
    handle.write(0, text.as_bytes()).wait().await?;
    handle.flush(true).wait().await
}

/// Proposes only once it is let go.
struct Slow(tokio::sync::Semaphore);

#[async_trait]
impl Narrator for Slow {
    async fn propose(&self, brief: &Brief) -> Result<Option<Value>> {
        self.0.acquire().await.map_err(|_| Error::internal("closed"))?.forget();
        assert!(brief.boot.lines().count() <= 12);
        Err(Error::provider("the model is out"))
    }
}

/// Answers from a list, and keeps what it was asked.
struct Telling {
    lines: parking_lot::Mutex<std::collections::VecDeque<Result<&'static str>>>,
    asked: parking_lot::Mutex<Vec<ModelRequest>>,
}

#[async_trait]
impl Model for Telling {
    fn name(&self) -> String {
        "telling".into()
    }

    async fn answer(&self, ask: &ModelRequest, _: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
        self.asked.lock().push(ask.clone());
        let text = self.lines.lock().pop_front().unwrap()?.to_owned();
        Ok(ModelAnswer { text, ..ModelAnswer::default() })
    }
}

/// A narrator with a model that answers these, and the model.
fn told_by(lines: Vec<Result<&'static str>>) -> (Arc<Telling>, Arc<dyn Narrator>) {
    let model = Arc::new(Telling { lines: parking_lot::Mutex::new(lines.into()), asked: Default::default() });
    let own = crate::agent::test_paid::paid(model.clone());
    let library = Arc::new(Library::open(None));
    let narrator = ModelNarrator::new(move || Ok(Some(own.clone())), library, std::time::Duration::from_secs(60));
    (model, Arc::new(narrator))
}
