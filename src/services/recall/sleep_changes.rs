//! Applies a run of consolidation, and takes it back: each as one change of files, which is completed after a crash. `service`
//! uses it.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::sleep_runs::{BEFORE, BeforeTexts, PROPOSAL, REPORT, SleepReport, SleepState, digest, written};
use super::state::RecallState;
use super::wiki::Wiki;
use crate::service::ChangeFiles;
use acheron_base::confined_dir::FileChange;
use acheron_base::{Error, Result, if_exists};
use acheron_recall::sleep::{SleepProposal, WikiView};

/// What became of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SleepChanged")]
pub struct SleepOutcome {
    pub run: String,
    pub state: SleepState,
    /// The pages that are other than before.
    pub pages: Vec<String>,
}

impl RecallState {
    /// Makes the changes that a run proposed: all of them, or none and the sentence that says why.
    pub fn apply_run(&self, by: &dyn ChangeFiles, run: &str) -> Result<SleepOutcome> {
        let wiki = self.read_wiki()?;
        let _writing = wiki.writing.lock();
        let mut report: SleepReport = wiki.sleep_value(run, REPORT)?;
        if !matches!(report.state, SleepState::Proposed | SleepState::Undone) {
            return Err(wrong_state(run, report.state));
        }
        let is_same = |path: &str, was: &Option<String>| Ok(wiki.text_now(path)?.as_deref().map(digest) == *was);
        let was: Vec<_> = report.pages.iter().map(|page| (page.path.clone(), page.before.clone())).collect();
        unchanged(&was, is_same, &format!("since run {run} proposed its change: run consolidate again"))?;
        let proposal: SleepProposal = wiki.sleep_value(run, PROPOSAL)?;
        let (page, message) = (|path: &str| wiki.text(path).ok(), |path: &str| wiki.cited(path));
        let judged = {
            let index = wiki.index();
            let view = WikiView { index: &index, page: &page, message: &message };
            self.judged(proposal, &view, &Self::run_limits())
        };
        let (_, changes) = judged.map_err(|faults| {
            Error::conflict(format!("run {run} does not hold any more: {}; run consolidate again", faults.join("; ")))
        })?;
        let proposed: Vec<_> = report.pages.iter().map(|page| (&page.path, &page.after)).collect();
        let found: Vec<_> = changes.iter().map(|change| (&change.path, digest(&change.after))).collect();
        if !proposed.iter().copied().eq(found.iter().map(|(path, after)| (*path, after))) {
            return Err(Error::conflict(format!(
                "sleep/{run}/{PROPOSAL} is not what the report shows: run consolidate again"
            )));
        }
        let before: BeforeTexts = changes.iter().map(|it| (it.path.clone(), it.before.clone())).collect();
        let mut files: Vec<FileChange> =
            changes.iter().map(|it| FileChange::write(it.path.as_str(), it.after.as_str())).collect();
        report.state = SleepState::Applied;
        files.extend([written(run, BEFORE, &before)?, written(run, REPORT, &report)?]);
        self.change_pages(by, wiki, files, &report, run)
    }

    /// Takes back what [`apply_run`](Self::apply_run) did.
    pub fn undo_run(&self, by: &dyn ChangeFiles, run: &str) -> Result<SleepOutcome> {
        let wiki = self.read_wiki()?;
        let _writing = wiki.writing.lock();
        let mut report: SleepReport = wiki.sleep_value(run, REPORT)?;
        if report.state != SleepState::Applied {
            return Err(wrong_state(run, report.state));
        }
        let is_same = |path: &str, was: &Option<String>| Ok(wiki.text_now(path)?.as_deref().map(digest) == *was);
        let was: Vec<_> = report.pages.iter().map(|page| (page.path.clone(), Some(page.after.clone()))).collect();
        unchanged(&was, is_same, &format!("since run {run} was applied: undo that first, or change it by hand"))?;
        let before: BeforeTexts = wiki.sleep_value(run, BEFORE)?;
        let mut files = Vec::new();
        for page in &report.pages {
            let text = before.get(&page.path).filter(|text| text.as_deref().map(digest) == page.before);
            let text = text.ok_or_else(|| {
                Error::conflict(format!("sleep/{run}/{BEFORE} was changed: it does not have {}", page.path))
            })?;
            files.push(match text {
                Some(text) => FileChange::write(page.path.as_str(), text.as_str()),
                None => FileChange::remove(page.path.as_str()),
            });
        }
        report.state = SleepState::Undone;
        files.push(written(run, REPORT, &report)?);
        self.change_pages(by, wiki, files, &report, run)
    }

    fn change_pages(
        &self,
        by: &dyn ChangeFiles,
        wiki: &Wiki,
        files: Vec<FileChange>,
        report: &SleepReport,
        run: &str,
    ) -> Result<SleepOutcome> {
        let pages: Vec<String> = report.pages.iter().map(|page| page.path.clone()).collect();
        let outcome = SleepOutcome { run: run.to_owned(), state: report.state, pages };
        by.change_files(&wiki.place(), files, json!(outcome))?;
        outcome.pages.iter().for_each(|path| wiki.refresh(path));
        Ok(outcome)
    }
}

impl Wiki {
    /// The text of a page as the disk has it now; none if it is not there.
    fn text_now(&self, path: &str) -> Result<Option<String>> {
        if_exists(self.text(path))
    }
}

/// Refuses with the pages that are not what they were.
fn unchanged(
    was: &[(String, Option<String>)],
    is_same: impl Fn(&str, &Option<String>) -> Result<bool>,
    since: &str,
) -> Result<()> {
    let mut changed = Vec::new();
    for (path, was) in was {
        if !is_same(path, was)? {
            changed.push(path.as_str());
        }
    }
    match changed[..] {
        [] => Ok(()),
        [one] => Err(Error::conflict(format!("{one} has changed {since}"))),
        _ => Err(Error::conflict(format!("{} have changed {since}", changed.join(", ")))),
    }
}

fn wrong_state(run: &str, state: SleepState) -> Error {
    Error::conflict(match state {
        SleepState::Applied => format!("run {run} is applied already: `undo` takes it back"),
        SleepState::Empty | SleepState::Planned => format!("run {run} proposes nothing"),
        SleepState::Proposed => format!("run {run} is not applied, so there is nothing to undo"),
        SleepState::Undone => format!("run {run} is undone already: `apply` makes it again"),
    })
}
