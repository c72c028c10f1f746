use super::*;

#[test]
fn nothing_but_names_below_the_root_is_found() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("root/sub")).unwrap();
    std::fs::write(place.path().join("secret"), "s").unwrap();
    std::fs::write(place.path().join("root/sub/file"), "f").unwrap();
    for (name, to) in [("up", ".."), ("abs", "/etc"), ("inside", "sub")] {
        std::os::unix::fs::symlink(to, place.path().join("root").join(name)).unwrap();
    }
    let host_dir = HostDir::open(&place.path().join("root"), false).unwrap();
    for (path, expected) in [
        ("sub/file", None),
        ("", None),
        ("up", None),
        ("../secret", Some(Errno::XDEV)),
        ("/etc/passwd", Some(Errno::XDEV)),
        ("up/secret", Some(Errno::LOOP)),
        ("abs/passwd", Some(Errno::LOOP)),
        ("inside/file", Some(Errno::LOOP)),
        ("none", Some(Errno::NOENT)),
    ] {
        assert_eq!(host_dir.open_path(Path::new(path)).err(), expected, "{path:?}");
    }
}

#[test]
fn what_is_mounted_below_is_an_empty_directory() {
    let root = HostDir::open(Path::new("/"), true).unwrap();
    let held = root.open_path(Path::new("")).unwrap();
    let proc = look(&held, OsStr::new("proc")).unwrap();
    assert!(proc.is_covered() && proc.kind == FileType::Directory);
    assert!(!proc.same(&look(&held, OsStr::new("etc")).unwrap()));
    for name in ["", ".", "..", "etc/passwd", "proc/self"] {
        assert_eq!(look(&held, OsStr::new(name)).unwrap_err(), Errno::NOENT, "{name:?}");
    }
    assert_eq!(root.open_path(Path::new("proc/self")).unwrap_err(), Errno::XDEV);
}

#[test]
fn what_is_held_stays_what_it_was() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("a"), "old").unwrap();
    let host_dir = HostDir::open(place.path(), false).unwrap();
    let held = host_dir.open_path(Path::new("a")).unwrap();
    let before = FileInfo::of(&held).unwrap();
    std::fs::rename(place.path().join("a"), place.path().join("b")).unwrap();
    std::fs::write(place.path().join("a"), "new").unwrap();
    let opened = reopen(&held, OFlags::RDONLY).unwrap();
    assert_eq!(std::io::read_to_string(std::fs::File::from(opened)).unwrap(), "old");
    let root = host_dir.open_path(Path::new("")).unwrap();
    assert!(before.same(&look(&root, OsStr::new("b")).unwrap()));
    assert!(!before.same(&look(&root, OsStr::new("a")).unwrap()));
}
