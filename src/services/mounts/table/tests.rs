use super::*;

fn names(lines: &[(&str, &str)]) -> AllBindings {
    AllBindings(lines.iter().map(|(name, target)| ((*name).to_owned(), (*target).to_owned())).collect())
}

#[test]
fn a_path_is_followed_through_every_binding() {
    let names = names(&[
        ("/agents/a/work", "/projects/here/fs"),
        ("/agents/a/src", "/agents/a/work/src"),
        ("/projects/here/pages", "/global/library"),
    ]);
    for (path, expected) in [
        ("/agents/a/work", "/projects/here/fs true"),
        ("/agents/a/src/main.rs", "/projects/here/fs/src/main.rs true"),
        ("/projects/here/pages/Index.md", "/global/library/Index.md true"),
        ("/agents/a/memory", "/agents/a/memory false"),
        ("/agents/b/work", "/agents/b/work false"),
        ("/agents/a/workshop", "/agents/a/workshop false"),
        ("/", "/ false"),
    ] {
        let (end, matched) = names.resolve(path).unwrap();
        assert_eq!(format!("{end} {matched}"), expected);
    }
}

#[test]
fn circles_are_refused() {
    let names =
        names(&[("/agents/a/x", "/projects/p"), ("/agents/a/y", "/agents/a/x"), ("/projects/q/z", "/projects/p")]);
    for (path, target, why) in [
        ("/agents/a/x", "/agents/a/x", "a name cannot lead to itself"),
        ("/agents/a/x", "/agents/a/x/deep", "a name cannot lead to itself"),
        ("/agents/a/x", "/agents/a/y", "`/agents/a/x` leads in a circle"),
        ("/agents/a/z", "/agents/a", "`/agents/a/z` lies in `/agents/a`: a walk there would never end"),
        ("/agents/a/z", "/", "`/agents/a/z` lies in `/`: a walk there would never end"),
        ("/projects/p/z", "/agents/a/y", "`/projects/p/z` lies in `/projects/p`: a walk there would never end"),
        (
            "/projects/p/z",
            "/projects/q",
            "`/projects/p/z` can be reached through `/projects/p`: a walk there would never end",
        ),
    ] {
        assert_eq!(names.check(path, target).unwrap_err().message, why);
    }
    names.check("/agents/a/z", "/agents/a/y").unwrap();
    names.check("/projects/p/pages", "/global/library").unwrap();
}

#[test]
fn only_new_names_in_ones_own_directory_or_a_project_can_be_bound() {
    assert_eq!(full("a", "agents/self/x").unwrap(), "/agents/a/x");
    assert_eq!(place("a", "/agents/a/x").unwrap(), ("/agents/a", "x"));
    assert_eq!(place("a", "/projects/p/x").unwrap(), ("/projects/p", "x"));
    for path in [
        "/agents/b/x",
        "/agents/a/x/y",
        "/agents/a/",
        "/global/x",
        "/agents/a/.x",
        "/agents/a/x y",
        "/projects/p/fs/x",
        "/projects/p",
    ] {
        assert!(place("a", path).is_err(), "{path}");
    }
}
