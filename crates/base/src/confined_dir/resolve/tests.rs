use std::os::unix::fs::symlink;

use super::*;

#[test]
fn a_path_stands_where_its_links_lead() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    std::fs::create_dir_all(root.join("in/a/b")).unwrap();
    std::fs::write(root.join("in/a/file"), "").unwrap();
    std::fs::write(root.join("secret"), "").unwrap();
    for (name, to) in [
        ("in/to-a", "a"),
        ("in/chain", "to-a/b"),
        ("in/a/up", "../a/./file"),
        ("in/self", "self"),
        ("in/abs", "/etc"),
        ("in/out", "../secret"),
        ("in/far", "a/../../secret"),
        ("in/away", "../in/a"),
        ("in/dangling", "a/none"),
        ("in/through", "a/b/../file"),
    ] {
        symlink(to, root.join(name)).unwrap();
    }
    let place = ConfinedDir::open(root.join("in")).unwrap();
    let said = |path: &str, hidden: &str| match place.resolve(path, &|path, _| path != hidden) {
        Ok(ResolvedPath { path, there: true }) => path,
        Ok(ResolvedPath { path, there: false }) => format!("- {path}"),
        Err(error) => format!("! {}", error.code.name()),
    };
    for (path, expected) in [
        ("", ""),
        (".", ""),
        ("a//b/", "a/b"),
        ("to-a/file", "a/file"),
        ("chain", "a/b"),
        ("a/up", "a/file"),
        ("to-a/up", "a/file"),
        ("through", "a/file"),
        ("dangling", "- a/none"),
        ("dangling/x", "- a/none/x"),
        ("none/x", "- none/x"),
        ("a/file/x", "- a/file/x"),
        ("abs/passwd", "! forbidden"),
        ("out", "! forbidden"),
        ("far", "! forbidden"),
        ("away", "! forbidden"),
    ] {
        assert_eq!(said(path, "nothing"), expected, "{path}");
    }
    assert_eq!(place.resolve("self", &|_, _| true).unwrap_err().errno(), libc::ELOOP);
    // What is hidden is as what is not there, also as a step on the way.
    for (path, hidden, expected) in [
        ("a/file", "a", "- a/file"),
        ("to-a/file", "a", "- a/file"),
        ("to-a/file", "to-a", "- to-a/file"),
        ("through", "a/b", "- a/b"),
        ("through", "a/file", "- a/file"),
    ] {
        assert_eq!(said(path, hidden), expected, "{path} without {hidden}");
    }
}

#[test]
fn a_place_without_links_follows_none() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    std::fs::create_dir(root.join("a")).unwrap();
    std::fs::write(root.join("a/file"), "text").unwrap();
    symlink("a", root.join("link")).unwrap();
    symlink("a/file", root.join("alias")).unwrap();
    let place = ConfinedDir::open(root).unwrap().without_links();
    assert_eq!(place.read("a/file").unwrap(), b"text");
    let errors = [
        place.read("link/file").unwrap_err(),
        place.read("alias").unwrap_err(),
        place.names("link").unwrap_err(),
        place.stat("alias").unwrap_err(),
        place.write("link/new", b"x").unwrap_err(),
        place.append("alias", b"x").unwrap_err(),
        place.make_dir("link/new").unwrap_err(),
        place.rename("a/file", "link/new").unwrap_err(),
        place.remove("link/file").unwrap_err(),
        place.within("link").unwrap_err(),
    ];
    for (path, expected) in
        [("a/file", false), ("link", true), ("link/file", true), ("link/none", true), ("none", false)]
    {
        assert_eq!(place.has_link(path), expected, "{path}");
    }
    for error in errors {
        assert!(error.message.ends_with("is a link, and links are not followed"), "{error}");
    }
    assert_eq!(std::fs::read(root.join("a/file")).unwrap(), b"text");
}
