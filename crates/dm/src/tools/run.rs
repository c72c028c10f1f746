//! Runs the tools that stay inside one campaign or one cartridge. Storage carries out those that create and switch campaigns.

use regex::Regex;
use serde_json::{Value, json};

use super::roll::roll;
use super::{Call, Role, admit};
use crate::act::{self, ActResult, windows};
use crate::delta::apply::{Author, Change, changes as applied, fits_page, sum};
use crate::delta::{Delta, DeltaItem, panels};
use crate::files::{Files, ReadFiles, hidden, need};
use crate::json::render as print;
use crate::turn::ActContext;
use crate::{boot, hotstart, index, json, load, md, pack, panel_rules, session};
use acheron_base::{Error, Result};

pub(super) fn text<'a>(arguments: &'a Value, key: &str) -> &'a str {
    arguments[key].as_str().unwrap_or_default()
}

/// The path inside the campaign: the prefix that the tools write is taken off.
pub(super) fn inside(path: &str, campaign: &str) -> Result<String> {
    crate::delta::apply::path(path, campaign)
}

/// A file with a patch in it. A pattern that would take in the whole file is refused: nothing rewrites a file.
pub fn patched(before: &str, arguments: &Value) -> Result<String> {
    let content = md::ended(text(arguments, "content"));
    match text(arguments, "mode") {
        "append" => Ok(format!("{}{content}", md::ended(before))),
        "prepend" => Ok(format!("{content}{before}")),
        _ => {
            let pattern = text(arguments, "pattern");
            if pattern.is_empty() {
                return Err(Error::invalid("replace requires pattern"));
            }
            let build = regex::RegexBuilder::new(pattern).multi_line(true).size_limit(1 << 20).build();
            let regex: Regex = build.map_err(|_| Error::invalid("replace pattern is not a regular expression"))?;
            let found = regex.find(before).ok_or_else(|| Error::not_found("replace pattern not found"))?;
            if found.len() * 2 > before.len() && before.len() > 200 {
                return Err(Error::forbidden(
                    "the pattern takes in most of the file: files are patched, not rewritten",
                ));
            }
            Ok(format!("{}{}{}", &before[..found.start()], text(arguments, "content"), &before[found.end()..]))
        }
    }
}

/// Tools that change a campaign, as one transaction.
pub fn changes(context: ActContext<'_>, role: &str, calls: &[Call]) -> Result<ActResult> {
    let role = Role::named(role)?;
    let mut work = Overlay { base: context.files, own: Files::new() };
    let (mut all, mut said) = (Vec::new(), Vec::new());
    for call in calls {
        admit(role, call)?;
        let (made, result) = one(ActContext { files: &work, ..context }, call)?;
        for change in &made {
            work.take(change)?;
        }
        said.push(json!({"name": call.name, "result": result}));
        all.extend(made);
    }
    Ok(ActResult { changes: all, output: print(&json!({"tool_results": said})), ..ActResult::default() })
}

/// What one call changes, and what it answers.
fn one(context: ActContext<'_>, call: &Call) -> Result<(Vec<Change>, Value)> {
    match call.name.as_str() {
        "roll_check" => roll(context, &call.arguments),
        _ => Ok((changed(context, call)?, json!({"status": "ok"}))),
    }
}

fn changed(context: ActContext<'_>, call: &Call) -> Result<Vec<Change>> {
    let arguments = &call.arguments;
    let session = boot::current(context.files)?;
    let panel = |path: &str| -> Result<Vec<Change>> {
        if path == "HOT_PACK.json" && text(arguments, "content").trim_start().starts_with(pack::OPENER) {
            return whole_pack(context, text(arguments, "content"));
        }
        if text(arguments, "mode") != "patch" {
            return Err(Error::invalid(format!("{path} is JSON: mode must be patch, and content a merge patch")));
        }
        let delta = Delta { items: vec![DeltaItem::patch(path, text(arguments, "content"))], ..Delta::default() };
        let made = applied(&delta, context.files, context.campaign, &session, Author::Kernel)?;
        for change in &made {
            if let Change::Write { path, text } = change {
                panel_rules::fits(path, text)?;
            }
        }
        Ok(made)
    };
    match call.name.as_str() {
        "append_session" => {
            let path = inside(text(arguments, "session_path"), context.campaign)?;
            if path != session {
                return Err(Error::forbidden(format!("{path} is not the current session, which is {session}")));
            }
            note(text(arguments, "content"))?;
            let delta = Delta { items: vec![DeltaItem::append(path, text(arguments, "content"))], ..Delta::default() };
            with_windows(context, &session, applied(&delta, context.files, context.campaign, &session, Author::Kernel)?)
        }
        "update_hot_pack" => panel("HOT_PACK.json"),
        "update_mainline_panel" => panel("MAINLINE_PANEL.json"),
        "update_object_index" => {
            let made = panel("OBJECT_INDEX.json")?;
            if let Some(Change::Write { text, .. }) = made.first() {
                panel_rules::objects(&json::read("OBJECT_INDEX.json", text)?, context.world)?;
            }
            Ok(made)
        }
        "update_state_panel" => {
            let mut made = panel("STATE_PANEL.json")?;
            if let Some(Change::Write { text, .. }) = made.first() {
                let before = json::read("STATE_PANEL.json", &need(context.files, "STATE_PANEL.json")?)?;
                panel_rules::lawful(&before, &json::read("STATE_PANEL.json", text)?, context.world)?;
            }
            let after = match made.first() {
                Some(Change::Write { text, .. }) => text.clone(),
                _ => return Ok(made),
            };
            // A patch that changes nothing is no decision: the same batch sent twice tells of it once.
            if need(context.files, "STATE_PANEL.json")? == after {
                return Ok(Vec::new());
            }
            // A fact stands in a session first: the patch is a Decision of its own, so that the panel still follows from the sessions.
            let patch = json::read("content", text(arguments, "content"))?;
            let decision = format!(
                "\n## Decision: a patch by the game master\n\n- Real time: {}\n- State: {patch}\n- Panel: {}\n",
                context.at,
                sum(&after)
            );
            made.push(Change::Append { path: session.clone(), text: decision });
            with_windows(context, &session, made)
        }
        "write_patch" => {
            let path = inside(text(arguments, "path"), context.campaign)?;
            if path == "CAMPAIGN.md" {
                return Err(Error::forbidden(
                    "CAMPAIGN.md is written once: bind_campaign binds a campaign before it begins",
                ));
            }
            if path.starts_with(".kernel") || path.starts_with("sessions/") || path.ends_with(".json") {
                return Err(Error::forbidden(format!("{path} is changed by turns and by its own tool")));
            }
            let text = patched(&need(context.files, &path)?, arguments)?;
            fits_page(&path, &text)?;
            let made = Change::Write { path, text };
            playable(context.files, &made)?;
            Ok(vec![made])
        }
        "snapshot_update" => Ok(vec![windows(&session, &need(context.files, &session)?)[0].clone()]),
        "compress_history" => Ok(vec![windows(&session, &need(context.files, &session)?)[1].clone()]),
        other => Err(Error::invalid(format!("{other} changes no campaign"))),
    }
}

/// The hot pack of a comment view, which holds all of it.
fn whole_pack(context: ActContext<'_>, view: &str) -> Result<Vec<Change>> {
    let pack = pack::parse(view)?;
    panels::check("HOT_PACK.json", &pack)?;
    let text = print(&pack);
    fits_page("HOT_PACK.json", &text)?;
    need(context.files, "HOT_PACK.json")?;
    Ok(vec![Change::Write { path: "HOT_PACK.json".into(), text }])
}

/// Checks a note of a tool: a Decision is written by turns, because the state follows from it.
fn note(content: &str) -> Result<()> {
    let forged =
        |line: &str| ["## Decision:", "## Turn ", "- State:", "- Panel:"].iter().any(|start| line.starts_with(start));
    if content.lines().any(forged) {
        return Err(Error::forbidden("a Decision, its State and its Panel are written by turns; append a note"));
    }
    fits_page("a note", content)
}

/// Refuses a page that would leave a campaign that can be played unplayable, or a profile that is not read whole.
fn playable(files: &dyn ReadFiles, change: &Change) -> Result<()> {
    let Change::Write { path, text } = change else { return Ok(()) };
    if path == "PLAYER_PROFILE.md" && boot::preferences(text).count() > boot::MOST_PREFERENCES {
        let most = boot::MOST_PREFERENCES;
        return Err(Error::invalid(format!("PLAYER_PROFILE.md has at most {most} preferences")));
    }
    let mut work = Overlay { base: files, own: Files::new() };
    work.take(change)?;
    match (boot::uninitialised(files)?, boot::uninitialised(&work)?) {
        (None, Some(why)) => Err(Error::invalid(format!("{path} would leave the campaign unplayable: {why}"))),
        _ => Ok(()),
    }
}

/// The changes, and the two windows on the session as it will be.
fn with_windows(context: ActContext<'_>, session: &str, mut made: Vec<Change>) -> Result<Vec<Change>> {
    let mut work = Overlay { base: context.files, own: Files::new() };
    made.iter().try_for_each(|change| work.take(change))?;
    let whole = need(&work, session)?;
    made.extend(windows(session, &whole));
    Ok(made)
}

/// Tools that only look, in a campaign.
pub fn look(context: ActContext<'_>, call: &Call) -> Result<Value> {
    let arguments = &call.arguments;
    let open = |path: &str| -> Result<String> {
        let path = inside(path, context.campaign)?;
        if hidden(&path) {
            return Err(Error::forbidden(format!("{path} is not for reading")));
        }
        need(context.files, &path)
    };
    Ok(match call.name.as_str() {
        "read_file" => lines(&open(text(arguments, "path"))?, arguments),
        "read_hot_pack" => json::read("HOT_PACK.json", &need(context.files, "HOT_PACK.json")?)?,
        "read_state_panel" => json::read("STATE_PANEL.json", &need(context.files, "STATE_PANEL.json")?)?,
        "load_snapshot" => {
            let path = session::snapshot_path(&boot::current(context.files)?);
            json!({"snapshot_path": path, "snapshot": need(context.files, &path)?, "hot_pack": json::read("HOT_PACK.json", &need(context.files, "HOT_PACK.json")?)?})
        }
        "validate_no_new_facts" => {
            let (snapshot, pack) = (open(text(arguments, "snapshot_path"))?, open(text(arguments, "hot_pack_path"))?);
            let strangers = hotstart::new_facts(text(arguments, "load_output"), &snapshot, &pack);
            json!({"status": if strangers.is_empty() { "ok" } else { "violation" }, "violations": strangers})
        }
        "route_lookup" => {
            let head = text(arguments, "command_head").trim_matches(['[', ']', '【', '】']);
            let header = crate::input::Header::named(head);
            let routes: Vec<String> =
                header.map(|header| crate::fetch::route(context.world, header)).unwrap_or_default();
            let note = if routes.is_empty() { json!(format!("no route for [{head}]")) } else { Value::Null };
            json!({"routes": routes, "note": note})
        }
        "fetch_facts" => facts(context, arguments),
        other => return Err(Error::invalid(format!("{other} needs another place than a campaign"))),
    })
}

fn lines(text: &str, arguments: &Value) -> Value {
    let most = arguments["max_lines"].as_u64().unwrap_or(200) as usize;
    json!({"lines": text.lines().take(most).collect::<Vec<_>>()})
}

fn facts(context: ActContext<'_>, arguments: &Value) -> Value {
    let limit = arguments["limit"].as_u64().unwrap_or(12) as usize;
    let prefix = format!("cartridges/{}/", context.world.id);
    let (mut facts, mut missing) = (Vec::new(), Vec::new());
    for path in arguments["paths"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let own = path.strip_prefix(&prefix).unwrap_or(path);
        match context.world.files.get(own).filter(|_| !hidden(own)) {
            Some(text) => facts.extend(md::bullets(text).map(|line| md::clip(line, 80))),
            None => missing.push(path),
        }
    }
    facts.truncate(limit);
    json!({"facts": facts, "missing": missing})
}

/// The tools of the author of a cartridge: what they answer, and the file that they would leave.
pub fn author(cartridge: &dyn ReadFiles, call: &Call, own: &str) -> Result<(Value, Option<(String, String)>)> {
    let arguments = &call.arguments;
    let prefix = format!("cartridges/{own}/");
    let inside = |path: &str| -> Result<String> {
        let path = path.strip_prefix(&prefix).unwrap_or(path);
        let odd = path.is_empty()
            || path.starts_with('/')
            || path.split('/').any(|part| part.starts_with('.') || part.is_empty());
        if odd || path.starts_with("campaigns/") || path.starts_with("cartridges/") {
            return Err(Error::forbidden(format!("`{}` is not this cartridge's", md::clip(path, 80))));
        }
        Ok(path.to_owned())
    };
    let open = |key: &str| -> Result<(String, String)> {
        let path = inside(text(arguments, key))?;
        let page = need(cartridge, &path)?;
        Ok((path, page))
    };
    Ok(match call.name.as_str() {
        "read_file" => (lines(&open("path")?.1, arguments), None),
        "read_index" => {
            let page = open("path")?.1;
            let head = arguments["head_only"] == true;
            let shown: Vec<&str> = if head { index::head(&page) } else { page.lines().collect() };
            (json!({"lines": shown}), None)
        }
        "validate_index_spec" => {
            let missing = index::missing(&open("path")?.1);
            (json!({"status": if missing.is_empty() { "ok" } else { "missing" }, "missing": missing}), None)
        }
        "register_handle" => {
            let (path, page) = open("index_path")?;
            let aliases: Vec<String> = arguments["aliases"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            let world = load::cartridge(cartridge)?;
            let handle = text(arguments, "handle");
            let Some(kind) = load::kind_of_index(&path) else {
                return Err(Error::invalid(format!("{path} is no index of handles")));
            };
            // A row of the same index that has no alias yet may get them; nothing else may be named twice.
            if let Some(taken) = world.object(handle).filter(|own| own.kind != kind || own.path.is_some()) {
                return Err(Error::already_exists(format!(
                    "{handle} is {}: a handle belongs to one object",
                    taken.kind.article()
                )));
            }
            (json!({"status": "ok"}), Some((path, index::register(&page, handle, &aliases)?)))
        }
        "write_patch" => {
            let (path, page) = open("path")?;
            (json!({"status": "ok"}), Some((path, patched(&page, arguments)?)))
        }
        "generate_questionnaire" => (questionnaire(arguments), None),
        other => return Err(Error::invalid(format!("{other} is not a tool for a cartridge"))),
    })
}

/// The questions that must be settled before an author or a builder writes.
pub fn questionnaire(arguments: &Value) -> Value {
    let asked: &[&str] = match text(arguments, "role") {
        "AUTHOR" => &[
            "premise",
            "tone",
            "the one rule of this world",
            "two to four factions",
            "scale",
            "what must never happen",
        ],
        _ => &[
            "which cartridge",
            "the stage and three to six places",
            "two to four people",
            "the route",
            "two to four arcs",
            "the character",
            "the opening",
        ],
    };
    let count = arguments["count"].as_u64().unwrap_or(6) as usize;
    let mut lines = vec![format!("[Scope] {}", md::clip(text(arguments, "scope"), 200))];
    lines.extend(asked.iter().take(count).zip(1..).map(|(line, n)| format!("{n}. {line}?")));
    json!({"questions": lines})
}

/// Files with changes that are not made yet.
struct Overlay<'a> {
    base: &'a dyn ReadFiles,
    own: Files,
}

impl Overlay<'_> {
    fn take(&mut self, change: &Change) -> Result<()> {
        if let (Change::Append { path, .. }, false) = (change, self.own.contains_key(change.path())) {
            let before = self.base.read(path)?.unwrap_or_default();
            self.own.insert(path.clone(), before);
        }
        act::make(&mut self.own, std::slice::from_ref(change));
        Ok(())
    }
}

impl ReadFiles for Overlay<'_> {
    fn read(&self, path: &str) -> Result<Option<String>> {
        match self.own.get(path) {
            Some(text) => Ok(Some(text.clone())),
            None => self.base.read(path),
        }
    }

    fn paths(&self) -> Result<Vec<String>> {
        let mut all = self.base.paths()?;
        all.extend(self.own.keys().cloned());
        all.sort();
        all.dedup();
        Ok(all)
    }
}
