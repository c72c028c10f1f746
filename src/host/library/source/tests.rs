use super::*;

#[test]
fn the_program_carries_the_library_of_the_repository() {
    let repository = LibrarySource::Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("global-library"));
    assert_eq!(embedded(), repository.pages().unwrap());
    assert!(embedded().iter().any(|page| page.path == "Index.md"));
}

#[test]
fn a_folder_gives_its_texts_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let place = ConfinedDir::open(dir.path()).unwrap();
    for (path, bytes) in [
        ("Index.md", &b"index"[..]),
        ("topics/a.md", b"a"),
        ("topics/.a.md.swp", b"swap"),
        (".git/config", b"x"),
        ("picture.png", b"\xff\xfe\x00"),
        ("huge.md", &vec![b'x'; PAGE_LIMIT as usize + 1]),
    ] {
        place.write(path, bytes).unwrap();
    }
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link.md")).unwrap();
    let pages = LibrarySource::Folder(dir.path().to_owned()).pages().unwrap();
    let paths: Vec<_> = pages.iter().map(|page| page.path.as_str()).collect();
    assert_eq!(paths, ["Index.md", "topics/a.md"]);
}

#[test]
fn the_spec_comes_first_then_the_folder_beside_then_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path();
    let beside = || Some(here.join("global-library"));
    assert_eq!(LibrarySource::choose(None, here, None), LibrarySource::Embedded);
    std::fs::create_dir(here.join("global-library")).unwrap();
    assert_eq!(LibrarySource::choose(None, here, beside()), LibrarySource::Embedded, "an empty folder is no library");
    std::fs::write(here.join("global-library/Index.md"), "x").unwrap();
    assert_eq!(LibrarySource::choose(None, here, beside()), LibrarySource::Folder(here.join("global-library")));
    assert_eq!(LibrarySource::choose(Some("/books"), here, beside()), LibrarySource::Folder(PathBuf::from("/books")));
    assert!(LibrarySource::Folder(here.join("absent")).pages().is_err());
}
