use super::*;

#[test]
fn a_base_that_changed_under_a_path_is_found_and_the_same_bytes_again_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join("base").join(name);
    fs::create_dir_all(at("d")).unwrap();
    for name in ["a", "b", "d/c", "odd\nname"] {
        fs::write(at(name), name).unwrap();
    }
    let base = Root::open(&dir.path().join("base")).unwrap();
    let mut manifest = Manifest::scan(&base, &["b".into()]).unwrap();
    assert_eq!(manifest.len(), 4);
    assert!(manifest.remember_bytes(&base, Path::new("a")).unwrap());
    let file = dir.path().join("manifest");
    manifest.save(&file).unwrap();
    assert_eq!(Manifest::load(&file).unwrap(), manifest);
    let holds = |manifest: &Manifest, path: &str| manifest.holds(&base, Path::new(path)).unwrap();
    for path in ["a", "d", "d/c", "odd\nname", "not there"] {
        assert!(holds(&manifest, path), "{path}");
    }
    // Replaced by a file with the same bytes: the hash says so; where there is none, it counts as another.
    for name in ["a", "d/c"] {
        fs::write(at("new"), name).unwrap();
        fs::rename(at("new"), at(name)).unwrap();
    }
    assert!(holds(&manifest, "a") && !holds(&manifest, "d/c"));
    fs::write(at("a"), "b").unwrap();
    fs::remove_file(at("odd\nname")).unwrap();
    assert!(!holds(&manifest, "a") && !holds(&manifest, "odd\nname"));
    let now = Manifest::scan(&base, &["b".into()]).unwrap();
    manifest.follow(now, |path| path == Path::new("a"));
    assert!(!holds(&manifest, "a"), "its line is kept");
    assert!(holds(&manifest, "d/c") && holds(&manifest, "odd\nname"));
    manifest.take(&base, Path::new("a")).unwrap();
    assert!(holds(&manifest, "a"));
    assert_eq!(manifest.below(Path::new("d")).map(|(path, _)| path.clone()).collect::<Vec<_>>(), [Path::new("d/c")]);
}
