//! The files of the service: what is played, what is read, what is served as it is.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use serde_json::{Value, json};

use super::super::act::JOURNAL;
use super::super::shelf::{Files, Shelf, need};
use super::super::state::State;
use super::super::store::Save;
use super::super::world::Cartridge;
use super::super::{boot, continuity, engine, json as panels, pack, session, tools};
use super::Table;
use acheron_base::blocking;
use acheron_base::{Error, Result};
use acheron_vfs::{
    Answer, Caller, ComputedFile, Listing, MessageFile, MessageSink, Node, Reply, ReplyFn, text, waiting,
};

pub(super) fn files(table: &Arc<Table>) -> Vec<(String, Node)> {
    for id in table.hall().campaigns().unwrap_or_default() {
        table.show(&id);
    }
    let active = {
        let table = Arc::downgrade(table);
        ComputedFile::fetched(move |_| {
            let table = table.clone();
            Answer::soon(blocking(move || Ok(Bytes::from(panels::render(&json!(of(&table)?.hall().active()?))))))
        })
    };
    for id in table.hall().cartridges().unwrap_or_default() {
        table.show_cartridge(&id);
    }
    vec![
        ("active.json".into(), Node::file(active)),
        ("campaigns".into(), Node::Dir(table.campaigns.clone())),
        ("cartridges".into(), Node::Dir(table.cartridges.clone())),
        ("engine".into(), documents()),
    ]
}

/// The table, while there is one. Nodes do not keep it: the table keeps nodes.
fn of(table: &Weak<Table>) -> Result<Arc<Table>> {
    table.upgrade().ok_or_else(|| Error::unavailable("the game master has left"))
}

/// The engine's pages, and what is made from its tables.
fn documents() -> Node {
    let mut pages: Files = engine::pages().into_iter().map(|(path, text)| (path, text.to_owned())).collect();
    pages.insert("tools.json".into(), panels::render(&tools::document()));
    tree(pages.into_iter().map(|(path, page)| (path, Node::file(text(page)))).collect())
}

/// The files of a cartridge, read when they are opened.
pub(super) fn cartridge(table: &Arc<Table>, id: &str, paths: &[String]) -> Node {
    let page = |path: &String| {
        let (table, id, own) = (Arc::downgrade(table), id.to_owned(), path.clone());
        let shown = ComputedFile::fetched(move |_| {
            let (table, id, own) = (table.clone(), id.clone(), own.clone());
            Answer::soon(blocking(move || {
                let page = of(&table)?.hall().cartridge_files(&id)?.remove(&own);
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
    Node::dir(here)
}

/// How a file of a campaign is made from what is on disk.
type Make = fn(&Save, &Cartridge) -> Result<String>;

/// The names of a campaign's directory that are made when they are read.
const MADE: [(&str, Make); 14] = [
    ("hud.json", |save, _| or(save, ".kernel/hud.json", "[]\n")),
    ("menu.json", |save, _| or(save, ".kernel/menu.json", "[]\n")),
    ("delta", |save, _| or(save, ".kernel/delta.md", "")),
    ("state.json", |save, _| need(save, "STATE_PANEL.json")),
    ("hot_pack.json", |save, _| need(save, "HOT_PACK.json")),
    ("hot_pack.md", |save, _| Ok(pack::comment(&panels::read("HOT_PACK.json", &need(save, "HOT_PACK.json")?)?))),
    ("boot", |save, world| Ok(boot::read(save, world)?.summary(world))),
    ("clocks.json", |save, _| part(save, "clocks")),
    ("indicators.json", |save, _| part(save, "indicators")),
    ("dice.ndjson", |save, _| or(save, ".kernel/dice.ndjson", "")),
    ("journal.ndjson", |save, _| or(save, JOURNAL, "")),
    ("snapshot.md", |save, _| or(save, &session::snapshot_path(&boot::current(save)?), "")),
    ("check.json", |save, world| Ok(panels::render(&json!(continuity::check(save, world)?)))),
    ("map.txt", map),
];

fn or(save: &Save, path: &str, absent: &str) -> Result<String> {
    Ok(save.read(path)?.unwrap_or_else(|| absent.to_owned()))
}

fn part(save: &Save, key: &str) -> Result<String> {
    let panel: Value = panels::read("STATE_PANEL.json", &need(save, "STATE_PANEL.json")?)?;
    Ok(panels::render(&panel[key]))
}

/// The map in its fog.
pub(super) fn map(save: &Save, world: &Cartridge) -> Result<String> {
    let state = State::read(&panels::read("STATE_PANEL.json", &need(save, "STATE_PANEL.json")?)?, world);
    Ok(world.map.render(&state.seen, &state.location, |at| world.name(at).to_owned()))
}

pub(super) fn campaign(table: &Arc<Table>, id: &str) -> Node {
    let mut here = Listing::default()
        .file("input", MessageFile::new(Arc::new(Input { table: Arc::downgrade(table), id: id.to_owned() })))
        .file("output", output(table, id));
    for (name, make) in MADE {
        let (table, id) = (Arc::downgrade(table), id.to_owned());
        let file = ComputedFile::fetched(move |_| {
            let (table, id) = (table.clone(), id.clone());
            Answer::soon(blocking(move || {
                let (save, world) = of(&table)?.hall().play(&id)?;
                make(&save, &world).map(Bytes::from)
            }))
        });
        here = here.file(name, file);
    }
    Node::dir(here.with("sessions", Node::Dir(table.sitting(id).sessions.clone())))
}

/// What came of the last input. Waits while a turn is under way; a refusal is shown and nothing else has changed.
fn output(table: &Arc<Table>, id: &str) -> ComputedFile {
    let (table, id) = (Arc::downgrade(table), id.to_owned());
    waiting(move |_| {
        let (table, id) = (table.clone(), id.clone());
        Answer::later(async move {
            let table = of(&table)?;
            let sitting = table.sitting(&id);
            sitting.quiet().await;
            if let Some(refusal) = sitting.refusal() {
                return Ok(Bytes::from(refusal));
            }
            blocking(move || {
                Ok(Bytes::from(or(&table.hall().campaign(&id)?, ".kernel/output.md", "nothing has been played yet\n")?))
            })
            .await
        })
    })
}

/// One session file, by the name that it has on disk.
pub(super) fn session_page(table: &Arc<Table>, id: &str, name: &str) -> Node {
    let (table, id, path) = (Arc::downgrade(table), id.to_owned(), format!("sessions/{name}"));
    Node::file(ComputedFile::fetched(move |_| {
        let (table, id, path) = (table.clone(), id.clone(), path.clone());
        Answer::soon(blocking(move || need(&of(&table)?.hall().campaign(&id)?, &path).map(Bytes::from)))
    }))
}

/// A campaign's `input`: one message is one move.
struct Input {
    table: Weak<Table>,
    id: String,
}

impl MessageSink for Input {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"[LOOK]{around}\n")
    }

    fn may(&self, _caller: &Caller) -> Result<()> {
        Ok(())
    }

    fn receive(&self, _caller: &Caller, message: String) -> Answer<Arc<dyn Reply>> {
        let (table, id) = (self.table.clone(), self.id.clone());
        Answer::soon(async move {
            // A task of its own: a player who hangs up does not leave a turn half thought.
            let table = of(&table)?;
            let played = tokio::spawn(async move { table.play(&id, &message).await }).await;
            let done = played.map_err(|fault| Error::internal(format!("the turn stopped: {fault}")))??;
            let said = Bytes::from(done.output);
            Ok(Arc::new(ReplyFn(move || Answer::ok(said.clone()))) as Arc<dyn Reply>)
        })
    }

    fn limit(&self) -> usize {
        16 << 10
    }
}
