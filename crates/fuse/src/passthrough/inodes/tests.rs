use super::*;

struct Scene {
    table: MirrorInodes,
    view: Arc<View>,
    info: FileInfo,
    _place: tempfile::TempDir,
}

fn scene() -> Scene {
    let place = tempfile::tempdir().unwrap();
    let host_dir = Arc::new(HostDir::open(place.path(), false).unwrap());
    let info = *host_dir.info();
    let table = MirrorInodes::default();
    table.root("/p", &host_dir, &Arc::default());
    let view = table.views().remove(0);
    Scene { table, view, info, _place: place }
}

impl Scene {
    fn remember(&self, parent: u64, name: &str, inode: u64) -> u64 {
        let info = FileInfo { id: Id { device: 1, inode }, ..self.info };
        self.table.remember(&self.view, parent, OsStr::new(name), &info)
    }

    fn paths(&self, number: u64) -> String {
        let known = self.table.get(number);
        known.map_or("gone".to_owned(), |known| {
            known.paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
        })
    }
}

#[test]
fn a_file_is_followed_under_all_its_names() {
    let scene = scene();
    let root = scene.view.root;
    let dir = scene.remember(root, "dir", 10);
    let file = scene.remember(dir, "a", 11);
    assert_eq!(scene.remember(root, "hard", 11), file);
    assert_eq!(scene.paths(file), "hard dir/a");
    scene.table.moved((root, OsStr::new("dir")), (root, OsStr::new("moved")), false);
    assert_eq!(scene.paths(file), "hard moved/a");
    scene.table.gone(root, OsStr::new("hard"));
    assert_eq!(scene.paths(file), "moved/a");
    let other = scene.remember(root, "other", 12);
    scene.table.moved((root, OsStr::new("other")), (dir, OsStr::new("a")), true);
    assert_eq!((scene.paths(other), scene.paths(file)), ("moved/a".to_owned(), "other".to_owned()));
    scene.table.moved((dir, OsStr::new("a")), (root, OsStr::new("other")), false);
    assert_eq!((scene.paths(other), scene.paths(file)), ("other".to_owned(), String::new()));
}

#[test]
fn what_the_kernel_forgets_is_forgotten_with_its_names() {
    let scene = scene();
    let root = scene.view.root;
    let file = scene.remember(root, "a", 11);
    scene.remember(root, "a", 11);
    scene.table.forget(file, 1);
    assert_eq!(scene.paths(file), "a");
    scene.table.forget(file, 1);
    scene.table.forget(root, 99);
    assert_eq!((scene.paths(file).as_str(), scene.table.len()), ("gone", 1));
    assert!(scene.table.state().names.is_empty());
    for name in 0..100 {
        scene.remember(root, &name.to_string(), 12);
    }
    assert_eq!(scene.table.state().names.len(), NAMES);
}

#[test]
fn bytes_are_kept_while_the_file_is_the_same() {
    let scene = scene();
    let file = scene.remember(scene.view.root, "a", 11);
    let same = FileInfo { id: Id { device: 1, inode: 11 }, ..scene.info };
    assert!(!scene.table.cache_is_valid(file, &same));
    assert!(scene.table.cache_is_valid(file, &same));
    let changed = FileInfo { changed: std::time::SystemTime::UNIX_EPOCH, ..same };
    assert!(!scene.table.cache_is_valid(file, &changed));
    assert!(scene.table.cache_is_valid(file, &changed));
    let another = FileInfo { born: std::time::SystemTime::UNIX_EPOCH, ..changed };
    assert!(!scene.table.cache_is_valid(file, &another));
}
