//! The embedded cartridges and the embedded template of a campaign, as files in memory.

use include_dir::{Dir, include_dir};

use crate::files::Files;

static CARTRIDGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../global-library/cartridges");
static TEMPLATE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../global-library/campaigns/_template");

/// The files of an embedded folder, by path inside it.
fn embedded(dir: &'static Dir<'static>) -> Files {
    fn walk(dir: &'static Dir<'static>, root: &std::path::Path, out: &mut Files) {
        for file in dir.files() {
            if let (Ok(path), Some(text)) = (file.path().strip_prefix(root), file.contents_utf8()) {
                out.insert(path.to_string_lossy().into_owned(), text.to_owned());
            }
        }
        dir.dirs().for_each(|inner| walk(inner, root, out));
    }
    let mut out = Files::new();
    walk(dir, dir.path(), &mut out);
    out
}

/// The files that every new campaign starts with.
pub fn template() -> Files {
    embedded(&TEMPLATE)
}

/// The names of the cartridges that can be played.
pub fn cartridges() -> Vec<String> {
    let names = CARTRIDGES.dirs().filter_map(|dir| Some(dir.path().file_name()?.to_string_lossy().into_owned()));
    names.filter(|name| !name.starts_with('_')).collect()
}

/// The files of one cartridge; the empty one, `_template`, is among them.
pub fn cartridge(name: &str) -> Option<Files> {
    CARTRIDGES.get_dir(name).map(embedded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load;
    use crate::world::ObjectKind;

    #[test]
    fn our_cartridges_are_whole() {
        let world = load::cartridge(&cartridge("brinewick").unwrap()).unwrap();
        assert_eq!(world.faults, []);
        let count = |kind| world.of(kind).count();
        assert!(count(ObjectKind::Loc) >= 8 && count(ObjectKind::Npc) >= 8 && count(ObjectKind::Quest) >= 4);
        assert!(world.indicators.len() >= 4);
        assert_eq!(world.map.nodes.len(), count(ObjectKind::Loc));
        assert_eq!(world.routes.len(), 7);
        assert!(world.quests.iter().all(|quest| quest.main || world.object(&quest.return_to).is_some()));
        let blank = load::cartridge(&cartridge("_template").unwrap()).unwrap();
        assert_eq!(blank.faults, []);
        assert_eq!(cartridges(), ["brinewick", "longdry"], "the template is not for playing");
    }
}
