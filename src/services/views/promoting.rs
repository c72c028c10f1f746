//! Promote, undo, and what is taken back of a view.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::journal::{JournalState, PromoteJournal};
use super::judge::JudgedView;
use super::places::IN_PROJECT;
use super::view::{OpenLayers, View, remove_all};
use acheron_base::{Error, Result, failpoint};
use acheron_views::promote::{self, PromoteStep, SkippedStep, Stage};
use acheron_views::{Manifest, RelPath, Root, overlay, prune, select};

/// A promote that is decided from now on: fails if its call was cancelled.
pub type CommitStep<'a> = &'a dyn Fn() -> Result<()>;

/// More paths are counted in a result.
const NAMED: usize = 1000;

impl View {
    /// Carries changes back into the base. `job` is the call that asks, which ends with the result even after a crash.
    pub fn promote(&self, paths: Option<&[String]>, job: &str, decide: CommitStep<'_>) -> Result<Value> {
        let mut work = self.begin()?;
        let base_lock = self.base_lock.clone();
        let _alone = base_lock.lock();
        let open = self.open()?;
        let judged = self.judge(&mut work, &open)?;
        let chosen = select::chosen(&judged.judged(), paths)?;
        let colliding: Vec<String> = chosen
            .iter()
            .filter_map(|at| judged.conflicts[*at].as_ref())
            .map(|conflict| format!("{} was {}", conflict.path, conflict.why))
            .collect();
        if !colliding.is_empty() {
            return Err(Error::conflict(format!(
                "nothing was promoted: {}; look at both, then rebase with `keep` or discard the view's side by name",
                few(&colliding)
            )));
        }
        let result = outcome(&judged, &chosen);
        if chosen.is_empty() {
            return Ok(result);
        }
        let (journal, file) = (self.stage(&judged, &open, &chosen, job, result)?, self.places.journal());
        let before = PromoteJournal::read(&file)?;
        failpoint::step("promote.staged");
        decide().inspect_err(|_| _ = remove_all(&journal.stage))?;
        journal.write(&file).inspect_err(|_| _ = remove_all(&journal.stage))?;
        failpoint::step("promote.decided");
        if let Some(before) = before {
            _ = remove_all(&before.stage); // what is left of it is removed at the next start
        }
        let skipped = match journal.make(&open.base) {
            Ok(skipped) => skipped,
            Err(error) => return Err(self.take_back(journal, &open, error)),
        };
        failpoint::step("promote.made");
        let mut made = journal.made(&open.base)?;
        not_made(&mut made.result, &skipped);
        made.write(&file)?;
        let result = made.result.clone();
        // The project has the changes: what is left is that the view follows it.
        if let Err(error) = self.after_promote(&open, &made.steps) {
            tracing::warn!(%error, view = self.name(), "a view could not take over what was promoted");
        }
        self.status.write().can_undo = true;
        drop(work);
        self.users.base_changed(&self.record().base);
        Ok(result)
    }

    /// A disk that fails in the middle: everything gets its place back.
    fn take_back(&self, journal: PromoteJournal, open: &OpenLayers, error: Error) -> Error {
        let undoing = PromoteJournal { state: JournalState::Undoing, ..journal };
        let taken = undoing.write(&self.places.journal()).and_then(|()| undoing.make(&open.base));
        let undone = taken.and_then(|_| undoing.made(&open.base)?.write(&self.places.journal()));
        let said = match undone {
            Ok(()) => "nothing was promoted".to_owned(),
            Err(also) => format!("what was promoted is taken back at the next start ({also})"),
        };
        Error::new(error.code, format!("{said}: {}", error.message))
    }

    fn stage(
        &self,
        judged: &JudgedView,
        open: &OpenLayers,
        chosen: &[usize],
        job: &str,
        result: Value,
    ) -> Result<PromoteJournal> {
        let plan = promote::plan(&open.layers(), &judged.view, chosen)?;
        let stages = self.places.stages(open.base.path())?;
        if stages.starts_with(open.base.path()) {
            exclude(open.base.path());
        }
        let stage = stages.join(job);
        let made = fs::create_dir_all(&stage).map_err(|err| Error::from(err).about(stage.display()));
        let staged = made.and_then(|()| promote::stage(&open.layers(), plan, &Stage::open(&stage)?));
        let steps = staged.inspect_err(|_| _ = remove_all(&stage))?;
        let (job, at_ms) = (job.to_owned(), self.clock.now_ms());
        Ok(PromoteJournal { job, result, state: JournalState::Decided, at_ms, stage, steps, promoted_ns: 0 })
    }

    /// The view takes over what the base has now at these paths.
    fn after_promote(&self, open: &OpenLayers, steps: &[PromoteStep]) -> Result<()> {
        let mut manifest = Manifest::load(&self.places.manifest())?;
        for step in steps {
            take_all(&mut manifest, open, &step.path().0)?;
        }
        manifest.save(&self.places.manifest())?;
        let at = self.places.mounted();
        if self.mounted().is_ok() {
            let aside = self.aside()?;
            prune::prune(&open.layers(), &aside, &|| overlay::refresh(&at))?;
        }
        Ok(())
    }

    /// Undoes the last promote: the base is as it was before it, the view as it is now.
    pub fn undo(&self, job: &str, decide: CommitStep<'_>) -> Result<Value> {
        let work = self.begin()?;
        let base_lock = self.base_lock.clone();
        let _alone = base_lock.lock();
        let (open, file) = (self.open()?, self.places.journal());
        let journal = PromoteJournal::read(&file)?.filter(|journal| journal.state == JournalState::Done);
        let journal = journal.ok_or_else(|| Error::invalid("there is no promote of this view that could be undone"))?;
        let changed = promote::check_undo(&open.base, &journal.steps, journal.promoted_ns)?;
        if !changed.is_empty() {
            let changed: Vec<String> = changed.iter().map(ToString::to_string).collect();
            return Err(Error::conflict(format!(
                "nothing was undone: the project has changed since the promote: {}",
                few(&changed)
            )));
        }
        let paths: Vec<String> = journal.steps.iter().map(|step| step.path().to_string()).take(NAMED).collect();
        let result = json!({"undone": paths});
        decide()?;
        // The view has these files of the base alone, since they were promoted: it takes them back first.
        self.keep_own(&journal.steps)?;
        let undoing = PromoteJournal { state: JournalState::Undoing, job: job.to_owned(), result, ..journal };
        undoing.write(&file)?;
        let skipped = undoing.make(&open.base)?;
        let mut made = undoing.made(&open.base)?;
        not_made(&mut made.result, &skipped);
        made.write(&file)?;
        let mut manifest = Manifest::load(&self.places.manifest())?;
        for step in &made.steps {
            take_all(&mut manifest, &open, &step.path().0)?;
        }
        manifest.save(&self.places.manifest())?;
        _ = remove_all(&made.stage);
        if let Ok(at) = self.mounted() {
            overlay::refresh(&at)?;
            self.remove_again(&made.steps)?;
        }
        self.status.write().can_undo = false;
        drop(work);
        self.users.base_changed(&self.record().base);
        Ok(made.result)
    }

    /// What was promoted is in the base alone; through the mount it becomes the view's own again, so that an undo of the base
    /// leaves the view as it is.
    fn keep_own(&self, steps: &[PromoteStep]) -> Result<()> {
        let view = Root::open(&self.mounted()?)?;
        let goes = |step: &&PromoteStep| matches!(step, PromoteStep::Remove { .. } | PromoteStep::RemoveDir { .. });
        steps.iter().filter(|step| !goes(step)).try_for_each(|step| view.own_again(&step.path().0))
    }

    /// What the undo has brought back to the base is still removed in the view.
    fn remove_again(&self, steps: &[PromoteStep]) -> Result<()> {
        let view = Root::open(&self.mounted()?)?;
        let back = |step: &&PromoteStep| matches!(step, PromoteStep::Remove { .. } | PromoteStep::RemoveDir { .. });
        let filled = |path: &RelPath| steps.iter().any(|step| !back(&step) && step.path().is_below(&path.0));
        for step in steps.iter().filter(back).filter(|step| !filled(step.path())) {
            view.remove_all(&step.path().0)?;
        }
        Ok(())
    }

    /// Drops changes of the view: the base shows at these paths again.
    pub fn drop_changes(&self, paths: &[String]) -> Result<Value> {
        let mut work = self.begin()?;
        let open = self.open()?;
        let judged = self.judge(&mut work, &open)?;
        // What is held back or ignored can be dropped like anything else.
        let (held, ignored) = (vec![None; judged.held.len()], vec![None; judged.held.len()]);
        let all = select::Judged { held: &held, ignored: &ignored, ..judged.judged() };
        let chosen = select::chosen(&all, Some(paths))?;
        let mut dropped: Vec<PathBuf> = Vec::new();
        for at in &chosen {
            let change = &judged.view.changes[*at];
            dropped.push(change.path.0.clone());
            dropped.extend(change.from.as_ref().map(|from| from.0.clone()));
        }
        dropped.sort();
        dropped.dedup();
        let (aside, at) = (self.aside()?, self.mounted()?);
        prune::drop_changes(&open.layers(), &dropped, &aside, &|| overlay::refresh(&at))?;
        let mut manifest = Manifest::load(&self.places.manifest())?;
        dropped.iter().try_for_each(|path| manifest.take(&open.base, path))?;
        manifest.save(&self.places.manifest())?;
        let named: Vec<String> = dropped.iter().map(|path| path.display().to_string()).take(NAMED).collect();
        Ok(json!({"discarded": named}))
    }

    /// An empty directory beside the upper.
    pub(super) fn aside(&self) -> Result<PathBuf> {
        let aside = self.places.dir.join("aside");
        _ = fs::remove_dir_all(&aside);
        fs::create_dir_all(&aside).map_err(|err| Error::from(err).about(aside.display()))?;
        Ok(aside)
    }
}

/// Takes over a path and, if it is a directory or was one, all below it.
fn take_all(manifest: &mut Manifest, open: &OpenLayers, path: &Path) -> Result<()> {
    let mut paths: Vec<PathBuf> = manifest.below(path).map(|(path, _)| path.clone()).collect();
    paths.extend(acheron_views::walk::below(&open.base, path)?.into_iter().map(|(path, _)| path));
    paths.push(path.to_owned());
    paths.iter().try_for_each(|path| manifest.take(&open.base, path))
}

/// What a promote says: the paths that it carries back, and those that it holds.
fn outcome(judged: &JudgedView, chosen: &[usize]) -> Value {
    let changes = &judged.view.changes;
    let promoted: Vec<Value> = chosen
        .iter()
        .take(NAMED)
        .map(|at| json!({"what": changes[*at].kind.name(), "path": changes[*at].path.to_string()}))
        .collect();
    let held: Vec<Value> = judged
        .shown()
        .filter(|(at, _)| !chosen.contains(at))
        .filter_map(|(at, change)| Some(json!({"path": change.path.to_string(), "why": judged.held[at].as_ref()?})))
        .take(NAMED)
        .collect();
    let left = changes.len() - chosen.len();
    let mut result = json!({"promoted": promoted, "count": chosen.len(), "held": held, "left": left});
    if chosen.is_empty() {
        let note = if changes.is_empty() {
            "the view has no changes"
        } else {
            "every change is held back or ignored; name what is to go"
        };
        result["note"] = note.into();
    }
    result
}

fn not_made(result: &mut Value, skipped: &[SkippedStep]) {
    if !skipped.is_empty() {
        result["not_made"] = serde_json::to_value(skipped).unwrap_or_default();
    }
}

fn few(all: &[String]) -> String {
    let shown: Vec<&str> = all.iter().take(8).map(String::as_str).collect();
    let more = if all.len() > shown.len() { format!(" and {} more", all.len() - shown.len()) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// Keeps the stage in a project out of what git would add. A repository without that file is left as it is.
fn exclude(base: &Path) {
    let file = base.join(".git/info/exclude");
    let line = format!("/{IN_PROJECT}/");
    if let Ok(text) = fs::read_to_string(&file)
        && !text.lines().any(|known| known == line)
    {
        _ = fs::write(&file, format!("{}\n{line}\n", text.trim_end()));
    }
}
