//! What the base was when the view last took it over: type, permissions, size, time and inode of every path. A path that the
//! view has changed keeps its line, so that a later change of the base under it is found; every other line follows the base.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::change::EntryType;
use super::root::{EntryFacts, Root, hash_of};
use acheron_base::{Error, Result};

/// A base with more names cannot have a view.
pub const MOST_NAMES: usize = 2_000_000;

/// What is remembered of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestLine {
    pub kind: EntryType,
    pub mode: u32,
    pub size: u64,
    pub modified_ns: i64,
    pub inode: u64,
    /// The SHA-256 of a file that the view has changed, once it was seen.
    pub hash: Option<String>,
}

impl ManifestLine {
    /// Whether this is still there, as far as the attributes tell. Of a directory only that it is one counts.
    fn same_attributes(&self, facts: &EntryFacts) -> bool {
        self.kind == facts.kind
            && (self.kind == EntryType::Dir
                || (self.mode, self.size, self.modified_ns, self.inode)
                    == (facts.mode, facts.size, facts.modified_ns, facts.inode))
    }
}

impl From<&EntryFacts> for ManifestLine {
    fn from(facts: &EntryFacts) -> ManifestLine {
        let EntryFacts { kind, mode, size, modified_ns, inode, .. } = *facts;
        ManifestLine { kind, mode, size, modified_ns, inode, hash: None }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    lines: BTreeMap<PathBuf, ManifestLine>,
}

impl Manifest {
    /// Reads a base. What `skip` names is not a part of it.
    pub fn scan(base: &Root, skip: &[PathBuf]) -> Result<Manifest> {
        let mut lines = BTreeMap::new();
        let mut open = vec![PathBuf::new()];
        while let Some(dir) = open.pop() {
            for (name, facts) in base.list(&dir)? {
                let path = dir.join(name);
                if skip.contains(&path) {
                    continue;
                }
                if facts.is_dir() {
                    open.push(path.clone());
                }
                lines.insert(path, ManifestLine::from(&facts));
            }
            if lines.len() > MOST_NAMES {
                let base = base.path().display();
                return Err(Error::too_large(format!("{base} has more than {MOST_NAMES} names, too many for a view")));
            }
        }
        Ok(Manifest { lines })
    }

    pub fn get(&self, path: &Path) -> Option<&ManifestLine> {
        self.lines.get(path)
    }

    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The paths below a directory.
    pub fn below<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = (&'a PathBuf, &'a ManifestLine)> {
        self.lines
            .range(dir.to_owned()..)
            .skip_while(move |(path, _)| *path == dir)
            .take_while(move |(path, _)| path.starts_with(dir))
    }

    /// Follows the base, but for the paths for which `keep` is true: those have their line from before. Returns what was a file
    /// or a link before and is something else now.
    pub fn follow(&mut self, now: Manifest, keep: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let before = std::mem::replace(&mut self.lines, now.lines);
        let other =
            |path: &Path, line: &ManifestLine| line.kind != EntryType::Dir && self.lines.get(path) != Some(line);
        let changed = before.iter().filter(|(path, line)| other(path, line) && !keep(path));
        let changed = changed.map(|(path, _)| path.clone()).collect();
        self.lines.retain(|path, _| !keep(path));
        self.lines.extend(before.into_iter().filter(|(path, _)| keep(path)));
        changed
    }

    /// Takes over what the base has at a path now.
    pub fn take(&mut self, base: &Root, path: &Path) -> Result<()> {
        match base.facts(path)? {
            Some(facts) => self.lines.insert(path.to_owned(), ManifestLine::from(&facts)),
            None => self.lines.remove(path),
        };
        Ok(())
    }

    /// Remembers the bytes of a file that the view has changed and the base has not.
    pub fn remember_bytes(&mut self, base: &Root, path: &Path) -> Result<bool> {
        let Some(line) = self.lines.get_mut(path).filter(|line| line.kind == EntryType::File && line.hash.is_none())
        else {
            return Ok(false);
        };
        let Some(facts) = base.facts(path)?.filter(|facts| line.same_attributes(facts)) else { return Ok(false) };
        let hash = hash_of(base.open_file(path)?)?;
        if base.facts(path)? == Some(facts) {
            line.hash = Some(hash);
        }
        Ok(line.hash.is_some())
    }

    /// Whether the base still has at `path` what the view has taken over.
    pub fn holds(&self, base: &Root, path: &Path) -> Result<bool> {
        match (self.lines.get(path), base.facts(path)?) {
            (None, None) => Ok(true),
            (Some(line), Some(facts)) if line.same_attributes(&facts) => Ok(true),
            (Some(line), Some(facts)) => match &line.hash {
                // Written again with the same bytes, as git does when a branch comes back.
                Some(hash) if facts.kind == EntryType::File && facts.size == line.size && facts.mode == line.mode => {
                    Ok(hash_of(base.open_file(path)?)? == *hash)
                }
                _ => Ok(false),
            },
            _ => Ok(false),
        }
    }

    /// Writes it to a file, complete or not at all.
    pub fn save(&self, file: &Path) -> Result<()> {
        let told = |err: std::io::Error| Error::from(err).about(file.display());
        let beside = file.with_extension("new");
        let mut out = BufWriter::new(fs::File::create(&beside).map_err(told)?);
        let write = |out: &mut BufWriter<fs::File>| {
            for (path, line) in &self.lines {
                let kind = match line.kind {
                    EntryType::File => 'f',
                    EntryType::Dir => 'd',
                    EntryType::Link => 'l',
                    EntryType::Special => 's',
                };
                let hash = line.hash.as_deref().unwrap_or("-");
                write!(out, "{kind} {:o} {} {} {} {hash} ", line.mode, line.size, line.modified_ns, line.inode)?;
                out.write_all(path.as_os_str().as_bytes())?;
                out.write_all(&[0])?;
            }
            out.flush()?;
            out.get_ref().sync_all()
        };
        write(&mut out).and_then(|()| fs::rename(&beside, file)).map_err(told)
    }

    pub fn load(file: &Path) -> Result<Manifest> {
        let bytes = fs::read(file).map_err(|err| Error::from(err).about(file.display()))?;
        let mut lines = BTreeMap::new();
        for record in bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            let (path, line) =
                parsed(record).ok_or_else(|| Error::invalid(format!("{} is damaged", file.display())))?;
            lines.insert(path, line);
        }
        Ok(Manifest { lines })
    }
}

fn parsed(record: &[u8]) -> Option<(PathBuf, ManifestLine)> {
    let mut words = record.splitn(7, |byte| *byte == b' ');
    let mut next = || words.next().and_then(|word| std::str::from_utf8(word).ok());
    let kind = match next()? {
        "f" => EntryType::File,
        "d" => EntryType::Dir,
        "l" => EntryType::Link,
        _ => EntryType::Special,
    };
    let mode = u32::from_str_radix(next()?, 8).ok()?;
    let (size, modified_ns, inode) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
    let hash = Some(next()?.to_owned()).filter(|hash| hash != "-");
    let path = PathBuf::from(OsString::from_vec(words.next()?.to_vec()));
    Some((path, ManifestLine { kind, mode, size, modified_ns, inode, hash }))
}

#[cfg(test)]
mod tests;
