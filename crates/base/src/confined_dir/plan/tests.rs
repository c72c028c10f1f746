use super::*;
use crate::error::Code;

fn changes() -> Vec<FileChange> {
    vec![
        FileChange::write("a/new.md", "new"),
        FileChange::write("old.md", "changed"),
        FileChange::remove("gone.md"),
        FileChange::make_dir("dir/below"),
    ]
}

fn place() -> (tempfile::TempDir, ConfinedDir) {
    let dir = tempfile::tempdir().unwrap();
    let place = ConfinedDir::open(dir.path()).unwrap();
    place.write("old.md", b"old").unwrap();
    place.write("gone.md", b"here").unwrap();
    (dir, place)
}

fn made(place: &ConfinedDir) -> bool {
    let read = |name: &str| place.read_if_exists(name).unwrap();
    let made = [
        read("a/new.md").as_deref() == Some(b"new"),
        read("old.md").as_deref() == Some(b"changed"),
        read("gone.md").is_none(),
        place.exists("dir/below").unwrap(),
    ];
    assert!(made.iter().all(|it| *it == made[0]), "half made: {made:?}");
    made[0]
}

fn leftovers(dir: &std::path::Path) -> usize {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with(super::super::UNFINISHED)).count()
}

#[test]
fn prepared_changes_change_nothing_and_are_made_as_often_as_one_likes() {
    let (dir, place) = place();
    let plan = place.prepare(changes()).unwrap();
    assert!(!made(&place) && !place.exists("a").unwrap(), "a directory was made before its file");
    plan.make(&place).unwrap();
    assert!(made(&place));
    assert_eq!(leftovers(dir.path()), 0);
    plan.make(&place).unwrap();
    assert!(made(&place));
}

#[test]
fn a_later_process_makes_what_was_left_from_the_stored_plan() {
    for done in 0..4 {
        let (_dir, place) = place();
        let plan = place.prepare(changes()).unwrap();
        let stored = serde_json::to_string(&plan).unwrap();
        // The process died after `done` steps.
        let mut part = plan;
        part.steps.truncate(done);
        part.make(&place).unwrap();
        drop((part, place.read("old.md")));
        serde_json::from_str::<FilePlan>(&stored).unwrap().make_again().unwrap();
        assert!(made(&place), "after {done}");
    }
}

#[test]
fn what_cannot_be_prepared_leaves_nothing() {
    let (dir, place) = place();
    std::os::unix::fs::symlink("old.md", dir.path().join("link.md")).unwrap();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    for (last, code) in [("link.md", Code::Forbidden), ("../out.md", Code::Forbidden)] {
        let refused = place.prepare(vec![FileChange::write("old.md", "x"), FileChange::write(last, "y")]);
        assert_eq!(refused.unwrap_err().code, code, "{last}");
    }
    assert!(place.prepare(vec![FileChange::write("old.md", "x"), FileChange::write("folder", "y")]).is_err());
    assert_eq!(leftovers(dir.path()), 0);
    assert_eq!(place.read("old.md").unwrap(), b"old");
}
