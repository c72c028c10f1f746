//! The library of prompts: those built into the program, and over them those of a folder. Other services render with it;
//! it uses `acheron-prompts`, and the disk.
//!
//! A prompt of the folder replaces the built-in one of the same name. A faulty one replaces nothing: the last good one
//! stays, and the fault is listed until it is mended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use include_dir::{Dir, include_dir};
use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::override_store::{LATEST, OverrideStore};
use acheron_base::{ConfinedDir, Error, Result};
use acheron_prompts::check::strangers;
use acheron_prompts::fault::Fault;
use acheron_prompts::load::{Files, Loaded, load, load_over};
use acheron_prompts::names;
use acheron_prompts::prompt::Prompt;
use acheron_prompts::record::Record;
use acheron_prompts::render::Rendered;
use acheron_prompts::tree::PromptTemplate;

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/prompts");

const FILE_BYTES: u64 = 1 << 20;
const FILES: usize = 10_000;

pub struct Library {
    folder: Option<PathBuf>,
    contents: RwLock<LibraryContents>,
    /// What the operator has changed of them; the prompts of the host itself are rendered with it, too.
    overrides: OnceLock<Arc<OverrideStore>>,
}

#[derive(Default)]
struct LibraryContents {
    prompts: BTreeMap<String, LoadedPrompt>,
    faults: Vec<Fault>,
    generation: u64,
}

#[derive(Clone)]
struct LoadedPrompt {
    template: Arc<PromptTemplate>,
    origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    BuiltIn,
    Folder,
}

impl Library {
    /// The built-in prompts, and over them the folder, which need not exist. Faults do not stop it: see [`Library::faults`].
    pub fn open(folder: Option<&Path>) -> Library {
        let library =
            Library { folder: folder.map(Path::to_owned), contents: RwLock::default(), overrides: OnceLock::new() };
        library.reload();
        library
    }

    /// The built-in prompts alone.
    pub fn built_in() -> Library {
        Library::open(None)
    }

    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The overrides in this directory, which is made if it is missing. From now on they apply to what [`Library::render`] renders.
    pub fn overrides_in(&self, place: &Path) -> Result<Arc<OverrideStore>> {
        if let Some(overrides) = self.overrides.get() {
            return Ok(overrides.clone());
        }
        let opened = Arc::new(OverrideStore::new(ConfinedDir::create(place)?));
        Ok(self.overrides.get_or_init(|| opened).clone())
    }

    /// Reads everything again and gives the faults. A prompt that is faulty now stays as it was.
    pub fn reload(&self) -> Vec<Fault> {
        let shipped = embedded();
        let mut built_in = load(&shipped, "prompts");
        let mut own = match &self.folder {
            Some(folder) => on_disk(folder, &shipped),
            None => Loaded::default(),
        };
        let mut faults = std::mem::take(&mut built_in.faults);
        faults.append(&mut own.faults);
        let mut contents = self.contents.write();
        let mut prompts = BTreeMap::new();
        for (origin, loaded) in [(Origin::BuiltIn, built_in), (Origin::Folder, own)] {
            for (id, prompt) in loaded.prompts {
                match prompt {
                    Ok(template) => {
                        prompts.insert(id, LoadedPrompt { template: Arc::new(template), origin });
                    }
                    Err(mut found) => {
                        faults.append(&mut found);
                        if let Some(last) = contents.prompts.get(&id).filter(|last| last.origin == origin) {
                            prompts.insert(id, last.clone());
                        }
                    }
                }
            }
        }
        // An unchanged prompt keeps its identity, so that who holds it can see that nothing happened.
        contents.prompts = prompts;
        contents.faults.clone_from(&faults);
        contents.generation += 1;
        faults
    }

    fn contents(&self) -> parking_lot::RwLockReadGuard<'_, LibraryContents> {
        self.contents.read()
    }

    pub fn faults(&self) -> Vec<Fault> {
        self.contents().faults.clone()
    }

    /// The faults of the files of one namespace: the name of each file without its ending, and its fault.
    pub fn faults_of(&self, ns: &str) -> Vec<(String, String)> {
        let contents = self.contents();
        let file = |fault: &Fault| {
            let path = Path::new(fault.whereabouts.spot.as_ref()?.file.as_str());
            let own = path.parent()?.file_name()? == ns;
            own.then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned())).flatten()
        };
        contents.faults.iter().filter_map(|fault| Some((file(fault)?, fault.to_string()))).collect()
    }

    pub fn get(&self, ns: &str, key: &str) -> Result<Arc<PromptTemplate>> {
        let contents = self.contents();
        let known = contents.prompts.get(&format!("{ns}/{key}")).map(|known| known.template.clone());
        known.ok_or_else(|| {
            let name = names::clipped(&format!("{ns}/{key}"));
            match contents.faults.iter().find(|fault| about(fault, ns, key)) {
                Some(fault) => Error::invalid(format!("prompt `{name}` is faulty: {fault}")),
                None => Error::not_found(format!("there is no prompt `{name}`")),
            }
        })
    }

    pub fn list(&self) -> Vec<(Arc<PromptTemplate>, Origin)> {
        self.contents().prompts.values().map(|known| (known.template.clone(), known.origin)).collect()
    }

    /// The prompts of one namespace in the order of their keys.
    pub fn namespace(&self, ns: &str) -> Vec<Arc<PromptTemplate>> {
        self.list().into_iter().map(|(template, _)| template).filter(|template| template.ns == ns).collect()
    }

    /// Renders a prompt in one go, with the overrides of the tag `latest`. For a prompt of one file `params` are its fields; else records by type.
    pub fn render(&self, ns: &str, key: &str, params: &Value) -> Result<Rendered> {
        let mut prompt = Prompt::new(self.get(ns, key)?);
        if let Some(overrides) = self.overrides.get() {
            prompt.overrides = Arc::new(overrides.resolve(&prompt.template, LATEST)?.overrides);
        }
        prompt.bind_json(params)?;
        Ok(prompt.render()?)
    }

    /// The text of a prompt of which the params are a Rust value.
    pub fn text<P: Serialize>(&self, ns: &str, key: &str, params: &P) -> Result<String> {
        let params = serde_json::to_value(params).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(self.render(ns, key, &params)?.text)
    }

    /// Whether a prompt of one file asks for nothing that the Rust type does not have. Call it when the host starts,
    /// so that a placeholder without a value is found before the prompt is needed.
    pub fn expect<P: JsonSchema>(&self, ns: &str, key: &str) -> Result<()> {
        let template = self.get(ns, key)?;
        let record = Record::of::<P>().map_err(Error::internal)?;
        for node in &template.nodes {
            for text in [&node.section.body, &node.section.summary].into_iter().flatten() {
                if let Some((fault, line, column)) = strangers(text, Some(&record)).into_iter().next() {
                    return Err(fault.section(&node.path).at(template.id(), line, column).into());
                }
            }
        }
        Ok(())
    }
}

fn about(fault: &Fault, ns: &str, key: &str) -> bool {
    let file = fault.whereabouts.spot.as_ref().map_or("", |spot| spot.file.as_str());
    let stem = format!("{ns}/{key}");
    file.find(&stem).is_some_and(|at| matches!(file.as_bytes().get(at + stem.len()), Some(b'/' | b'.')))
}

fn embedded() -> Files {
    let mut files = Files::new();
    let mut folders = vec![&BUILT_IN];
    while let Some(folder) = folders.pop() {
        folders.extend(folder.dirs());
        for file in folder.files() {
            files.insert(file.path().to_string_lossy().into_owned(), file.contents().to_vec());
        }
    }
    files
}

/// A folder is read three names deep. Links are not followed: what they lead to was not put here by the folder's owner.
fn on_disk(folder: &Path, shipped: &Files) -> Loaded {
    let mut files = Files::new();
    let mut faults = Vec::new();
    let mut folders = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((path, prefix, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&path) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let below = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < 3 && !name.starts_with('.') {
                folders.push((entry.path(), below, depth + 1));
            } else if kind.is_file() && files.len() < FILES {
                let size = entry.metadata().map_or(0, |meta| meta.len());
                let shown = format!("{}/{below}", folder.display());
                match std::fs::read(entry.path()) {
                    _ if size > FILE_BYTES => {
                        faults.push(Fault::validation(format!("longer than {FILE_BYTES} bytes")).at(shown, 1, 1));
                    }
                    Ok(bytes) => {
                        files.insert(below, bytes);
                    }
                    Err(error) => faults.push(Fault::validation(format!("cannot be read: {error}")).at(shown, 1, 1)),
                }
            }
        }
    }
    let mut loaded = load_over(&files, &folder.to_string_lossy(), shipped);
    loaded.faults.append(&mut faults);
    loaded
}

#[cfg(test)]
mod tests;
