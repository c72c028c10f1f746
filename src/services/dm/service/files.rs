//! The files of the service: the inputs and outputs of campaigns, their panels, the cartridges and the pages of the engine.
//! The files of a campaign are shown as its players may read them (`acheron_dm::players`), whoever reads.
//! Only `service` uses it.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures_util::FutureExt as _;
use serde_json::{Value, json};

use super::super::store::{ChangedBy, Save};
use super::GameSession;
use super::session::{TurnClaim, in_a_turn};
use acheron_base::{Code, Error, Result, blocking};
use acheron_dm::act::{ActResult, JOURNAL};
use acheron_dm::answer::{self, LastAnswer};
use acheron_dm::files::{ReadFiles, need};
use acheron_dm::input::{Input, begins, parse};
use acheron_dm::state::State;
use acheron_dm::world::Cartridge;
use acheron_dm::{boot, continuity, json as panels, pack, players, session as sessions, story, tools};
use acheron_vfs::{
    Answer, Caller, ComputedFile, Listing, MessageClaim, MessageFile, MessageSink, Node, Reply, ReplyFn, text, waiting,
};

pub(super) fn files(session: &Arc<GameSession>) -> Vec<(String, Node)> {
    for id in session.campaigns().campaigns().unwrap_or_default() {
        session.show(&id);
    }
    let active = {
        let session = Arc::downgrade(session);
        ComputedFile::fetched(move |_| {
            let session = session.clone();
            Answer::soon(blocking(move || Ok(Bytes::from(panels::render(&json!(of(&session)?.campaigns().active()?))))))
        })
    };
    for id in session.campaigns().cartridges().unwrap_or_default() {
        session.show_cartridge(&id);
    }
    vec![
        ("active.json".into(), Node::file(active)),
        ("campaigns".into(), Node::Dir(session.campaign_dirs.clone())),
        ("cartridges".into(), Node::Dir(session.cartridge_dirs.clone())),
        ("engine".into(), documents(session)),
    ]
}

/// The session, if it still exists. Nodes hold it weakly, because the session holds the nodes.
fn of(session: &Weak<GameSession>) -> Result<Arc<GameSession>> {
    session.upgrade().ok_or_else(|| Error::unavailable("the game master has stopped"))
}

/// The pages of the engine and the generated `tools.json`.
///
/// The names are those of the mount; the bytes are read when they are opened, so that an edit of the library is seen.
fn documents(session: &Arc<GameSession>) -> Node {
    let engine = session.campaigns().library().engine().unwrap_or_default();
    let page = |path: &String| {
        let (session, own) = (Arc::downgrade(session), path.clone());
        let shown = ComputedFile::fetched(move |_| {
            let (session, own) = (session.clone(), own.clone());
            Answer::soon(blocking(move || {
                let engine = of(&session)?.campaigns().library().engine()?;
                let page = engine.page(&own).map(str::to_owned);
                page.map(Bytes::from).ok_or_else(|| Error::not_found(format!("the engine has no {own} any more")))
            }))
        });
        (path.clone(), Node::file(shown))
    };
    let mut pages: BTreeMap<String, Node> = engine.pages().keys().map(page).collect();
    pages.insert("tools.json".into(), Node::file(text(panels::render(&tools::document()))));
    tree(pages)
}

/// The files of a cartridge, read when they are opened.
pub(super) fn cartridge(session: &Arc<GameSession>, id: &str, paths: &[String]) -> Node {
    let page = |path: &String| {
        let (session, id, own) = (Arc::downgrade(session), id.to_owned(), path.clone());
        let shown = ComputedFile::fetched(move |_| {
            let (session, id, own) = (session.clone(), id.clone(), own.clone());
            Answer::soon(blocking(move || {
                let page = of(&session)?.campaigns().cartridge_files(&id)?.remove(&own);
                page.map(Bytes::from).ok_or_else(|| Error::not_found(format!("cartridge {id} has no {own} any more")))
            }))
        });
        (path.clone(), Node::file(shown))
    };
    tree(paths.iter().map(page).collect())
}

/// Nodes by path as directories.
fn tree(nodes: BTreeMap<String, Node>) -> Node {
    let here = Listing::default();
    spread(nodes, &here);
    Node::dir(here)
}

/// Puts nodes by path into a directory, with the directories below it.
fn spread(nodes: BTreeMap<String, Node>, here: &Listing) {
    let mut below: BTreeMap<String, BTreeMap<String, Node>> = BTreeMap::new();
    for (path, node) in nodes {
        match path.split_once('/') {
            Some((folder, rest)) => {
                below.entry(folder.to_owned()).or_default().insert(rest.to_owned(), node);
            }
            None => here.put(&path, node),
        }
    }
    for (folder, inner) in below {
        here.put(&folder, tree(inner));
    }
}

/// Shows files of a campaign under `files/`, as they are on disk when they are read.
pub(super) fn show_pages(session: &Arc<GameSession>, id: &str, paths: &[String], here: &Listing) {
    let page = |path: &String| (path.clone(), page(session, id, path.clone()));
    spread(paths.iter().map(page).collect(), here);
}

/// Renders a file of a campaign from the files on disk.
type RenderFile = fn(&Save, &Cartridge) -> Result<String>;

/// The files of a campaign's directory that are rendered when they are read.
const MADE: [(&str, RenderFile); 15] = [
    ("hud.json", |save, _| or(save, ".kernel/hud.json", "[]\n")),
    ("menu.json", |save, _| or(save, ".kernel/menu.json", "[]\n")),
    ("delta", |save, _| players::delta(&or(save, ".kernel/delta.md", "")?)),
    ("state.json", |save, _| viewed(save, "STATE_PANEL.json")),
    ("hot_pack.json", |save, _| viewed(save, "HOT_PACK.json")),
    ("hot_pack.md", |save, _| Ok(pack::comment(&panels::read("HOT_PACK.json", &viewed(save, "HOT_PACK.json")?)?))),
    ("boot", |save, world| Ok(players::boot(&boot::read(save, world)?.summary(world)))),
    ("clocks.json", clocks),
    ("indicators.json", |save, _| part(save, "indicators")),
    ("dice.ndjson", |save, _| or(save, ".kernel/dice.ndjson", "")),
    ("journal.ndjson", |save, _| Ok(players::journal(&or(save, JOURNAL, "")?))),
    ("snapshot.md", snapshot),
    ("check.json", |save, world| Ok(panels::render(&json!(continuity::check(save, world)?)))),
    ("map.txt", map),
    ("story.md", |save, world| story::render(save, world)),
];

fn or(save: &Save, path: &str, absent: &str) -> Result<String> {
    Ok(save.read(path)?.unwrap_or_else(|| absent.to_owned()))
}

/// A file of the campaign as players read it.
fn viewed(save: &Save, path: &str) -> Result<String> {
    players::view(path, &need(save, path)?)
}

fn snapshot(save: &Save, _: &Cartridge) -> Result<String> {
    let path = sessions::snapshot_path(&boot::current(save)?);
    players::view(&path, &or(save, &path, "")?)
}

fn part(save: &Save, key: &str) -> Result<String> {
    let panel: Value = panels::read("STATE_PANEL.json", &need(save, "STATE_PANEL.json")?)?;
    Ok(panels::render(&panel[key]))
}

/// The clocks that the player may see.
fn clocks(save: &Save, _: &Cartridge) -> Result<String> {
    let panel: Value = panels::read("STATE_PANEL.json", &need(save, "STATE_PANEL.json")?)?;
    let seen = panel["clocks"].as_array().into_iter().flatten().filter(|clock| clock["visible"] != false);
    Ok(panels::render(&seen.cloned().collect()))
}

/// The map in its fog.
pub(super) fn map(save: &Save, world: &Cartridge) -> Result<String> {
    if let Some(off) = world.off("map_system") {
        return Err(Error::unavailable(off));
    }
    let state = State::read(&panels::read("STATE_PANEL.json", &need(save, "STATE_PANEL.json")?)?, world);
    Ok(world.map.render(&state.seen, &state.location, |at| world.name(at).to_owned()))
}

pub(super) fn campaign(session: &Arc<GameSession>, id: &str) -> Node {
    let mut here = Listing::default()
        .file("input", MessageFile::new(Arc::new(MoveFile { session: Arc::downgrade(session), id: id.to_owned() })))
        .file("output", output(session, id))
        .file("status.json", status(session, id));
    for (name, make) in MADE {
        let (session, id) = (Arc::downgrade(session), id.to_owned());
        let file = ComputedFile::fetched(move |_| {
            let (session, id) = (session.clone(), id.clone());
            Answer::soon(blocking(move || {
                let (save, world) = of(&session)?.campaigns().play(&id)?;
                make(&save, &world).map(Bytes::from)
            }))
        });
        here = here.file(name, file);
    }
    let turn = session.turn_of(id);
    Node::dir(here.with("sessions", Node::Dir(turn.sessions.clone())).with("files", Node::Dir(turn.files.clone())))
}

/// The result of the last input. A read waits while a turn is under way; a refusal is shown, and nothing else has changed.
fn output(session: &Arc<GameSession>, id: &str) -> ComputedFile {
    let (session, id) = (Arc::downgrade(session), id.to_owned());
    waiting(move |_| {
        let (session, id) = (session.clone(), id.clone());
        Answer::later(async move {
            let session = of(&session)?;
            let turn = session.turn_of(&id);
            turn.quiet().await;
            blocking(move || {
                let shown = match unkept(&session, &id)? {
                    Some(refusal) => session.refusal_shown(&id, &refusal),
                    None => answer::shown(&session.campaigns().campaign(&id)?)?,
                };
                Ok(Bytes::from(shown))
            })
            .await
        })
    })
}

/// The refusal of the last input, if it stands only in memory: bytes that are not text never became an input.
fn unkept(session: &Arc<GameSession>, id: &str) -> Result<Option<Error>> {
    let Some(refusal) = session.turn_of(id).refusal() else { return Ok(None) };
    let kept = LastAnswer::read(&session.campaigns().campaign(id)?)?;
    let same = kept.is_some_and(|kept| kept.error == json!(refusal));
    Ok((!same).then_some(refusal))
}

/// The state of a campaign: whether a turn is under way, and the refusal of the last input. It does not wait.
fn status(session: &Arc<GameSession>, id: &str) -> ComputedFile {
    let (session, id) = (Arc::downgrade(session), id.to_owned());
    ComputedFile::fetched(move |_| {
        let (session, id) = (session.clone(), id.clone());
        Answer::soon(blocking(move || {
            let session = of(&session)?;
            let save = session.campaigns().campaign(&id)?;
            let kept = LastAnswer::read(&save)?.map_or(Value::Null, |kept| kept.error);
            let error = unkept(&session, &id)?.map_or(kept, |refusal| json!(refusal));
            let turn = session.turn_of(&id);
            let (state, error) = match (turn.is_busy(), error.is_null()) {
                (true, _) => ("playing", Value::Null),
                (false, true) => ("idle", error),
                (false, false) => ("refused", error),
            };
            let mut status = json!({"state": state, "initialised": save.initialised(), "error": error});
            if turn.is_asking() {
                status["waits_for"] = json!("narrator");
                status["cancel"] = json!(format!("echo '{{\"campaign\":\"{id}\"}}' > control/skip_narrator.json"));
            }
            Ok(Bytes::from(panels::render(&status)))
        }))
    })
}

/// One session file, by the name that it has on disk.
pub(super) fn session_page(session: &Arc<GameSession>, id: &str, name: &str) -> Node {
    page(session, id, format!("sessions/{name}"))
}

/// One file of a campaign, read-only.
fn page(session: &Arc<GameSession>, id: &str, path: String) -> Node {
    let (session, id) = (Arc::downgrade(session), id.to_owned());
    Node::file(ComputedFile::fetched(move |_| {
        let (session, id, path) = (session.clone(), id.clone(), path.clone());
        Answer::soon(blocking(move || viewed(&of(&session)?.campaigns().campaign(&id)?, &path).map(Bytes::from)))
    }))
}

/// A campaign's `input`: one message is one move.
struct MoveFile {
    session: Weak<GameSession>,
    id: String,
}

impl MessageSink for MoveFile {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"[LOOK]{around}\n")
    }

    /// A shell loses the refusal of a whole input, and would take the answer to another player's for its own.
    fn may(&self, _caller: &Caller) -> Result<()> {
        let turn = of(&self.session)?.turn_of(&self.id);
        if turn.is_entered() { Err(in_a_turn(&self.id)) } else { Ok(()) }
    }

    /// Headers that every game has are known at once; only for another word is the cartridge asked. A line that is a whole move is
    /// checked as a whole, because a shell loses a refusal at `close(2)`.
    fn begins(&self, _caller: &Caller, text: &str) -> Answer<bool> {
        let whole = text.ends_with('\n') && matches!(parse(text, &[]), Ok(Input::Move(_)));
        let (session, id, text) = (self.session.clone(), self.id.clone(), text.to_owned());
        match begins(&text, &[]) {
            Ok(_) if whole => Answer::soon(async move { of(&session)?.admits(&id, text).await }),
            Ok(begun) => Answer::ok(begun),
            Err(_) => Answer::soon(async move { of(&session)?.begins(&id, text).await }),
        }
    }

    fn claim(&self, _caller: &Caller) -> Result<Option<MessageClaim>> {
        Ok(Some(Box::new(of(&self.session)?.turn_of(&self.id).claim(&self.id)?)))
    }

    /// A second writer is told so itself; the answer to the first one's input stays.
    fn refused(&self, _caller: &Caller, error: &Error) {
        if let Ok(session) = of(&self.session)
            && error.code != Code::Busy
        {
            session.turn_of(&self.id).refused(error);
        }
    }

    fn receive(&self, caller: &Caller, message: String) -> Answer<Arc<dyn Reply>> {
        match self.claim(caller) {
            Ok(claim) => self.receive_claimed(caller, message, claim),
            Err(busy) => Answer::refuse(busy),
        }
    }

    fn receive_claimed(
        &self,
        _caller: &Caller,
        message: String,
        claim: Option<MessageClaim>,
    ) -> Answer<Arc<dyn Reply>> {
        let (session, id) = (self.session.clone(), self.id.clone());
        let claim = claim.and_then(|claim| claim.downcast::<TurnClaim>().ok());
        Answer::soon(async move {
            // A task of its own: a turn runs to its end even if the player closes the file.
            let session = of(&session)?;
            let turn = session.turn_of(&id);
            // Nobody else sends an input until this one is accepted; it waits for the turn before it.
            let _sent = claim.map_or_else(|| turn.claim(&id), |claim| Ok(*claim))?;
            let claim = turn.queued().await;
            let played =
                tokio::spawn(async move { session.play_claimed(&ChangedBy::no_call(), &id, &message, claim).await });
            let said = |done: Result<ActResult>| done.map(|done| Bytes::from(done.output));
            let stopped = |fault| Error::internal(format!("the turn stopped: {fault}"));
            let played = played.map(move |done| done.map_err(stopped).and_then(said)).boxed().shared();
            // A write commands: it ends when the turn waits for the narrator. A refusal comes before that.
            let reply: Arc<dyn Reply> = tokio::select! {
                biased;
                done = played.clone() => {
                    let said = done?;
                    Arc::new(ReplyFn(move || Answer::ok(said.clone())))
                }
                () = turn.accepted() => Arc::new(ReplyFn(move || Answer::later(played.clone()))),
            };
            Ok(reply)
        })
    }

    fn limit(&self) -> usize {
        16 << 10
    }
}
