//! From a folder of prompts to prompts: `<ns>/<key>/prompt.json` with its texts, or `<ns>/<key>.md` or `.txt`.
//!
//! Knows files only by name and content, so that embedded files and files on a disk are read by
//! the same code.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::check::{self, Source};
use crate::fault::Fault;
use crate::front;
use crate::manifest::Manifest;
use crate::reuse::{self, Reused};
use crate::tree::PromptTemplate;

/// Files by their path below the folder of prompts, with `/`.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The prompts of a folder by `ns/key`, each with its faults if it has any.
#[derive(Debug, Default)]
pub struct Loaded {
    pub prompts: BTreeMap<String, Result<PromptTemplate, Vec<Fault>>>,
    /// Faults that belong to no prompt.
    pub faults: Vec<Fault>,
}

pub fn load(files: &Files, root: &str) -> Loaded {
    load_over(files, root, &Files::new())
}

/// The prompts of a folder, whose sections may use those of the prompts `below` too.
pub fn load_over(files: &Files, root: &str, below: &Files) -> Loaded {
    let every: Files = below.iter().chain(files).map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
    let mut loaded = Loaded::default();
    let mut folders: BTreeMap<String, BTreeMap<String, &[u8]>> = BTreeMap::new();
    for (path, bytes) in files {
        let shown = format!("{root}/{path}");
        let parts: Vec<&str> = path.split('/').collect();
        match parts[..] {
            // Notes for people, and what editors leave behind.
            [.., name] if for_people(name) || name.starts_with('.') || name.ends_with('~') => {}
            [ns, file] => {
                // Other files beside prompts, such as scripts and tables, are not ours.
                if let Some((key, "md" | "txt")) = file.rsplit_once('.') {
                    let read = one_file(ns, key, &shown, bytes);
                    let read = read.map(|prompt| prompt.read_from([(path.clone(), bytes.as_slice())]));
                    loaded.add(format!("{ns}/{key}"), &shown, read);
                }
            }
            [ns, key, file] => {
                folders.entry(format!("{ns}/{key}")).or_default().insert(file.to_owned(), bytes);
            }
            _ => loaded.stray(shown),
        }
    }
    for (id, folder) in folders {
        let shown = format!("{root}/{id}");
        let own = folder.iter().map(|(name, bytes)| (format!("{id}/{name}"), *bytes));
        let read = one_folder(&id, &shown, &folder, &every).map(|(prompt, reused)| {
            let used = reused.files.iter().filter_map(|file| Some((file.clone(), every.get(file)?.as_slice())));
            prompt.read_from(own.chain(used))
        });
        loaded.add(id.clone(), &format!("{shown}/prompt.json"), read);
    }
    loaded
}

/// Builds one prompt again from the files that it was read from.
pub fn again(id: &str, sources: &BTreeMap<String, String>) -> Result<PromptTemplate, Vec<Fault>> {
    let files = sources.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect();
    let missing = || Err(vec![Fault::validation(format!("prompt `{id}` was not kept whole"))]);
    load(&files, "kept").prompts.remove(id).unwrap_or_else(missing)
}

/// `README.md` and its like: a stem in capitals is no key.
fn for_people(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    stem.chars().any(|c| c.is_ascii_uppercase()) && !stem.chars().any(|c| c.is_ascii_lowercase())
}

impl Loaded {
    fn stray(&mut self, file: String) {
        let why = "not a prompt: one is <ns>/<key>/prompt.json with its texts, <ns>/<key>.md or <ns>/<key>.txt";
        self.faults.push(Fault::validation(why).at(file, 1, 1));
    }

    fn add(&mut self, id: String, file: &str, prompt: Result<PromptTemplate, Vec<Fault>>) {
        match self.prompts.entry(id) {
            Entry::Vacant(free) => {
                free.insert(prompt);
            }
            Entry::Occupied(mut taken) => {
                let fault = Fault::validation(format!("prompt `{}` is there twice", taken.key())).at(file, 1, 1);
                *taken.get_mut() = Err(vec![fault]);
            }
        }
    }
}

fn text<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, Fault> {
    std::str::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned();
        let line = good.matches('\n').count() + 1;
        let column = good.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        Fault::validation("the text is not UTF-8").at(file, line, column)
    })
}

fn one_file(ns: &str, key: &str, file: &str, bytes: &[u8]) -> Result<PromptTemplate, Vec<Fault>> {
    let read = || {
        let (front, body, above) = front::split(text(file, bytes)?)
            .map_err(|wrong| Fault::validation(wrong.message).at(file, wrong.line, wrong.column))?;
        let prompt = check::single(ns, key, file, body, front, above)?;
        in_its_place(&prompt, ns, key, file)?;
        Ok(prompt)
    };
    read().map_err(|fault| vec![fault])
}

fn one_folder(
    id: &str,
    shown: &str,
    folder: &BTreeMap<String, &[u8]>,
    every: &Files,
) -> Result<(PromptTemplate, Reused), Vec<Fault>> {
    let file = format!("{shown}/prompt.json");
    let Some(bytes) = folder.get("prompt.json") else {
        return Err(vec![Fault::validation("there is no prompt.json").at(file, 1, 1)]);
    };
    let mut texts = BTreeMap::new();
    let mut faults = Vec::new();
    for (name, bytes) in folder.iter().filter(|(name, _)| *name != "prompt.json") {
        match text(&format!("{shown}/{name}"), bytes) {
            Ok(text) => {
                texts.insert(name.clone(), text.to_owned());
            }
            Err(fault) => faults.push(fault),
        }
    }
    let manifest = text(&file, bytes).and_then(|json| {
        // Serde takes the last of two equal keys; a name that is lost in silence is the fault that is hardest to find.
        let mut value = crate::output::parse_json(json).map_err(|why| located(&file, &why))?;
        check::visibility_words(&value).map_err(|fault| fault.at(&file, 1, 1))?;
        if !reuse::is_used(json) {
            let manifest =
                serde_json::from_str::<Manifest>(json).map_err(|error| located(&file, &error.to_string()))?;
            return Ok((manifest, json, Reused::default()));
        }
        let reused = reuse::expand(&mut value, every).map_err(|why| Fault::validation(why).at(&file, 1, 1))?;
        let manifest = serde_json::from_value::<Manifest>(value);
        let manifest = manifest.map_err(|error| Fault::validation(error.to_string()).at(&file, 1, 1))?;
        Ok((manifest, json, reused))
    });
    let (manifest, json, reused) = manifest.map_err(|fault| vec![fault])?;
    if !faults.is_empty() {
        return Err(faults);
    }
    texts.extend(reused.texts.clone());
    let prompt = check::build(&manifest, &Source { folder: shown, manifest: Some(json), texts: &texts })?;
    let (ns, key) = id.split_once('/').unwrap_or((id, ""));
    in_its_place(&prompt, ns, key, &file).map_err(|fault| vec![fault])?;
    Ok((prompt, reused))
}

/// Serde says "… at line 3 column 4"; that becomes the fault's place.
fn located(file: &str, why: &str) -> Fault {
    let place = why.rsplit_once(" at line ").and_then(|(message, place)| {
        let (line, column) = place.split_once(" column ")?;
        Some((message, line.parse().ok()?, column.parse::<usize>().ok()?.max(1)))
    });
    match place {
        Some((message, line, column)) => Fault::validation(message).at(file, line, column),
        None => Fault::validation(why).at(file, 1, 1),
    }
}

fn in_its_place(prompt: &PromptTemplate, ns: &str, key: &str, file: &str) -> Result<(), Fault> {
    match (prompt.ns.as_str(), prompt.key.as_str()) == (ns, key) {
        true => Ok(()),
        false => {
            Err(Fault::validation(format!("prompt `{}` lies in the place of `{ns}/{key}`", prompt.id())).at(file, 1, 1))
        }
    }
}
