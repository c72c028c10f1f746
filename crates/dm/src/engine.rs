//! The pages of the engine and the rules in their tables: those of the program, with the pages of a library over them. They are
//! read-only; `[OOC]` cites them. A cartridge carries the engine that it is played by.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use include_dir::{Dir, include_dir};

use crate::delta::apply::sum;
use crate::files::Files;
use crate::mechanics::{combat, governance, social};
use crate::world::Fault;

static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../global-library/dm/engine");

/// The shape of the panels. It belongs to the program: a library does not change it.
pub const PANELS: &str = "panels.json";

/// The mechanics' tables, read once.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub combat: combat::CombatRules,
    pub social: social::SocialRules,
    pub governance: governance::GovernanceRules,
}

/// The pages by their path under `engine/`, and the rules in them.
#[derive(Clone, Debug)]
pub struct Engine {
    pages: BTreeMap<String, String>,
    pub rules: Rules,
    /// The sum of a library's own pages; empty for the engine of the program.
    pub mark: String,
}

impl Engine {
    /// The program's pages, with these over them. A page whose tables cannot be read is a fault.
    pub fn with(own: Files) -> Result<Engine, Fault> {
        let mut pages = shipped_pages();
        let changed: BTreeMap<String, String> =
            own.into_iter().filter(|(path, text)| path != PANELS && pages.get(path) != Some(text)).collect();
        let mark = if changed.is_empty() { String::new() } else { sum(&format!("{changed:?}")) };
        pages.extend(changed);
        let text = |path: &str| pages.get(path).map(String::as_str).unwrap_or_default();
        let rules = Rules {
            combat: combat::CombatRules::read(text("mechanics/COMBAT.md"))?,
            social: social::SocialRules::read(text("mechanics/SOCIAL_INVESTIGATION.md"))?,
            governance: governance::GovernanceRules::read(text("mechanics/GOVERNANCE.md"))?,
        };
        Ok(Engine { pages, rules, mark })
    }

    pub fn page(&self, path: &str) -> Option<&str> {
        self.pages.get(path).map(String::as_str)
    }

    /// Every page, by path.
    pub fn pages(&self) -> &BTreeMap<String, String> {
        &self.pages
    }
}

/// The pages in the program.
fn shipped_pages() -> BTreeMap<String, String> {
    fn walk(dir: &'static Dir<'_>, out: &mut BTreeMap<String, String>) {
        for file in dir.files() {
            if let Some(text) = file.contents_utf8() {
                out.insert(file.path().to_string_lossy().into_owned(), text.to_owned());
            }
        }
        dir.dirs().for_each(|inner| walk(inner, out));
    }
    let mut out = BTreeMap::new();
    walk(&PAGES, &mut out);
    out
}

/// An engine that cartridges share. The default is the program's.
#[derive(Clone, Debug)]
pub struct SharedEngine(Arc<Engine>);

impl SharedEngine {
    pub fn new(engine: Engine) -> SharedEngine {
        SharedEngine(Arc::new(engine))
    }
}

impl std::ops::Deref for SharedEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0
    }
}

impl Default for SharedEngine {
    fn default() -> Self {
        static SHIPPED: LazyLock<SharedEngine> = LazyLock::new(|| {
            // The tests read the pages of the program; a fault in them never leaves the workshop.
            let empty = || Engine { pages: shipped_pages(), rules: Rules::default(), mark: String::new() };
            SharedEngine::new(Engine::with(Files::new()).unwrap_or_else(|_| empty()))
        });
        SHIPPED.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_library_stands_over_the_programs_and_a_faulty_one_is_refused() {
        assert!(Engine::with(Files::new()).unwrap().mark.is_empty());
        let combat = "mechanics/COMBAT.md".to_owned();
        let text = shipped_pages()[&combat].replace("| fist | d3 | - |", "| fist | d12 | - |");
        let own = Engine::with(Files::from([(combat.clone(), text)])).unwrap();
        assert_eq!((own.rules.combat.weapon("fist").die, own.mark.is_empty()), (12, false));
        assert!(own.page("KERNEL.md").is_some(), "the other pages are the program's");
        assert!(Engine::with(Files::from([(combat, "# Combat\n".into())])).is_err());
        let panels = Engine::with(Files::from([(PANELS.into(), "{}".into())])).unwrap();
        assert!(panels.page(PANELS).unwrap().contains("STATE_PANEL"), "the panels are the program's own");
    }
}
