//! Decides about a proposal: all of it, or sentences that say what is wrong. A pure function; the same one decides when a run is
//! proposed and when it is applied.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::addresses::addresses;
use super::blocks::{BlockKind, blocks, fence_mark};
use super::proposal::{Citation, ProposedPage, RemovedLine, SleepProposal};
use crate::graph::Broken;
use crate::index::{Index, Page};
use crate::links::links;
use crate::page::{Class, body, check_path, check_text, is_hidden, title};
use crate::resolve::{path_of, spellings};
use acheron_base::quoted;
use acheron_base::words::telling;

/// The shortest quotation, unless the message is shorter, and the longest, in characters.
const QUOTE: usize = 12;
const LONGEST_QUOTE: usize = 1000;
/// The longest heading, reason and line of front matter, in bytes.
const SHORT: usize = 240;
/// A heading or another name of a page of more words than this must be made of words that are known.
const FREE_WORDS: usize = 2;

/// The wiki as it is now.
pub struct WikiView<'a> {
    pub index: &'a Index,
    /// The text of a page, if there is one at this path.
    pub page: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a message at this path that may be cited, if there is one.
    pub message: &'a dyn Fn(&str) -> Option<String>,
}

/// The limits of one proposal.
#[derive(Clone, Copy, Debug)]
pub struct SleepLimits {
    pub pages: usize,
    /// Of one page, unless it was longer before.
    pub page_bytes: usize,
}

impl Default for SleepLimits {
    fn default() -> Self {
        SleepLimits { pages: 64, page_bytes: 64 << 10 }
    }
}

/// A change of one page that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SleepChange {
    pub path: String,
    /// Nothing for a new page.
    pub before: Option<String>,
    pub after: String,
    pub added: Vec<AddedBlock>,
    pub removed: Vec<RemovedLine>,
}

/// What a page gains, and from where it is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddedBlock {
    /// The number of its first new line.
    pub line: usize,
    pub text: String,
    pub citations: Vec<Citation>,
}

/// Checks a proposal whose citations are paths. Pages that would not change are left out.
pub fn validate(
    proposal: &SleepProposal,
    view: &WikiView<'_>,
    limits: &SleepLimits,
) -> Result<Vec<SleepChange>, Vec<String>> {
    if proposal.pages.len() > limits.pages {
        return Err(vec![format!(
            "{} pages are proposed, and at most {} are taken",
            proposal.pages.len(),
            limits.pages
        )]);
    }
    let (mut changes, mut faults, mut paths) = (Vec::new(), Vec::new(), BTreeSet::new());
    for page in &proposal.pages {
        if !paths.insert(crate::page::fold(&page.path)) {
            faults.push(format!("{} is proposed twice", quoted(&page.path)));
            continue;
        }
        match PageCheck::new(page, view).run(view, limits) {
            Ok(change) if change.before.as_ref() == Some(&change.after) => {}
            Ok(change) => changes.push(change),
            Err(mut found) => faults.append(&mut found),
        }
    }
    if faults.is_empty() {
        faults = whole(&changes, view.index);
    }
    if faults.is_empty() { Ok(changes) } else { Err(faults) }
}

/// Faults of the wiki as it would be: links that lead nowhere, pages that nothing leads to.
fn whole(changes: &[SleepChange], before: &Index) -> Vec<String> {
    let mut after = before.clone();
    for change in changes {
        after.put(Page::of(&change.path, &change.after, change.after.len() as u64, 0));
    }
    let key = |it: &Broken| (it.page.clone(), it.link.link.clone());
    let known: BTreeSet<_> = before.broken().iter().map(key).collect();
    let mut faults = Vec::new();
    for broken in after.broken().iter().filter(|it| !known.contains(&key(it))) {
        let why = broken.link.code.unwrap_or("not_found");
        faults.push(format!("{}: the link {} leads nowhere ({why})", broken.page, quoted(&broken.link.link)));
    }
    let alone: BTreeSet<String> = before.orphans().into_iter().collect();
    for path in after.orphans().iter().filter(|path| !alone.contains(*path)) {
        faults.push(format!("no page leads to {path}: link it from index.md or from a page near it"));
    }
    faults
}

/// The check of one page.
struct PageCheck<'a> {
    page: &'a ProposedPage,
    before: Option<String>,
    after: String,
    faults: Vec<String>,
}

impl<'a> PageCheck<'a> {
    fn new(page: &'a ProposedPage, view: &WikiView<'_>) -> PageCheck<'a> {
        let before = check_path(&page.path).ok().and_then(|()| (view.page)(&page.path));
        PageCheck { page, before, after: format!("{}\n", page.text.trim_end()), faults: Vec::new() }
    }

    fn fault(&mut self, what: impl std::fmt::Display) {
        self.faults.push(format!("{}: {what}", quoted(&self.page.path)));
    }

    fn run(mut self, view: &WikiView<'_>, limits: &SleepLimits) -> Result<SleepChange, Vec<String>> {
        if let Err(error) = self.path(view.index) {
            return Err(vec![error]);
        }
        if let Err(error) = check_text(self.after.as_bytes()) {
            self.fault(error.message);
        }
        let most = limits.page_bytes.max(self.before.as_ref().map_or(0, String::len));
        if self.after.len() > most {
            self.fault(format!("a page of {} bytes is too long: at most {most}; split it", self.after.len()));
        }
        if self.page.text.trim().is_empty() {
            self.fault("a page is not emptied: nobody asked for that");
        }
        if !self.faults.is_empty() {
            return Err(self.faults);
        }
        let cited = self.citations(view);
        let (before, after) = (self.before.clone().unwrap_or_default(), self.after.clone());
        let new = new_lines(&before, &after);
        self.lines(&new, &cited);
        self.code(&new, &cited);
        self.front(&new, &cited, view.index);
        let added = self.blocks(&new, &cited);
        let removed = self.removed(&before);
        match self.faults.is_empty() {
            true => {
                Ok(SleepChange { path: self.page.path.clone(), before: self.before, after: self.after, added, removed })
            }
            false => Err(self.faults),
        }
    }

    fn path(&self, index: &Index) -> Result<(), String> {
        let path = &self.page.path;
        check_path(path).map_err(|error| error.message)?;
        if !matches!(Class::of(path), Class::Node | Class::Index) {
            return Err(format!("{}: only pages of knowledge are changed", quoted(path)));
        }
        if self.before.is_none() && index.page(path).is_some() {
            return Err(format!("{}: it is there, and cannot be read", quoted(path)));
        }
        let same = index.titled_folded(title(path)).find(|other| other.as_ref() != path.as_str());
        match same.filter(|other| !Class::of(other).excluded()) {
            Some(other) if self.before.is_none() => {
                Err(format!("{}: there is a page {other} with that title already: change that one", quoted(path)))
            }
            _ => Ok(()),
        }
    }

    /// The cited messages by their paths; faults for those that are not there or do not have the words.
    fn citations(&mut self, view: &WikiView<'_>) -> BTreeMap<String, String> {
        let mut cited = BTreeMap::new();
        for citation in &self.page.citations {
            let Some(text) = (view.message)(&citation.message) else {
                self.fault(format!("{} is no message of a transcript", quoted(&citation.message)));
                continue;
            };
            let (quote, said) = (one_line(&citation.quote), one_line(&text));
            let length = quote.chars().count();
            if length < QUOTE.min(said.chars().count()) || length > LONGEST_QUOTE {
                self.fault(format!("a quotation has {QUOTE} to {LONGEST_QUOTE} characters: {}", quoted(&quote)));
            } else if !said.contains(&quote) {
                self.fault(format!("the words {} do not stand in {}", quoted(&quote), citation.message));
            } else {
                cited.insert(citation.message.clone(), text);
            }
        }
        cited
    }

    /// Signs and addresses of the new lines.
    fn lines(&mut self, new: &BTreeMap<usize, &str>, cited: &BTreeMap<String, String>) {
        let front = self.after.lines().count() - body(&self.after).lines().count();
        for (number, line) in new {
            if let Some(sign) = line.chars().find(|c| is_hidden(*c)) {
                self.fault(format!("line {number} has the sign U+{:04X}, which nobody sees", sign as u32));
            }
            for address in addresses(line) {
                if !cited.values().any(|said| said.contains(address)) {
                    self.fault(format!("line {number}: the address {} stands in no cited message", quoted(address)));
                }
            }
            if *number > front && is_unseen(line) {
                self.fault(format!("line {number} has a comment or a definition, which no reader sees"));
            }
        }
    }

    /// Code is taken word for word from a cited message: nobody proves a command by a citation beside it.
    fn code(&mut self, new: &BTreeMap<usize, &str>, cited: &BTreeMap<String, String>) {
        let after = self.after.clone();
        for (number, line) in fenced(&after) {
            if new.contains_key(&number) && !cited.values().any(|said| said.contains(line.trim())) {
                self.fault(format!("line {number}: the code {} stands in no cited message", quoted(line.trim())));
            }
        }
    }

    /// The new lines of front matter: times, and other names that no other page has.
    fn front(&mut self, new: &BTreeMap<usize, &str>, cited: &BTreeMap<String, String>, index: &Index) {
        let front = self.after.lines().count() - body(&self.after).lines().count();
        for (number, line) in new.range(..=front) {
            let names = line.strip_prefix("aliases:").or_else(|| line.trim_start().strip_prefix("- "));
            let time = ["created:", "updated:"].iter().find_map(|key| line.strip_prefix(key));
            match (names, time) {
                _ if *line == "---" => (),
                (Some(names), _) if line.len() <= SHORT => self.names(*number, names, cited, index),
                (None, Some(time)) if is_time(time) => (),
                _ => self.fault(format!(
                    "line {number}: front matter holds created, updated (times) and aliases, and nothing else"
                )),
            }
        }
    }

    fn names(&mut self, number: usize, names: &str, cited: &BTreeMap<String, String>, index: &Index) {
        let path = self.page.path.clone();
        for name in names.split([',', '[', ']']).map(|name| name.trim().trim_matches(['"', '\''])) {
            let other = index.titled_folded(name).find(|other| other.as_ref() != path.as_str());
            if let Some(other) = other.map(|other| other.to_string()) {
                self.fault(format!("line {number}: the name {} belongs to {other}", quoted(name)));
            } else if !self.is_known(name, cited) {
                self.fault(format!("line {number}: the words of {} stand in no cited message", quoted(name)));
            }
        }
    }

    /// Whether a name or heading is short, or its words stand in a cited message, the title or the page as it was.
    fn is_known(&self, words: &str, cited: &BTreeMap<String, String>) -> bool {
        let sources = cited.values().map(String::as_str).chain([title(&self.page.path)]).chain(self.before.as_deref());
        let known: BTreeSet<String> = sources.flat_map(telling).collect();
        words.split_whitespace().count() <= FREE_WORDS || telling(words).iter().all(|word| known.contains(word))
    }

    /// The blocks with new lines, each with what it cites.
    fn blocks(&mut self, new: &BTreeMap<usize, &str>, cited: &BTreeMap<String, String>) -> Vec<AddedBlock> {
        let mut by_line: HashMap<usize, Vec<String>> = HashMap::new();
        for link in links(&self.page.path, &self.after) {
            let target = spellings(&link.target).last().and_then(|target| path_of(target).ok());
            by_line.entry(link.line).or_default().extend(target.filter(|path| cited.contains_key(path)));
        }
        let after = self.after.clone();
        let text = body(&after);
        let first = after.lines().count() - text.lines().count() + 1;
        let mut added = Vec::new();
        for block in blocks(text, first) {
            let lines: Vec<(usize, &str)> = block.lines.into_iter().filter(|(at, _)| new.contains_key(at)).collect();
            let Some((line, _)) = lines.first().copied() else { continue };
            let used: BTreeSet<&String> = lines.iter().filter_map(|(at, _)| by_line.get(at)).flatten().collect();
            let words: Vec<&str> = lines.iter().map(|(_, line)| *line).collect();
            let words = words.join("\n");
            match block.kind {
                BlockKind::Heading if words.len() > SHORT => {
                    self.fault(format!("line {line}: a heading has at most {SHORT} bytes"));
                }
                BlockKind::Heading if !self.is_known(words.trim_start_matches('#'), cited) => {
                    self.fault(format!("line {line}: the words of {} stand in no cited message", quoted(&words)));
                }
                BlockKind::Claim if used.is_empty() => {
                    self.fault(format!("line {line} is new and has no citation: {}", quoted(&words)));
                }
                _ => {}
            }
            let citations = self.page.citations.iter().filter(|citation| used.contains(&citation.message)).cloned();
            added.push(AddedBlock { line, text: words.clone(), citations: citations.collect() });
        }
        added
    }

    /// The lines that go, each with its reason.
    fn removed(&mut self, before: &str) -> Vec<RemovedLine> {
        let gone = new_lines(&self.after, before);
        let mut listed = self.page.removed.clone();
        let mut removed = Vec::new();
        for line in gone.values() {
            let place = listed.iter().position(|it| it.line.trim() == line.trim());
            match place.map(|place| listed.swap_remove(place)) {
                Some(it) if it.reason.trim().is_empty() || it.reason.len() > SHORT || it.reason.contains(is_hidden) => {
                    self.fault(format!("the reason for removing {} is empty or too long", quoted(line)));
                }
                Some(it) => removed.push(RemovedLine { line: (*line).to_owned(), reason: it.reason.trim().to_owned() }),
                None => self.fault(format!("the line {} is removed without a reason", quoted(line))),
            }
        }
        for it in listed {
            self.fault(format!("{} is listed as removed, and is not", quoted(&it.line)));
        }
        removed
    }
}

/// The lines of `after` that `before` does not have as often, with their numbers. Blank lines do not count.
pub(super) fn new_lines<'a>(before: &str, after: &'a str) -> BTreeMap<usize, &'a str> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    before.lines().for_each(|line| *known.entry(line).or_default() += 1);
    let mut new = BTreeMap::new();
    for (at, line) in after.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match known.get_mut(line).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => _ = new.insert(at + 1, line),
        }
    }
    new
}

/// The lines in fences, with their numbers.
fn fenced(text: &str) -> Vec<(usize, &str)> {
    let (mut fence, mut found) = (None, Vec::new());
    for (number, line) in text.lines().enumerate() {
        match (fence, fence_mark(line)) {
            (None, mark) => fence = mark,
            (Some(open), Some(mark)) if open == mark && line.trim().chars().all(|c| c == mark) => fence = None,
            _ => found.push((number + 1, line)),
        }
    }
    found
}

/// A comment, or a definition of a link that leads to no page.
fn is_unseen(line: &str) -> bool {
    let definition = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]:"));
    let page = |target: &str| target.trim().ends_with(".md") && !target.trim().contains(char::is_whitespace);
    line.contains("<!--") || line.contains("-->") || definition.is_some_and(|(_, target)| !page(target))
}

fn is_time(text: &str) -> bool {
    let text = text.trim().trim_matches(['"', '\'']);
    text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_digit() || "-:.+TZ ".contains(c))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
