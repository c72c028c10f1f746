//! The changes of a view as a patch in the format of git, which `git apply` takes: new, removed and renamed files,
//! permissions, links, names with any character, and bytes that are no text.
//!
//! It is made by us and never by git inside the view: settings there would run programs.

mod binary;
mod text;

use std::path::Path;

use super::change::{Change, ChangeKind, Content, EntryType, Side};
use super::rel_path::{RelPath, quoted_name};
use super::walk::{Layers, below};
use acheron_base::{Code, Result};

/// A longer file is named in the patch and left out.
const LONGEST_FILE: u64 = 4 << 20;
/// A patch with more bytes ends with the number of files that it leaves out.
const LONGEST_PATCH: usize = 16 << 20;

/// The patch of these changes, in their order.
pub fn patch<'a>(layers: &Layers<'_>, changes: impl IntoIterator<Item = &'a Change>) -> Result<Vec<u8>> {
    let (mut out, mut left_out) = (Vec::new(), 0u64);
    for change in changes {
        if out.len() >= LONGEST_PATCH {
            left_out += 1;
            continue;
        }
        match one(layers, change, &mut out) {
            Ok(()) => (),
            // It is gone or another by now: the next reading tells.
            Err(error) if matches!(error.code, Code::NotFound | Code::Conflict) => (),
            Err(error) if error.code == Code::TooLarge => note(&mut out, change, "is too large for a patch"),
            Err(error) => return Err(error),
        }
    }
    if left_out > 0 {
        out.extend(format!("# {left_out} more changes are left out: the patch is too long\n").into_bytes());
    }
    Ok(out)
}

/// A line that git takes for a comment.
fn note(out: &mut Vec<u8>, change: &Change, why: &str) {
    let name = quoted_name(b"", change.path.bytes());
    out.extend([b"# ".as_slice(), &name, b" ", why.as_bytes(), b"\n"].concat());
}

fn one(layers: &Layers<'_>, change: &Change, out: &mut Vec<u8>) -> Result<()> {
    if change.whole {
        for (path, facts) in below(layers.base, &change.path.0)? {
            let side = Side::from(&facts);
            file(
                layers,
                FilePair {
                    path: &RelPath(path),
                    from: None,
                    before: Some(side),
                    after: None,
                    content: &change.content,
                },
                out,
            )?;
        }
        return Ok(());
    }
    let pair = FilePair {
        path: &change.path,
        from: change.from.as_ref().filter(|_| change.kind == ChangeKind::Renamed),
        before: change.before,
        after: change.after,
        content: &change.content,
    };
    file(layers, pair, out)
}

/// A file before and after.
struct FilePair<'a> {
    path: &'a RelPath,
    from: Option<&'a RelPath>,
    before: Option<Side>,
    after: Option<Side>,
    content: &'a Content,
}

/// The mode as git knows it: two kinds of files, and links.
fn git_mode(side: &Side) -> Option<u32> {
    match side.kind {
        EntryType::File if side.mode & 0o100 != 0 => Some(0o100_755),
        EntryType::File => Some(0o100_644),
        EntryType::Link => Some(0o120_000),
        EntryType::Dir | EntryType::Special => None,
    }
}

fn file(layers: &Layers<'_>, pair: FilePair<'_>, out: &mut Vec<u8>) -> Result<()> {
    let before = pair.before.as_ref().and_then(|side| Some((git_mode(side)?, side)));
    let after = pair.after.as_ref().and_then(|side| Some((git_mode(side)?, side)));
    // What becomes something else is removed and made again.
    if let (Some((was, _)), Some((is, _))) = (before, after)
        && was >> 12 != is >> 12
    {
        file(layers, FilePair { after: None, ..pair }, out)?;
        return file(layers, FilePair { before: None, from: None, ..pair }, out);
    }
    if before.is_none() && after.is_none() {
        return Ok(()); // git knows no directories
    }
    let longest = [before, after].into_iter().flatten().map(|(_, side)| side.size).max().unwrap_or(0);
    let moved_only = pair.from.is_some();
    let read = |root: &super::root::Root, path: &Path, side: &Side| root.read(path, side.kind, LONGEST_FILE);
    if longest > LONGEST_FILE && !moved_only {
        return Err(acheron_base::Error::too_large(format!("{} is too long", pair.path)));
    }
    let old_path = pair.from.unwrap_or(pair.path);
    let (old, new) = match moved_only {
        true => (Vec::new(), Vec::new()),
        false => {
            let old = before.map_or(Ok(Vec::new()), |(_, side)| read(layers.base, &old_path.0, side))?;
            let new = after.map_or(Ok(Vec::new()), |(_, side)| match pair.content {
                Content::Upper => read(layers.upper, &pair.path.0, side),
                Content::Base(from) => read(layers.base, from, side),
            })?;
            (old, new)
        }
    };
    let (a, b) = (quoted_name(b"a/", old_path.bytes()), quoted_name(b"b/", pair.path.bytes()));
    let mut head = Vec::new();
    let mut line = |parts: &[&[u8]]| {
        parts.iter().for_each(|part| head.extend_from_slice(part));
        head.push(b'\n');
    };
    line(&[b"diff --git ", &a, b" ", &b]);
    match (before, after) {
        (None, Some((mode, _))) => line(&[format!("new file mode {mode:o}").as_bytes()]),
        (Some((mode, _)), None) => line(&[format!("deleted file mode {mode:o}").as_bytes()]),
        (Some((was, _)), Some((is, _))) if was != is => {
            line(&[format!("old mode {was:o}").as_bytes()]);
            line(&[format!("new mode {is:o}").as_bytes()]);
        }
        _ => (),
    }
    if moved_only {
        line(&[b"similarity index 100%"]);
        line(&[b"rename from ", &quoted_name(b"", old_path.bytes())]);
        line(&[b"rename to ", &quoted_name(b"", pair.path.bytes())]);
        out.extend(head);
        return Ok(());
    }
    let was = before.map_or(binary::NOTHING.to_owned(), |_| binary::object_name(&old));
    let is = after.map_or(binary::NOTHING.to_owned(), |_| binary::object_name(&new));
    if old != new {
        let mode = before.zip(after).filter(|(a, b)| a.0 == b.0).map(|((mode, _), _)| format!(" {mode:o}"));
        line(&[format!("index {was}..{is}{}", mode.unwrap_or_default()).as_bytes()]);
    }
    out.extend(head);
    if old == new {
        return Ok(());
    }
    if text::is_text(&old) && text::is_text(&new) {
        let name = |there: bool, name: Vec<u8>| if there { name } else { b"/dev/null".to_vec() };
        let (a, b) = (name(before.is_some(), a), name(after.is_some(), b));
        // A name with a space ends with a tab, so that a date after it could be told apart.
        let end = |name: &[u8]| if name.contains(&b' ') && !name.starts_with(b"\"") { "\t\n" } else { "\n" };
        out.extend([b"--- ".as_slice(), &a, end(&a).as_bytes(), b"+++ ", &b, end(&b).as_bytes()].concat());
        text::hunks(&old, &new, out);
    } else {
        binary::literals(&old, &new, out);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
