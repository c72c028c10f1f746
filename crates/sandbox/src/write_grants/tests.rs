use super::*;

#[test]
fn a_path_is_reserved_or_leads_to_what_is() {
    let tree = WritableTree {
        top: "/p".into(),
        reserved: vec!["/p/.git/hooks".into(), "/p/.mcp.json".into()],
        ..WritableTree::default()
    };
    for (path, expected) in [
        ("/p/src", Relation::Free),
        ("/p/.git", Relation::Above),
        ("/p/.GIT", Relation::Above),
        ("/p/.git/hooks", Relation::Within),
        ("/p/.git/Hooks/pre-commit", Relation::Within),
        ("/p/.git/hooks2", Relation::Free),
        ("/p/.mcp.json", Relation::Within),
    ] {
        assert_eq!(tree.relation(Path::new(path)), expected, "{path}");
    }
    assert!(tree.holds(Path::new("/p/x")) && !tree.holds(Path::new("/p")) && !tree.holds(Path::new("/px")));
}

#[test]
fn what_is_reserved_is_granted_by_no_directory_above_it() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("project");
    std::fs::create_dir_all(top.join("src")).unwrap();
    let mut plan = Plan::new("charon", ["true"]).bind(&top, &top, false);
    let rule = crate::path_rules::PathRule { path: top.join(".claude"), bind: top.clone(), show: Visibility::ReadOnly };
    plan.path_rules.push(rule);
    let (grants, trees) = find(&plan, &[dir.path().to_str().unwrap()]);
    let whole = |path: &Path| {
        let id = held(path).unwrap().2;
        grants.iter().any(|grant| {
            let stat = rustix::fs::fstat(&grant.file).unwrap();
            (stat.st_dev, stat.st_ino) == id
        })
    };
    assert!(!whole(dir.path()) && !whole(&top) && whole(&top.join("src")));
    assert_eq!(trees.len(), 2);
}

#[test]
fn everything_beside_the_way_to_a_reserved_path_is_granted() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    for name in ["git/objects", "src"] {
        std::fs::create_dir_all(top.join(name)).unwrap();
    }
    for name in ["git/config", "git/index", "free"] {
        std::fs::write(top.join(name), "").unwrap();
    }
    std::fs::hard_link(top.join("git/config"), top.join("same")).unwrap();
    std::os::unix::fs::symlink("git/config", top.join("link")).unwrap();
    let mut tree = WritableTree { top: top.to_owned(), reserved: vec![top.join("git/config")], ..Default::default() };
    let same = vec![held(&top.join("git/config")).unwrap().2];
    tree.split(top, &same, &mut Vec::new());
    let names: Vec<_> = tree.granted.keys().map(|path| path.strip_prefix(top).unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["free", "git/index", "git/objects", "src"]);
    assert!(tree.granted_in(&top.join("src/deep")) && !tree.granted_in(&top.join("git")));
    std::fs::rename(top.join("src"), top.join("moved")).unwrap();
    std::fs::create_dir(top.join("src")).unwrap();
    assert!(!tree.granted_in(&top.join("src")), "another directory has taken its name");
}
