//! One view: its directories, its mount, and one operation at a time on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard, RwLock};
use serde::Serialize;

use super::journal::write_whole;
use super::places::{IN_PROJECT, ViewPlaces};
use super::record::ViewRecord;
use acheron_base::{Clock, Code, Error, Result};
use acheron_views::walk::{ComparedFiles, Layers};
use acheron_views::{Manifest, MarkNames, Root, overlay};

/// How long a program that was ended may still keep the old mount of a view.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(20);

/// Who uses views beside this module: the host, which shows them in the tree and starts programs in them.
pub trait ViewUsers: Send + Sync {
    /// Ends every program that works in the view.
    fn end_programs(&self, view: &View, why: &str);

    /// The view is mounted: shows it in the tree.
    fn show(&self, view: &View) -> Result<()>;

    /// The view is about to be unmounted.
    fn hide(&self, view: &View);

    /// The view was thrown away.
    fn discarded(&self, view: &View);

    /// The base of a view was changed by a promote: its other views look again.
    fn base_changed(&self, base: &Path);

    /// The names that are protected in the projects of this base.
    fn protected(&self, base: &Path) -> Vec<String>;
}

/// What `status.json` says of a view. It is known without asking a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewStatus {
    /// `mounted`, or why it is not.
    pub view: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// As of the last reading of `changes.json`.
    pub changes: usize,
    pub held: usize,
    pub conflicts: Vec<String>,
    /// When the base was last seen to change under the view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_changed_at_ms: Option<u64>,
    /// Whether the last promote can be undone.
    pub can_undo: bool,
}

pub struct View {
    pub places: ViewPlaces,
    pub clock: Clock,
    pub users: Arc<dyn ViewUsers>,
    record: RwLock<ViewRecord>,
    pub(super) status: RwLock<ViewStatus>,
    /// Held during an operation.
    pub(super) work: Mutex<ViewWork>,
    /// Held during a promote into this base, by whichever view.
    pub(super) base_lock: Arc<Mutex<()>>,
    /// When the repository of the base was last seen to change.
    pub(super) git_changed: Mutex<Option<i64>>,
}

/// What an operation may use.
#[derive(Default)]
pub(super) struct ViewWork {
    pub compared: ComparedFiles,
    pub discarded: bool,
}

/// The two directories of a view, open.
pub(super) struct OpenLayers {
    pub upper: Root,
    pub base: Root,
}

impl OpenLayers {
    pub fn layers(&self) -> Layers<'_> {
        Layers { upper: &self.upper, base: &self.base, marks: MarkNames::Trusted }
    }
}

impl View {
    /// A view that lies in its places; it is not mounted yet.
    pub fn new(
        record: ViewRecord,
        places: ViewPlaces,
        clock: Clock,
        users: Arc<dyn ViewUsers>,
        base_lock: Arc<Mutex<()>>,
    ) -> View {
        let status =
            ViewStatus { view: "not mounted".to_owned(), agent: record.agent.clone(), ..ViewStatus::default() };
        View {
            places,
            clock,
            users,
            record: RwLock::new(record),
            status: RwLock::new(status),
            work: Mutex::default(),
            base_lock,
            git_changed: Mutex::default(),
        }
    }

    pub fn record(&self) -> ViewRecord {
        self.record.read().clone()
    }

    pub fn name(&self) -> String {
        self.record.read().name.clone()
    }

    pub fn status(&self) -> ViewStatus {
        self.status.read().clone()
    }

    /// Where it is mounted, if it is.
    pub fn mounted(&self) -> Result<PathBuf> {
        match self.status.read().view.as_str() {
            "mounted" => Ok(self.places.mounted()),
            why => Err(Error::unavailable(format!("the view {} is not mounted: {why}", self.record.read().name))),
        }
    }

    pub(super) fn save(&self, record: ViewRecord) -> Result<()> {
        let bytes = serde_json::to_vec(&record).map_err(|err| Error::internal(err.to_string()))?;
        write_whole(&self.places.record(), &bytes)?;
        *self.record.write() = record;
        Ok(())
    }

    /// Makes the directories of a new view, and takes over the base as it is.
    pub fn make(&self) -> Result<()> {
        let record = self.record();
        let base = Root::open(&record.base)?;
        apart(&self.places.dir, &record.base)?;
        fs::create_dir_all(&self.places.dir).map_err(|err| Error::from(err).about(self.places.dir.display()))?;
        overlay::make_dirs(&self.places.overlay(&record.base, record.generation))?;
        Manifest::scan(&base, &skipped())?.save(&self.places.manifest())?;
        self.save(record)
    }

    /// Mounts it and shows it. A failure is kept as its state: nothing else is shown in its place.
    pub fn mount(&self) -> Result<()> {
        let mounted = self.mount_only().and_then(|()| {
            self.status.write().view = "mounted".to_owned();
            self.users.show(self)
        });
        if let Err(error) = &mounted {
            self.status.write().view = error.message.clone();
        }
        mounted
    }

    fn mount_only(&self) -> Result<()> {
        let record = self.record();
        let dirs = self.places.overlay(&record.base, record.generation);
        apart(&self.places.dir, &record.base)?;
        // What a host that was killed has left is not known to be the same.
        overlay::take_away(&dirs.at)?;
        self.finish_restore()?;
        overlay::make_dirs(&dirs)?;
        let until = Instant::now() + PATIENCE;
        loop {
            match overlay::mount(&dirs, MarkNames::Trusted) {
                Err(error) if error.code == Code::Busy && Instant::now() < until => std::thread::sleep(AGAIN),
                mounted => return mounted,
            }
        }
    }

    /// Takes it away from the tree and unmounts it.
    pub fn unmount(&self) -> Result<()> {
        self.users.hide(self);
        self.status.write().view = "not mounted".to_owned();
        overlay::take_away(&self.places.mounted())
    }

    /// One operation at a time.
    pub(super) fn begin(&self) -> Result<MutexGuard<'_, ViewWork>> {
        let work = self.work.lock();
        match work.discarded {
            true => Err(Error::not_found("the view was discarded")),
            false => Ok(work),
        }
    }

    pub(super) fn open(&self) -> Result<OpenLayers> {
        let record = self.record();
        let upper = Root::open(&self.places.upper(record.generation))?;
        Ok(OpenLayers { upper, base: Root::open(&record.base)? })
    }

    /// Throws the view away, with all that was changed in it.
    pub fn discard(&self) -> Result<()> {
        let mut work = self.begin()?;
        self.users.end_programs(self, "the view that it worked in was discarded");
        self.unmount()?;
        work.discarded = true;
        remove_all(&self.places.dir)
    }
}

/// A view of a directory that holds the view itself would show itself.
fn apart(dir: &Path, base: &Path) -> Result<()> {
    match dir.starts_with(base) {
        true => Err(Error::unavailable(format!(
            "the state directory lies in {}, so that a view of it would hold itself; choose another with --state",
            base.display()
        ))),
        false => Ok(()),
    }
}

/// What is no part of a base.
pub(super) fn skipped() -> Vec<PathBuf> {
    vec![PathBuf::from(IN_PROJECT)]
}

/// Removes a directory of the host's own. Under another name first, so that what is left of it after a crash is nobody's.
pub(super) fn remove_all(dir: &Path) -> Result<()> {
    let aside = dir.with_file_name(format!(".gone-{}", dir.file_name().unwrap_or_default().to_string_lossy()));
    let told = |err: std::io::Error| Error::from(err).about(dir.display());
    _ = fs::remove_dir_all(&aside);
    match fs::rename(dir, &aside) {
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        renamed => renamed.map_err(told)?,
    }
    fs::remove_dir_all(&aside).map_err(told)
}
