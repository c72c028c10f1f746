//! Consolidation: reads archived conversations, has changes of pages proposed, and writes down those that hold. `service` begins
//! it; the model answers through `speak`, `acheron_recall::sleep` decides.

use std::sync::Arc;

use serde_json::json;

use super::archive::date;
use super::sleep_runs::{
    PATCH, PROPOSAL, REPORT, RefusedPart, SleepReport, SleepState, SleptPage, TranscriptRead, written,
};
use super::state::RecallState;
use super::wiki::Wiki;
use crate::service::ChangeFiles;
use acheron_base::confined_dir::FileChange;
use acheron_base::words::telling;
use acheron_base::{Error, Result, blocking, quoted, tokens};
use acheron_recall::message::{Name, Role};
use acheron_recall::page::ROOT;
use acheron_recall::resolve::Access;
use acheron_recall::sleep::{
    SleepChange, SleepLimits, SleepProposal, SourceRequest, StagedWiki, WikiView, expand, extract, is_source, patch,
    read_proposal, refusal, request, requests, transcript_of, unseen, validate,
};

/// How many parts of transcripts one run reads.
const REQUESTS: usize = 64;
/// The longest part, in bytes.
const PART: usize = 64 << 10;
/// How often a model may answer for one part.
const ATTEMPTS: usize = 2;
/// How many pages are looked up for a part, and by how many of its words.
const RELATED: usize = 6;
const WORDS: usize = 16;
/// The most pages of a whole run.
const PAGES: usize = 1024;

/// A change that was checked, or what is wrong with it.
type Judged = std::result::Result<(SleepProposal, Vec<SleepChange>), Vec<String>>;

/// The parts that a run reads, and how many are left.
struct SleepPlan {
    parts: Vec<SourceRequest>,
    left: usize,
}

impl RecallState {
    /// Proposes changes of pages. Changes nothing but `sleep/`.
    pub async fn consolidate<C>(self: &Arc<Self>, by: &C, since: Option<String>, dry_run: bool) -> Result<SleepReport>
    where
        C: ChangeFiles + Clone + 'static,
    {
        check_since(since.as_deref())?;
        let recall = self.clone();
        let plan = blocking(move || recall.sleep_plan(since.as_deref())).await?;
        let has_model = self.parts.speak.has_model()?;
        let mut report = SleepReport {
            run: None,
            state: if dry_run { SleepState::Planned } else { SleepState::Empty },
            by: if has_model { "model" } else { "extract" }.to_owned(),
            transcripts: Vec::new(),
            requests: plan.parts.len(),
            left: plan.left,
            pages: Vec::new(),
            refused: Vec::new(),
        };
        if dry_run || plan.parts.is_empty() {
            plan.parts.iter().for_each(|part| note(&mut report, part));
            return Ok(report);
        }
        let recall = self.clone();
        let mut staged = blocking(move || Ok(StagedWiki::new(recall.read_wiki()?.index().clone()))).await?;
        for part in plan.parts {
            // What follows a part that was refused waits for the next run, too.
            if report.refused.iter().any(|it| it.transcript == part.transcript) {
                continue;
            }
            let judged;
            (staged, judged) = self.read_part(staged, &part, has_model).await?;
            match judged {
                Ok(()) => note(&mut report, &part),
                Err(faults) => report.refused.push(RefusedPart { transcript: part.transcript, faults }),
            }
        }
        let (recall, by) = (self.clone(), by.clone());
        blocking(move || recall.write_run(&by, report, staged)).await
    }

    /// The messages that are to be read, in parts that go into the window of the model.
    fn sleep_plan(&self, since: Option<&str>) -> Result<SleepPlan> {
        let wiki = self.read_wiki()?;
        let done = if since.is_some() { Default::default() } else { wiki.consolidated()? };
        let mut talks: std::collections::BTreeMap<String, Vec<Name>> = Default::default();
        for page in wiki.index().below("episodic-raw") {
            if let Some((folder, name)) = transcript_of(&page.path) {
                let is_new = match since {
                    Some(since) => date(name.ns).as_str() >= since,
                    None => done.get(folder).and_then(|last| Name::parse(last)).is_none_or(|last| name > last),
                };
                talks.entry(folder.to_owned()).or_default().extend(is_new.then_some(name));
            }
        }
        // Half of a window is enough for the answer and the pages, whatever the text is.
        let most = PART.min((self.parts.window)() as usize / 3);
        let mut parts = Vec::new();
        for (folder, mut names) in talks {
            names.sort();
            let read = |name: Name| {
                let text = wiki.text(&format!("{folder}/{}", name.file))?;
                Ok((name, text))
            };
            let messages = names.into_iter().map(read).collect::<Result<Vec<_>>>()?;
            parts.extend(requests(&folder, &messages, most));
        }
        let left = parts.len().saturating_sub(REQUESTS);
        parts.truncate(REQUESTS);
        Ok(SleepPlan { parts, left })
    }

    /// Has one part read, and adds what is proposed and holds.
    async fn read_part(
        self: &Arc<Self>,
        staged: StagedWiki,
        part: &SourceRequest,
        has_model: bool,
    ) -> Result<(StagedWiki, std::result::Result<(), Vec<String>>)> {
        let (recall, source) = (self.clone(), part.clone());
        if !has_model {
            return blocking(move || {
                let proposal = recall.viewed(&staged, |view| extract(&source, view))?.unwrap_or_default();
                recall.take(staged, proposal)
            })
            .await;
        }
        let (mut staged, shown) = blocking(move || {
            let shown = recall.shown(&staged, &source)?;
            Ok((staged, shown))
        })
        .await?;
        let shown = Arc::new(shown);
        let system = self.parts.prompts.text("sleep", "consolidate", &json!({}))?;
        let (asked, mut told) = (request(part, &shown), String::new());
        let mut faults = Vec::new();
        for _ in 0..ATTEMPTS {
            let said = [(Role::System, system.clone()), (Role::User, format!("{asked}{told}"))];
            let reply = self.parts.speak.speak(&said).await?;
            let (recall, messages, shown) = (self.clone(), part.messages.clone(), shown.clone());
            let judged;
            (staged, judged) = blocking(move || {
                let proposal = read_proposal(&reply).map_err(|fault| vec![fault]);
                let proposal = proposal.and_then(|it| expand(it, &messages)).and_then(|it| {
                    let faults = unseen(&it, &shown, &|path| staged.index.page(path).is_some());
                    if faults.is_empty() { Ok(it) } else { Err(faults) }
                });
                match proposal {
                    Ok(proposal) => recall.take(staged, proposal),
                    Err(faults) => Ok((staged, Err(faults))),
                }
            })
            .await?;
            match judged {
                Ok(()) => return Ok((staged, Ok(()))),
                Err(found) => (told, faults) = (format!("\n\n{}", refusal(&found)), found),
            }
        }
        Ok((staged, Err(faults)))
    }

    /// Adds a proposal to what is staged, if it holds.
    fn take(
        &self,
        mut staged: StagedWiki,
        proposal: SleepProposal,
    ) -> Result<(StagedWiki, std::result::Result<(), Vec<String>>)> {
        let judged = self.viewed(&staged, |view| self.judged(proposal, view, &SleepLimits::default()))?;
        let wiki = self.wiki()?;
        let taken = judged.map(|(proposal, changes)| staged.add(proposal, &changes, &|path| wiki.text(path).ok()));
        Ok((staged, taken))
    }

    /// Whether a proposal holds. One function for what is proposed and for what is applied.
    pub fn judged(&self, proposal: SleepProposal, view: &WikiView<'_>, limits: &SleepLimits) -> Judged {
        let changes = validate(&proposal, view, limits)?;
        let over = changes.iter().filter_map(|change| self.check_links(&change.path, &change.after).err());
        let faults: Vec<String> = over.map(|error| error.message).collect();
        if faults.is_empty() { Ok((proposal, changes)) } else { Err(faults) }
    }

    /// The limits of a whole run.
    pub fn run_limits() -> SleepLimits {
        SleepLimits { pages: PAGES, ..SleepLimits::default() }
    }

    /// Looks at the wiki with what is staged.
    fn viewed<T>(&self, staged: &StagedWiki, look: impl FnOnce(&WikiView<'_>) -> T) -> Result<T> {
        let wiki = self.wiki()?;
        let page = |path: &str| staged.page(path).cloned().or_else(|| wiki.text(path).ok());
        let message = |path: &str| wiki.cited(path);
        Ok(look(&WikiView { index: &staged.index, page: &page, message: &message }))
    }

    /// The pages that a model is shown for a part: the entry page, what was proposed last, and what is about the same. As many
    /// as go into a quarter of the window.
    fn shown(&self, staged: &StagedWiki, part: &SourceRequest) -> Result<Vec<(String, String)>> {
        let wiki = self.wiki()?;
        let hits = wiki.search(&question(part), Access::Nodes, RELATED)?;
        let mut paths = vec![ROOT.to_owned()];
        paths.extend(staged.recent().take(RELATED).cloned());
        paths.extend(hits.into_iter().map(|hit| hit.path));
        let mut room = u64::from((self.parts.window)() / 4);
        let mut shown: Vec<(String, String)> = Vec::new();
        for path in paths {
            let text = staged.page(&path).cloned().or_else(|| wiki.text(&path).ok());
            let Some(text) = text.filter(|_| !shown.iter().any(|(known, _)| *known == path)) else { continue };
            if tokens::fits(&text, room) {
                room -= tokens::count(&text).min(room);
                shown.push((path, text));
            }
        }
        Ok(shown)
    }

    /// Writes a run down: its report, its patch and its proposal, or nothing if there is nothing to tell.
    fn write_run(&self, by: &dyn ChangeFiles, mut report: SleepReport, staged: StagedWiki) -> Result<SleepReport> {
        let wiki = self.wiki()?;
        let proposal = staged.into_proposal();
        let page = |path: &str| wiki.text(path).ok();
        let message = |path: &str| wiki.cited(path);
        let _writing = wiki.writing.lock();
        let judged = {
            let index = wiki.index();
            let view = WikiView { index: &index, page: &page, message: &message };
            self.judged(proposal, &view, &Self::run_limits())
        };
        let (proposal, changes) = judged.map_err(|faults| {
            Error::conflict(format!("the wiki has changed while the run read it: {}", faults.join("; ")))
        })?;
        report.pages = changes.iter().map(SleptPage::of).collect();
        report.state = if changes.is_empty() { SleepState::Empty } else { SleepState::Proposed };
        let run = wiki.unused_run(&date(self.parts.clock.now_ns().into()))?;
        report.run = Some(run.clone());
        let files = vec![
            written(&run, REPORT, &report)?,
            written(&run, PROPOSAL, &proposal)?,
            FileChange::write(format!("sleep/{run}/{PATCH}"), patch(&changes)),
        ];
        by.change_files(&wiki.place(), files, json!(report))?;
        Ok(report)
    }
}

impl Wiki {
    /// The text of a message that may be cited.
    pub fn cited(&self, path: &str) -> Option<String> {
        let (_, name) = transcript_of(path)?;
        self.text(path).ok().filter(|text| is_source(name.role, text))
    }
}

/// Counts a part as read.
fn note(report: &mut SleepReport, part: &SourceRequest) {
    let known = report.transcripts.iter().position(|it| it.path == part.transcript);
    let place = known.unwrap_or_else(|| {
        let path = part.transcript.clone();
        report.transcripts.push(TranscriptRead { path, messages: 0, last: String::new() });
        report.transcripts.len() - 1
    });
    let read = &mut report.transcripts[place];
    read.messages += part.messages.len();
    if let Some(last) = &part.last {
        read.last.clone_from(last);
    }
}

/// The words that a part uses most, as a question to the wiki.
fn question(part: &SourceRequest) -> String {
    let mut counts: std::collections::BTreeMap<String, usize> = Default::default();
    for message in &part.messages {
        telling(&message.text).into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
    }
    let mut words: Vec<(String, usize)> = counts.into_iter().collect();
    words.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    words.into_iter().take(WORDS).map(|(word, _)| word).collect::<Vec<_>>().join(" ")
}

pub fn check_since(since: Option<&str>) -> Result<()> {
    match since.filter(|since| !is_date(since)) {
        Some(since) => Err(Error::invalid(format!("since is a day such as 2026-11-16, not {}", quoted(since)))),
        None => Ok(()),
    }
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes[at].is_ascii_digit();
    let shaped = bytes.len() == 10 && (0..10).all(|at| if at == 4 || at == 7 { bytes[at] == b'-' } else { digit(at) });
    shaped && ("01"..="12").contains(&&text[5..7]) && ("01"..="31").contains(&&text[8..10])
}

#[cfg(test)]
mod tests;
