//! Decides about a proposal: all of it, or sentences that say what is wrong. A pure function; the same one decides when a run is
//! proposed and when it is applied.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::addresses::addresses;
use super::blocks::{BlockKind, blocks};
use super::proposal::{Citation, ProposedPage, RemovedLine, SleepProposal};
use crate::graph::Broken;
use crate::index::{Index, Page};
use crate::links::links;
use crate::page::{Class, body, check_path, check_text, title};
use crate::resolve::{path_of, spellings};
use acheron_base::quoted;

/// The shortest quotation, unless the message is shorter, and the longest, in characters.
const QUOTE: usize = 12;
const LONGEST_QUOTE: usize = 1000;
/// The longest heading, reason and line of front matter, in bytes.
const SHORT: usize = 240;
/// The lines of front matter that a proposal may write.
const FRONT: [&str; 4] = ["created:", "updated:", "aliases:", "- "];

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
            let known = *number == 1 || *line == "---" || FRONT.iter().any(|key| line.starts_with(key));
            if *number <= front && (!known || line.len() > SHORT) {
                self.fault(format!("line {number}: front matter holds created, updated and aliases, and nothing else"));
            }
        }
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

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Controls, and signs that turn the direction of what follows or have no width.
pub(super) fn is_hidden(c: char) -> bool {
    let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    (c.is_control() && c != '\t') || turns || matches!(c, '\u{e0000}'..='\u{e007f}')
}
