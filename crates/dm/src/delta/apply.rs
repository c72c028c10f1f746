//! Turns a delta into changes of files. It reads the campaign and writes nothing.

use sha2::{Digest, Sha256};

use super::{Delta, DeltaItem, What, panels};
use crate::files::{Files, ReadFiles};
use crate::{json, md};
use acheron_base::{Error, Result};

/// A change of one file of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Write {
        path: String,
        text: String,
    },
    Append {
        path: String,
        text: String,
    },
    /// Leaves the first bytes: how an append is undone.
    Cut {
        path: String,
        length: usize,
    },
    Remove {
        path: String,
    },
}

impl Change {
    pub fn path(&self) -> &str {
        match self {
            Change::Write { path, .. }
            | Change::Append { path, .. }
            | Change::Cut { path, .. }
            | Change::Remove { path } => path,
        }
    }
}

/// Whose delta it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The kernel's own, at the end of a turn.
    Kernel,
    /// A narrator's: everything that the kernel writes itself is closed to it.
    Narrator,
}

/// The most bytes of a page that a narrator or a tool writes.
pub const PAGE: usize = 8 << 10;
/// The most pages in one folder of a narrator.
const PAGES: usize = 64;
/// The folders in which a narrator keeps pages.
const NARRATORS: [&str; 2] = ["characters/NPCs_active/", "notes/"];

/// The folder of a page that is a narrator's to write: the people whom it files, and its notes.
fn narrators(path: &str) -> Option<&'static str> {
    let folder = NARRATORS.into_iter().find(|folder| path.starts_with(folder))?;
    let name = &path[folder.len()..];
    let page = name.ends_with(".md") && !name.contains('/') && !name.starts_with('.');
    (page && name != "npc_roster.md").then_some(folder)
}

/// Checks that a page is not too long.
pub fn fits_page(path: &str, text: &str) -> Result<()> {
    crate::md::plain(path, text)?;
    match text.len() {
        ..=PAGE => Ok(()),
        size => {
            Err(Error::too_large(format!("{path} would have {size} bytes; a page has at most {PAGE}: say it shorter")))
        }
    }
}

/// The first 16 digits of a text's SHA-256.
pub fn sum(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A path inside the campaign, or the reason why it is none.
pub fn path(raw: &str, campaign: &str) -> Result<String> {
    let own = raw.strip_prefix(&format!("campaigns/{campaign}/")).unwrap_or(raw);
    let odd = own.is_empty() || own.len() > 200 || own.contains(['\\', '\0', '\n']);
    if odd || own.starts_with('/') || own.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(Error::forbidden(format!("`{}` leads out of the campaign", md::clip(raw, 80))));
    }
    if own.starts_with("cartridges/") || own.starts_with("campaigns/") || own.starts_with("engine/") {
        return Err(Error::forbidden(format!("{own} is not the campaign's: a turn does not write there")));
    }
    Ok(own.to_owned())
}

fn open_to(author: Author, item: &DeltaItem, path: &str, session: &str) -> Result<()> {
    let closed = |why: &str| Err(Error::forbidden(format!("{path} {why}")));
    let is_session = path.starts_with("sessions/session_");
    if is_session && matches!(item.what, What::Patch { .. }) {
        return closed("is a session, which takes appends only");
    }
    if is_session && path != session {
        return closed("is not the current session");
    }
    if path.split('/').any(|part| part.starts_with('.')) || path.starts_with("Writing/") || path == "CAMPAIGN.md" {
        return closed("is not written in a turn");
    }
    if author == Author::Narrator && narrators(path).is_none() {
        return closed(
            "is written by the kernel, not by a narrator: that writes characters/NPCs_active/<name>.md and notes/<name>.md",
        );
    }
    Ok(())
}

/// The changes of a delta, in its order. Fails as a whole.
pub fn changes(
    delta: &Delta,
    files: &dyn ReadFiles,
    campaign: &str,
    session: &str,
    author: Author,
) -> Result<Vec<Change>> {
    // Two items of one file build on each other.
    let mut work = Files::new();
    let mut out: Vec<Change> = Vec::new();
    for item in &delta.items {
        let path = path(&item.path, campaign)?;
        open_to(author, item, &path, session)?;
        let before = match work.get(&path) {
            Some(text) => Some(text.clone()),
            None => files.read(&path)?,
        };
        if let Some(base) = item.base.as_ref().filter(|base| **base != sum(before.as_deref().unwrap_or_default())) {
            return Err(Error::conflict(format!("{path} changed since the delta was made (base {base})")));
        }
        let after = match &item.what {
            What::Append(text) => {
                if path.ends_with(".json") {
                    return Err(Error::invalid(format!("{path} is JSON: it is patched, not appended to")));
                }
                if before.is_none() {
                    room(&path, files, &work)?;
                }
                let before = before.unwrap_or_default();
                let start = md::ended(&before);
                let gap = if start.is_empty() || start.ends_with("\n\n") { "" } else { "\n" };
                let after = format!("{start}{gap}{}", md::ended(text));
                if author == Author::Narrator {
                    fits_page(&path, &after)?;
                }
                out.push(Change::Append { path: path.clone(), text: after[before.len()..].to_owned() });
                work.insert(path, after);
                continue;
            }
            What::Patch { text, create } => patched(&path, before, text, *create)?,
        };
        if author == Author::Narrator {
            fits_page(&path, &after)?;
        }
        work.insert(path.clone(), after.clone());
        out.retain(|change| change.path() != path);
        out.push(Change::Write { path, text: after });
    }
    Ok(out)
}

/// Whether a page may be begun by appending to it: only a narrator's, and not more than its folder holds.
fn room(path: &str, files: &dyn ReadFiles, work: &Files) -> Result<()> {
    let folder = narrators(path).ok_or_else(|| Error::not_found(format!("there is no {path} to append to")))?;
    let mut pages = files.paths()?;
    pages.extend(work.keys().cloned());
    pages.retain(|own| own.starts_with(folder));
    pages.sort();
    pages.dedup();
    match pages.len() {
        ..PAGES => Ok(()),
        _ => Err(Error::too_large(format!("{folder} holds {PAGES} pages already: append to one of them"))),
    }
}

fn patched(path: &str, before: Option<String>, text: &str, create: bool) -> Result<String> {
    let before = before.ok_or_else(|| Error::not_found(format!("there is no {path} to patch")))?;
    if path.ends_with(".json") {
        let mut panel = json::read(path, &before)?;
        let patch = json::read(&format!("the patch of {path}"), text)?;
        if !patch.is_object() {
            return Err(Error::invalid(format!("the patch of {path} must be an object")));
        }
        json::merge(&mut panel, &patch);
        panels::check(path, &panel)?;
        return Ok(json::render(&panel));
    }
    if path.ends_with("CURRENT_SESSION.md") {
        let line = text.trim();
        return match line.contains('\n') {
            true => Err(Error::invalid("CURRENT_SESSION.md is one line")),
            false => Ok(format!("{line}\n")),
        };
    }
    md::patch_section(&before, text, create)
}

/// Refuses a delta that forgets what every move must leave behind.
pub fn complete(delta: &Delta, session: &str) -> Result<()> {
    let appends = delta.items.iter().any(|item| item.path == session && matches!(item.what, What::Append(_)));
    let packs = delta.items.iter().any(|item| item.path == "HOT_PACK.json");
    match (appends, packs) {
        (true, true) => Ok(()),
        (false, _) => Err(Error::invalid(format!("required set incomplete: nothing is appended to {session}"))),
        (_, false) => Err(Error::invalid("required set incomplete: HOT_PACK.json is not patched")),
    }
}

#[cfg(test)]
mod tests;
