//! Renames a page: its new path, and the links to it in other pages, as one change. `service` and `files` use it.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::wiki::{PAGE, Wiki};
use crate::service::ChangeFiles;
use acheron_base::confined_dir::FileChange;
use acheron_base::{Error, Result};
use acheron_recall::page::{ROOT, check_path};
use acheron_recall::rename::Renaming;

/// The result of renaming a page.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(rename = "Renamed")]
pub struct RenamedPage {
    pub from: String,
    pub to: String,
    /// The other pages whose links were written anew.
    pub relinked: Vec<String>,
}

impl Wiki {
    /// Gives the page at `from` the path `to`. Transcripts are left as they are.
    pub fn rename(&self, by: &dyn ChangeFiles, from: &str, to: &str) -> Result<RenamedPage> {
        check_path(from)?;
        check_path(to)?;
        if from == ROOT {
            return Err(Error::invalid(format!("{ROOT} is the entry page, and keeps its name")));
        }
        self.progress.wait();
        let _writing = self.writing.lock();
        self.no_link(from)?;
        if self.place().exists(to)? {
            return Err(Error::already_exists(format!(
                "there is a page {to} already: remove it, or take another name"
            )));
        }
        let (changes, renamed) = self.planned(from, to)?;
        by.change_files(&self.place(), changes, json!(renamed))?;
        let changed = [&renamed.from, &renamed.to].into_iter().chain(&renamed.relinked);
        changed.for_each(|path| self.refresh(path));
        Ok(renamed)
    }

    fn planned(&self, from: &str, to: &str) -> Result<(Vec<FileChange>, RenamedPage)> {
        let index = self.index();
        let missing = || Error::not_found(format!("there is no page {from}"));
        let page = index.page(from).ok_or_else(missing)?;
        let renaming = Renaming::new(&index, page, to);
        let own = self.text(from)?;
        let own = renaming.text(from, &own).unwrap_or(own);
        let mut changes = vec![FileChange::write(to, own), FileChange::remove(from)];
        let mut relinked = Vec::new();
        for path in index.backlinks(page) {
            if check_path(&path).is_err() {
                continue; // a transcript
            }
            if let Some(text) = renaming.text(&path, &self.text(&path)?) {
                if text.len() as u64 > PAGE {
                    return Err(Error::too_large(format!(
                        "{path} would be longer than a page may be: shorten it first"
                    )));
                }
                changes.push(FileChange::write(path.clone(), text));
                relinked.push(path);
            }
        }
        Ok((changes, RenamedPage { from: from.to_owned(), to: to.to_owned(), relinked }))
    }
}
