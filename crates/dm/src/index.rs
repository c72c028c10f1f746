//! An index page by `INDEX_SPEC.md`: head, table, handle mapping, entry pointers. Reading, checking, and adding a handle.

use crate::files::Files;
use crate::md::{self, Row, Table};
use crate::rule::handle;
use acheron_base::{Error, Result};

pub struct Index {
    tables: Vec<Table>,
    mapping: String,
    pointers: Vec<(String, String)>,
}

pub fn read(text: &str) -> Index {
    let pointers = md::bullets(md::section(text, "Entry Pointers").unwrap_or_default())
        .filter_map(|line| line.split_once('→').or_else(|| line.split_once("->")))
        .map(|(handle, path)| (handle.trim().to_owned(), path.trim().to_owned()));
    Index {
        tables: md::tables(text).into_iter().filter(|table| table.has("@handle") || table.has("handle")).collect(),
        mapping: md::section(text, "Handle Mapping").unwrap_or_default().to_owned(),
        pointers: pointers.collect(),
    }
}

impl Index {
    /// The rows of the main table; a mapping written as a table has no names and is passed over.
    pub fn rows(&self) -> impl Iterator<Item = (&Table, &Row)> {
        let main = self.tables.iter().filter(|table| table.heading != "Handle Mapping");
        main.flat_map(|table| table.rows.iter().map(move |row| (table, row)))
    }

    pub fn aliases(&self, handle: &str) -> Vec<String> {
        aliases(&self.mapping, handle)
    }

    pub fn pointer(&self, handle: &str) -> Option<&str> {
        self.pointers.iter().find(|(own, _)| own == handle).map(|(_, path)| path.as_str())
    }
}

/// The aliases of `- @handle: ["a", "b"]` or of a table row `| @handle | ["a"] |`.
pub fn aliases(text: &str, handle: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches(['-', '|', ' ']).trim_end_matches(['|', ' ']);
        let rest = line.strip_prefix(handle)?.trim_start();
        rest.strip_prefix([':', '|']).map(str::trim)
    });
    lines.flat_map(|list| serde_json::from_str::<Vec<String>>(list).unwrap_or_default()).collect()
}

/// A pointer's path: from the cartridge's root, or beside the index.
pub fn beside(index: &str, to: &str, files: &Files) -> String {
    let to = to.trim_matches('`');
    if files.contains_key(to) {
        return to.to_owned();
    }
    match index.rsplit_once('/') {
        // A page that is missing is missed beside its index.
        Some((folder, _)) if files.contains_key(&format!("{folder}/{to}")) || !to.contains('/') => {
            format!("{folder}/{to}")
        }
        _ => to.to_owned(),
    }
}

/// The parts that the form asks for and the page lacks.
pub fn missing(text: &str) -> Vec<&'static str> {
    let mut missing = Vec::new();
    let head = text.lines().position(|line| line.trim() == "RAG_HEAD:" || line.trim().starts_with("## RAG_HEAD"));
    if head.is_none() {
        missing.push("RAG_HEAD:");
    }
    for title in ["Handle Mapping", "Entry Pointers"] {
        if md::section(text, title).is_none() {
            missing.push(title);
        }
    }
    missing
}

/// The bullet lines under `RAG_HEAD:` (or the older `## RAG_HEAD`).
pub fn head(text: &str) -> Vec<&str> {
    let mut lines = text.lines().skip_while(|line| {
        let line = line.trim();
        line != "RAG_HEAD:" && !line.starts_with("## RAG_HEAD")
    });
    lines.next();
    lines.skip_while(|line| line.trim().is_empty()).take_while(|line| line.trim().starts_with('-')).collect()
}

/// The page with a handle in its mapping.
pub fn register(text: &str, own: &str, aliases: &[String]) -> Result<String> {
    let own = handle(own)?;
    let mapping = md::section(text, "Handle Mapping")
        .ok_or_else(|| Error::invalid("the index has no section \"Handle Mapping\""))?;
    let taken =
        |name: &str| mapping.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '@')).any(|word| word == name);
    if taken(&own) {
        return Err(Error::already_exists(format!("{own} is in the index")));
    }
    let list = serde_json::to_string(aliases).map_err(|fault| Error::internal(fault.to_string()))?;
    let body = mapping.trim();
    let gap = if body.is_empty() { "" } else { "\n" };
    md::patch_section(text, &format!("## Handle Mapping\n\n{body}{gap}- {own}: {list}"), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "RAG_HEAD:\n- one\n- two\n\n| @handle | name | one_line_summary | status |\n|---|---|---|---|\n| @ab | Ab | x | active |\n\n\
                        ## Handle Mapping\n\n- @ab: [\"the ab\"]\n\n## Entry Pointers\n- @ab → ab.md\n";

    #[test]
    fn row_139_a_handle_is_registered_once_and_in_its_place() {
        let page = register(PAGE, "@b", &["bee".into()]).unwrap();
        assert!(page.contains("- @ab: [\"the ab\"]\n- @b: [\"bee\"]\n\n## Entry Pointers"));
        assert_eq!(read(&page).aliases("@b"), ["bee"]);
        assert_eq!(register(&page, "@b", &[]).unwrap_err().code, acheron_base::Code::AlreadyExists);
        assert!(register(PAGE, "@Bad One", &[]).is_err());
        assert!(register(PAGE, "@a", &[]).is_ok(), "@a is not @ab");
    }

    #[test]
    fn row_54_what_an_index_lacks_is_named() {
        assert_eq!(missing(PAGE), Vec::<&str>::new());
        assert_eq!(missing(PAGE.split("## Entry").next().unwrap()), ["Entry Pointers"]);
        assert_eq!(head(PAGE), ["- one", "- two"]);
    }
}
