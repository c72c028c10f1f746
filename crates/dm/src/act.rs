//! Acts: every change of a campaign as data. An act goes into the journal; replaying it gives the same files. Storage and
//! `campaign` use it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::adopt::{self, PlayedBy};
use crate::delta::apply::{Change, sum};
use crate::files::{Files, ReadFiles, need};
use crate::init::{self, Answers};
use crate::json::render as print;
use crate::state::State;
use crate::tools::Call;
use crate::turn::{ActContext, turn};
use crate::{boot, ending, hotstart, json, menu, render, session, tools};
use acheron_base::{Error, Result};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Act {
    /// The first of all: the template, bound to a cartridge.
    New {
        cartridge: String,
        version_lock: String,
        seed: u64,
        /// The rules and the version of the cartridge that it is played by; journals of the first rules name neither.
        #[serde(flatten)]
        played_by: PlayedBy,
    },
    /// From here on other rules, or another version of the cartridge, are played by: the files as they stood.
    Adopt {
        #[serde(flatten)]
        played_by: PlayedBy,
        files: Files,
    },
    Init {
        answers: Box<Answers>,
    },
    Turn {
        input: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proposal: Option<Value>,
    },
    Load,
    Undo,
    Rebuild,
    /// Opens a campaign again whose story has ended.
    PlayOn,
    /// Tools that change the campaign; all of them, or none.
    Tools {
        role: String,
        calls: Vec<Call>,
    },
}

/// One line of `journal.ndjson`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    pub seq: u64,
    pub at: String,
    #[serde(flatten)]
    pub act: Act,
    /// The sum of what it changed, so that a replay that differs is noticed where it differs.
    pub sum: String,
}

impl JournalEntry {
    pub fn line(&self) -> String {
        format!("{}\n", json!(self))
    }
}

/// The result of an act.
#[derive(Debug, Default)]
pub struct ActResult {
    pub changes: Vec<Change>,
    pub output: String,
    pub reports: Vec<String>,
    /// Whether the act, if it is the last, can be undone.
    pub undoable: bool,
}

pub const UNDO: &str = ".kernel/undo.json";
pub const JOURNAL: &str = ".kernel/journal.ndjson";

/// Plays one act. Pure; an act that is refused changes nothing.
pub fn step(context: ActContext<'_>, act: &Act) -> Result<ActResult> {
    match act {
        Act::New { .. } | Act::Adopt { .. } => Err(Error::invalid("the journal writes this entry by itself")),
        Act::Init { answers } => {
            let changes = init::init(answers, context.files, context.world, context.at)?;
            let output = written(&changes, ".kernel/output.md");
            Ok(ActResult { changes, output, ..ActResult::default() })
        }
        Act::Turn { input, proposal } => {
            let played = turn(context, input, proposal.as_ref())?;
            let undoable = !played.changes.is_empty();
            Ok(ActResult { changes: played.changes, output: played.output, reports: played.reports, undoable })
        }
        Act::Load => load(context),
        Act::Undo => undo(context),
        Act::Rebuild => rebuild(context),
        Act::PlayOn => play_on(context),
        Act::Tools { role, calls } => tools::run::changes(context, role, calls),
    }
}

fn written(changes: &[Change], path: &str) -> String {
    let text = changes.iter().find_map(|change| match change {
        Change::Write { path: own, text } if own == path => Some(text.clone()),
        _ => None,
    });
    text.unwrap_or_default()
}

fn load(context: ActContext<'_>) -> Result<ActResult> {
    if let Some(why) = boot::uninitialised(context.files)? {
        return Err(Error::invalid(why));
    }
    let loaded = hotstart::load(context.files)?;
    let mut done = ActResult { output: loaded.summary, ..ActResult::default() };
    if loaded.guide {
        done.output = format!("{}{}", render::GUIDE, done.output);
        let mut pack = json::read("HOT_PACK.json", &need(context.files, "HOT_PACK.json")?)?;
        pack["context"]["guide_shown"] = json!(1);
        done.changes.push(Change::Write { path: "HOT_PACK.json".into(), text: print(&pack) });
        // Shown and marked as shown in one act, so that it is not used up unseen.
        done.changes.push(Change::Write { path: ".kernel/output.md".into(), text: done.output.clone() });
    }
    Ok(done)
}

fn undo(context: ActContext<'_>) -> Result<ActResult> {
    let text = context.files.read(UNDO)?.unwrap_or_default();
    let changes: Vec<Change> = serde_json::from_str(&text).unwrap_or_default();
    if changes.is_empty() {
        return Err(Error::not_found("there is no turn to undo: only the last one can be, and only once"));
    }
    Ok(ActResult { changes, output: "the last turn is undone\n".into(), ..ActResult::default() })
}

/// The panel, made again from the sessions. Where it said otherwise, the session gets the note.
fn rebuild(context: ActContext<'_>) -> Result<ActResult> {
    let told =
        boot::told(context.files)?.ok_or_else(|| Error::not_found("no session tells of a state to rebuild from"))?;
    let before =
        json::read("STATE_PANEL.json", &context.files.read("STATE_PANEL.json")?.unwrap_or_else(|| "{}".into()))
            .unwrap_or_else(|_| json!({}));
    let conflicts = session::conflicts(&before, &told);
    let mut panel = before.clone();
    for (key, value) in told.as_object().into_iter().flatten() {
        panel[key] = value.clone();
    }
    let panel = State::read(&panel, context.world).write(&panel);
    if panel == before {
        return Ok(ActResult { output: "the panel agrees with the sessions\n".into(), ..ActResult::default() });
    }
    let notes: String = conflicts.iter().map(|note| format!("- Correction: {note}\n")).collect();
    let text = format!("\n## Decision: Correction\n\n{notes}- Panel: {}\n", sum(&print(&panel)));
    let path = boot::current(context.files)?;
    let whole = format!("{}{text}", need(context.files, &path)?);
    let mut changes = vec![
        Change::Append { path: path.clone(), text },
        Change::Write { path: "STATE_PANEL.json".into(), text: print(&panel) },
    ];
    changes.extend(windows(&path, &whole));
    Ok(ActResult { changes, output: format!("rebuilt from the sessions\n{notes}"), ..ActResult::default() })
}

/// A closed campaign is open again; the ending that it reached is behind it and does not come twice.
fn play_on(context: ActContext<'_>) -> Result<ActResult> {
    let boot = boot::read(context.files, context.world)?;
    let Some(title) = ending::closed(&boot.state, context.world).map(str::to_owned) else {
        return Err(Error::invalid("the campaign is open: there is no ending to play on from"));
    };
    let mut state = boot.state.clone();
    state.memory.ended.clear();
    // What would end the story at once has been passed by, too.
    while let Some(ending) = ending::reached(&state, context.world) {
        state.memory.endings.push(ending.id.clone());
    }
    let panel = state.write(&boot.panel);
    let decision = session::Decision {
        turn: state.turn,
        title: "played on".into(),
        real_time: context.at.to_owned(),
        world_time: state.time.to_string(),
        input: "<play on>".into(),
        resolution: format!("the story goes on after its ending: {title}"),
        state: json::difference(&boot.panel, &panel).unwrap_or_else(|| json!({})),
        panel: print(&panel),
        ..session::Decision::default()
    };
    let text = format!("\n{}", decision.render());
    let whole = format!("{}{text}", need(context.files, &boot.session)?);
    let output = format!("The story goes on after its ending: {title}.\n");
    let mut changes = vec![
        Change::Append { path: boot.session.clone(), text },
        Change::Write { path: "STATE_PANEL.json".into(), text: print(&panel) },
        Change::Write {
            path: ".kernel/menu.json".into(),
            text: print(&json!(menu::build(&state, context.world, &[]))),
        },
        Change::Write { path: ".kernel/output.md".into(), text: output.clone() },
    ];
    changes.extend(windows(&boot.session, &whole));
    Ok(ActResult { changes, output, ..ActResult::default() })
}

/// The snapshot and the digest of a whole session.
pub fn windows(path: &str, session: &str) -> [Change; 2] {
    [
        Change::Write { path: session::snapshot_path(path), text: session::snapshot(session) },
        Change::Write { path: session::compressed_path(path), text: session::compressed(session) },
    ]
}

/// The files of a campaign that was just made.
pub fn blank(template: &Files, id: &str, cartridge: &str, version_lock: &str, seed: u64, at: &str) -> Files {
    let mut files = template.clone();
    let head = format!(
        "# Campaign\n\ncampaign_id: {id}\ncartridge_id: {cartridge}\ncartridge_version_lock: {version_lock}\nseed: {seed}\ncreated_at: {at}\n"
    );
    files.insert("CAMPAIGN.md".into(), head);
    files
}

/// The changes that undo these; must be computed before these are made.
pub fn inverse(files: &dyn ReadFiles, changes: &[Change]) -> Result<Vec<Change>> {
    let mut back: Vec<Change> = Vec::new();
    for change in changes {
        let path = change.path().to_owned();
        if back.iter().any(|own| own.path() == path) {
            continue;
        }
        back.push(match (files.read(&path)?, change) {
            (None, _) => Change::Remove { path },
            (Some(text), Change::Append { .. }) => Change::Cut { path, length: text.len() },
            (Some(text), _) => Change::Write { path, text },
        });
    }
    Ok(back)
}

/// The whole of an act, with its journal line and its way back. The first act by other rules is preceded by an entry that
/// keeps the files as they stood, so that a replay starts from there.
pub fn whole(context: ActContext<'_>, act: &Act, seq: u64) -> Result<(ActResult, Vec<Change>)> {
    let done = step(context, act)?;
    if done.changes.is_empty() {
        return Ok((done, Vec::new()));
    }
    let back = if done.undoable { inverse(context.files, &done.changes)? } else { Vec::new() };
    let mut all = done.changes.clone();
    let text = |value: &Vec<Change>| serde_json::to_string(value).map_err(|fault| Error::internal(fault.to_string()));
    let adopted = adopt::due(context, seq)?;
    let seq = seq + u64::from(adopted.is_some());
    let entry = JournalEntry { seq, at: context.at.to_owned(), act: act.clone(), sum: sum(&text(&done.changes)?) };
    all.push(Change::Write { path: UNDO.into(), text: text(&back)? });
    all.extend(adopted.into_iter().flatten());
    all.push(Change::Append { path: JOURNAL.into(), text: entry.line() });
    Ok((done, all))
}

/// Makes changes in memory.
pub fn make(files: &mut Files, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Write { path, text } => {
                files.insert(path.clone(), text.clone());
            }
            Change::Append { path, text } => files.entry(path.clone()).or_default().push_str(text),
            Change::Cut { path, length } => {
                if let Some(text) = files.get_mut(path)
                    && text.is_char_boundary(*length)
                {
                    text.truncate(*length);
                }
            }
            Change::Remove { path } => {
                files.remove(path);
            }
        }
    }
}
