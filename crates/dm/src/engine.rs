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
