//! The embedded pages of the engine and the rules in their tables. They are read-only; `[OOC]` cites them.

use std::sync::OnceLock;

use include_dir::{Dir, include_dir};

use crate::mechanics::{combat, governance, social};
use crate::world::Fault;

static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../global-library/dm/engine");

/// The mechanics' tables, read once.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub combat: combat::CombatRules,
    pub social: social::SocialRules,
    pub governance: governance::GovernanceRules,
}

/// A page by its path under `engine/`.
pub fn page(path: &str) -> Option<&'static str> {
    PAGES.get_file(path)?.contents_utf8()
}

/// Every page, sorted by path.
pub fn pages() -> Vec<(String, &'static str)> {
    fn walk(dir: &'static Dir<'_>, out: &mut Vec<(String, &'static str)>) {
        for file in dir.files() {
            if let Some(text) = file.contents_utf8() {
                out.push((file.path().to_string_lossy().into_owned(), text));
            }
        }
        dir.dirs().for_each(|inner| walk(inner, out));
    }
    let mut out = Vec::new();
    walk(&PAGES, &mut out);
    out.sort();
    out
}

pub fn rules() -> Result<&'static Rules, Fault> {
    static RULES: OnceLock<Result<Rules, Fault>> = OnceLock::new();
    let read = || {
        let text = |path: &str| page(path).unwrap_or_default();
        Ok(Rules {
            combat: combat::CombatRules::read(text("mechanics/COMBAT.md"))?,
            social: social::SocialRules::read(text("mechanics/SOCIAL_INVESTIGATION.md"))?,
            governance: governance::GovernanceRules::read(text("mechanics/GOVERNANCE.md"))?,
        })
    };
    RULES.get_or_init(read).as_ref().map_err(Clone::clone)
}

/// The page that answers a question about the rules: the one that speaks of most of its words, and the line that does.
pub fn cite(question: &str) -> (String, String) {
    let words: Vec<String> = question
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 1)
        .map(str::to_lowercase)
        .filter(|word| {
            !matches!(word.as_str(), "what" | "is" | "the" | "how" | "do" | "does" | "of" | "an" | "my" | "to" | "are")
        })
        .collect();
    let score = |line: &str| {
        let lower = line.to_lowercase();
        let own: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
        words.iter().filter(|word| own.contains(&word.as_str())).count()
    };
    let mut best = (0, "CLI_SPEC.md".to_owned(), "the headers and their forms");
    for (path, text) in pages().into_iter().filter(|(path, _)| path.ends_with(".md")) {
        for line in text.lines().filter(|line| !line.starts_with("|--") && line.len() > 3) {
            let points = score(line);
            if points > best.0 {
                best = (points, path.clone(), line);
            }
        }
    }
    let line = best.2.trim_start_matches(['#', '-', '|', ' ']).trim_end_matches(['|', ' ']);
    (best.1, crate::md::clip(line, 160))
}
