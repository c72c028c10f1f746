use super::*;

#[test]
fn nothing_is_read_through_a_link_or_of_what_is_no_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    std::fs::write(dir.path().join("d/f"), "x").unwrap();
    std::os::unix::fs::symlink("/etc", dir.path().join("out")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("file")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let root = Root::open(dir.path()).unwrap();
    assert!(root.facts(Path::new("out/passwd")).unwrap().is_none());
    assert!(root.list(Path::new("out")).unwrap().is_empty());
    assert!(root.open_file(Path::new("file")).is_err() && root.open_file(Path::new("out/passwd")).is_err());
    assert!(root.open_file(Path::new("pipe")).is_err() && root.facts(Path::new("../x")).is_err());
    assert_eq!(root.read(Path::new("file"), EntryType::Link, 10).unwrap(), b"/etc/passwd");
    assert_eq!(root.read(Path::new("d/f"), EntryType::File, 1).unwrap(), b"x");
    assert!(root.read(Path::new("d/f"), EntryType::File, 0).is_err(), "more than was asked for");
    let names: Vec<_> = root.list(Path::new("")).unwrap().into_iter().map(|(name, facts)| (name, facts.kind)).collect();
    let expected =
        [("d", EntryType::Dir), ("file", EntryType::Link), ("out", EntryType::Link), ("pipe", EntryType::Special)];
    assert_eq!(names, expected.map(|(name, kind)| (name.into(), kind)));
}
