//! Searching directories for lines, on ripgrep's own libraries. Knows no service and no agent.
//!
//! Files are opened through a [`ConfinedDir`] without links, so neither a link nor a swapped directory leads out or
//! past a rule, nothing crosses into what is mounted below, and a pipe blocks nothing. A link is followed only where
//! the query names it. Order and result do not depend on the machine.

use std::io::{self, Read};

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use schemars::JsonSchema;
use serde::Serialize;

use super::ignored::Ignored;
use super::scope::{Rights, covers, scopes, standing};
use super::sink::MatchSink;
use crate::spec::ProjectDir;
use acheron_base::confined_dir::{ConfinedDir, Kind};
use acheron_base::{Code, Error, Result, quoted};

const DEPTH: usize = 128;
/// The longest line in bytes; a file with a longer one is skipped.
const LONGEST_LINE: usize = 16 << 20;
/// The most matches that are counted beyond those that are shown.
const MAX_COUNTED: u64 = 10_000;
/// A longer regular expression is checked by the search itself, not while the caller waits for its write.
const QUICK_REGEX: usize = 256;
/// How many files lie between two reports.
const STRIDE: u64 = 256;

/// A search.
#[derive(Clone, Debug)]
pub struct CodeQuery {
    pub text: String,
    pub path: Option<String>,
    pub regex: bool,
    pub case_sensitive: bool,
    pub glob: Option<String>,
    pub context: usize,
    pub max_results: usize,
    /// The size of all matches together.
    pub max_bytes: usize,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Match")]
pub struct CodeMatch {
    /// Where the file stands in the tree.
    pub path: String,
    /// Counted from 1.
    pub line: u64,
    /// Of the first match in the line, in characters, counted from 1.
    pub column: u64,
    /// The line; of one that is very long the part around the match.
    pub text: String,
    pub before: Vec<String>,
    pub after: Vec<String>,
}

/// The matches of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct CodeMatches {
    pub matches: Vec<CodeMatch>,
    /// There was more than is shown.
    pub truncated: bool,
    /// How many more matches there are, counted up to 10,000.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    pub more: u64,
    pub files_searched: u64,
    /// Files and directories that could not be read, or whose name is not UTF-8.
    pub skipped: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Checks what the query alone tells, quickly.
pub fn check(query: &CodeQuery) -> Result<()> {
    query.glob.as_deref().map(Glob::parse).transpose()?;
    match query.regex && query.text.len() > QUICK_REGEX {
        true => Ok(()),
        false => matcher(query).map(drop),
    }
}

/// Callbacks of a running search.
pub struct SearchControl<'a> {
    /// Whether it should stop.
    pub stopped: &'a (dyn Fn() -> bool + Sync),
    /// The rights of the caller.
    pub rights: Rights<'a>,
    /// Told now and then: files searched, matches found.
    pub progress: &'a dyn Fn(u64, usize),
}

/// Searches the roots, or the part of them that the query names.
pub fn search(roots: &[ProjectDir], query: &CodeQuery, watch: &SearchControl) -> Result<CodeMatches> {
    let scopes = scopes(roots, query.path.as_deref())?;
    let mut search = CodeSearch {
        roots,
        query,
        watch,
        matcher: matcher(query)?,
        glob: query.glob.as_deref().map(Glob::parse).transpose()?,
        searcher: SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .before_context(query.context)
            .after_context(query.context)
            .heap_limit(Some(LONGEST_LINE))
            .build(),
        bytes: query.max_bytes,
        found: CodeMatches::default(),
    };
    let (mut exists, mut refused) = (false, None);
    for (root, rel) in scopes {
        let source = root.source().ok_or_else(|| Error::unavailable(format!("{} is not bound", root.path_of(""))))?;
        let place = ConfinedDir::found(&source).map_err(|err| err.about(root.path_of("")))?.without_links();
        match search.scope(root, &place, &rel) {
            Ok(there) => exists |= there,
            // A path below each of several roots may be meant for another one.
            Err(err) if err.code == Code::Forbidden => refused = Some(err),
            Err(err) => return Err(err),
        }
        if search.found.more >= MAX_COUNTED {
            break;
        }
    }
    match (exists, refused, &query.path) {
        (true, _, _) | (false, None, None) => Ok(search.found),
        (false, Some(refused), _) => Err(refused),
        (false, None, Some(path)) => Err(Error::not_found(format!("there is no {path} in this agent's projects"))),
    }
}

struct CodeSearch<'a> {
    roots: &'a [ProjectDir],
    query: &'a CodeQuery,
    watch: &'a SearchControl<'a>,
    matcher: RegexMatcher,
    glob: Option<Glob>,
    searcher: Searcher,
    /// The bytes by which the answer may still grow.
    bytes: usize,
    found: CodeMatches,
}

impl CodeSearch<'_> {
    /// Searches below `rel`, or the one file of that name, which is then searched whatever the rules say.
    fn scope(&mut self, root: &ProjectDir, place: &ConfinedDir, rel: &str) -> Result<bool> {
        let Some(rel) = standing(self.roots, root, place, rel, &self.watch.rights)? else { return Ok(false) };
        let kind = match place.stat(&rel) {
            Ok(entry) => entry.kind,
            Err(err) if matches!(err.code, Code::NotFound | Code::Os(libc::ENOTDIR)) => return Ok(false),
            Err(err) => return Err(err),
        };
        if kind == Kind::File {
            self.file(root, place, &rel)?;
            return Ok(true);
        }
        let mut ignored = Ignored::default();
        for (end, _) in rel.match_indices('/') {
            self.enter(&mut ignored, root, place, &rel[..end]);
        }
        if !rel.is_empty() {
            self.enter(&mut ignored, root, place, "");
        }
        self.directory(root, place, &rel, &mut ignored, 0)?;
        Ok(true)
    }

    /// Reads the ignore rules of a directory, as far as the caller may see them.
    fn enter(&self, ignored: &mut Ignored, root: &ProjectDir, place: &ConfinedDir, rel: &str) -> usize {
        ignored.enter(place, rel, &|file| (self.watch.rights.sees)(&root.path_of(file), false))
    }

    fn directory(
        &mut self,
        root: &ProjectDir,
        place: &ConfinedDir,
        rel: &str,
        ignored: &mut Ignored,
        depth: usize,
    ) -> Result<()> {
        let (names, unnamed) = match place.names_and_rest(rel) {
            Ok(names) => names,
            Err(err) => {
                // Something else is mounted there, perhaps this very tree: that is no part of the project.
                self.found.skipped += u64::from(err.code != Code::Forbidden);
                return Ok(());
            }
        };
        // A path is UTF-8 text, so these files have none.
        self.found.skipped += unnamed;
        let entered = self.enter(ignored, root, place, rel);
        for (name, kind) in names {
            let path = if rel.is_empty() { name } else { format!("{rel}/{name}") };
            let at = root.path_of(&path);
            if self.found.more >= MAX_COUNTED {
                break;
            }
            // A directory covered by another bind is searched as a root of its own.
            let passed = ignored.is(&path, kind == Kind::Dir) || covers(root, self.roots, &path);
            if passed || !(self.watch.rights.may_read)(&at) {
                continue;
            }
            match kind {
                Kind::Dir if depth < DEPTH => self.directory(root, place, &path, ignored, depth + 1)?,
                Kind::Dir => self.found.skipped += 1,
                Kind::File if self.glob.as_ref().is_none_or(|glob| glob.takes(&path)) => {
                    self.file(root, place, &path)?;
                }
                _ => {}
            }
        }
        ignored.leave(entered);
        Ok(())
    }

    fn file(&mut self, root: &ProjectDir, place: &ConfinedDir, rel: &str) -> Result<()> {
        if (self.watch.stopped)() {
            return Err(Error::cancelled("the search was stopped"));
        }
        let Ok(file) = place.file(rel) else {
            self.found.skipped += 1;
            return Ok(());
        };
        let path = root.path_of(rel);
        let room = self.query.max_results - self.found.matches.len();
        let counted = MAX_COUNTED - self.found.more;
        // After the first match without room, later ones that would fit are only counted: the answer is the beginning.
        let room = if self.found.truncated { 0 } else { room };
        let mut gather = MatchSink::new(&path, &self.matcher, self.query.context, room, self.bytes);
        gather.counted = counted;
        let reader = Stoppable { file, stopped: self.watch.stopped };
        let searched = self.searcher.search_reader(&self.matcher, reader, &mut gather);
        if (self.watch.stopped)() {
            return Err(Error::cancelled("the search was stopped"));
        }
        self.found.files_searched += 1;
        if searched.is_err() {
            self.found.skipped += 1;
        } else if !gather.binary {
            self.bytes = gather.bytes;
            self.found.truncated |= gather.more > 0;
            self.found.more += gather.more;
            self.found.matches.extend(gather.found);
        }
        if self.found.files_searched % STRIDE == 1 {
            (self.watch.progress)(self.found.files_searched, self.found.matches.len());
        }
        Ok(())
    }
}

/// A file whose reading ends when the search is stopped, however large it is.
struct Stoppable<'a> {
    file: std::fs::File,
    stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.stopped)() {
            true => Err(io::Error::other("stopped")),
            false => self.file.read(buffer),
        }
    }
}

fn matcher(query: &CodeQuery) -> Result<RegexMatcher> {
    if query.text.is_empty() {
        return Err(Error::invalid("query must not be empty"));
    }
    if query.text.contains('\n') {
        return Err(Error::invalid("query must be a single line: lines are searched one by one"));
    }
    let built = RegexMatcherBuilder::new()
        .case_insensitive(!query.case_sensitive)
        .fixed_strings(!query.regex)
        .line_terminator(Some(b'\n'))
        .size_limit(10 << 20)
        .dfa_size_limit(10 << 20)
        .build(&query.text);
    built.map_err(|err| {
        let said = err.to_string();
        let reason = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Error::invalid(format!(
            "query is not a regular expression: {reason}; without \"regex\": true it is taken literally"
        ))
    })
}

/// Which files: by their name, or by their path if the pattern has a slash; `!` turns it round.
struct Glob {
    matcher: GlobMatcher,
    whole: bool,
    not: bool,
}

impl Glob {
    fn parse(text: &str) -> Result<Glob> {
        let (not, pattern) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let whole = pattern.contains('/');
        let built = GlobBuilder::new(pattern.trim_start_matches('/')).literal_separator(true).build();
        let glob = built.map_err(|err| Error::invalid(format!("glob {} is none: {}", quoted(text), err.kind())))?;
        Ok(Glob { matcher: glob.compile_matcher(), whole, not })
    }

    fn takes(&self, rel: &str) -> bool {
        let name = rel.rsplit('/').next().unwrap_or(rel);
        self.matcher.is_match(if self.whole { rel } else { name }) != self.not
    }
}
