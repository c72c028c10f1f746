use super::*;
use crate::spec::ServedBy;

fn bound(source: &Path) -> ProjectDir {
    let (project, at, source) = ("p".to_owned(), "/".to_owned(), source.to_owned());
    ProjectDir { project, at, source, id: None, read_only: true, served_by: Some(ServedBy::Kernel) }
}

#[test]
fn changes_of_files_are_told_by_their_place_in_the_tree() {
    let source = tempfile::tempdir().unwrap();
    for name in ["old", "state"] {
        std::fs::create_dir(source.path().join(name)).unwrap();
    }
    let (said, heard) = mpsc::channel();
    let said = parking_lot::Mutex::new(said);
    let tell: NotifyChange = Arc::new(move |project: &str, path: &str, what| {
        _ = said.lock().send(format!("{project} {path} {}", what["what"]));
    });
    let bound = bound(source.path());
    let (state, stale): (_, MarkStale) = (source.path().join("state"), Arc::new(|_| ()));
    let _watching = watch(&[bound], &state, &tell, &stale);
    let until = |wanted: &str| {
        let mut all = Vec::new();
        while !all.iter().any(|line| line == wanted) {
            all.push(heard.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("no {wanted} in {all:?}")));
        }
        all
    };
    std::fs::write(state.join("acheron.db"), "1").unwrap();
    std::fs::create_dir(state.join("agents")).unwrap();
    std::fs::write(source.path().join("old/a"), "1").unwrap();
    let all = until("p /projects/p/fs/old/a \"created\"");
    std::fs::create_dir(source.path().join("new")).unwrap();
    assert!(!all.concat().contains("state"), "the host hears itself write: {all:?}");
    until("p /projects/p/fs/new \"created\"");
    std::fs::remove_file(source.path().join("old/a")).unwrap();
    until("p /projects/p/fs/old/a \"removed\"");
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::create_dir(elsewhere.path().join("moved")).unwrap();
    std::fs::rename(elsewhere.path().join("moved"), source.path().join("moved")).unwrap();
    until("p /projects/p/fs/moved \"renamed\"");
    std::fs::write(source.path().join("moved/b"), "1").unwrap();
    until("p /projects/p/fs/moved/b \"created\"");
}

#[test]
fn what_the_kernel_could_not_tell_of_is_a_change_of_the_whole() {
    let (mut changes, root) = (BTreeMap::new(), Path::new("/x"));
    note(&mut changes, &Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan), root);
    let said = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let kept = said.clone();
    let stale: MarkStale = Arc::new(move |changed| {
        kept.lock().push(match changed {
            DiskChange::File(path) => format!("file {}", path.display()),
            DiskChange::Everything(path) => format!("all of {}", path.display()),
        });
    });
    spoiled(root, &changes, &stale);
    assert_eq!(*said.lock(), ["all of /x"]);
}

#[test]
fn many_changes_at_once_are_one() {
    let bound = bound(Path::new("/x"));
    let changes = (0..MANY + 1).map(|n| (PathBuf::from(n.to_string()), "created")).collect();
    let lines = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let kept = lines.clone();
    let tell: NotifyChange = Arc::new(move |_: &str, path: &str, what| kept.lock().push(format!("{path} {what}")));
    told(&bound, &changes, &tell);
    assert_eq!(*lines.lock(), ["/projects/p/fs {\"what\":\"changed\",\"files\":201}"]);
}

#[test]
fn as_many_directories_are_watched_as_may_be_however_many_are_made() {
    let source = tempfile::tempdir().unwrap();
    let root = source.path().canonicalize().unwrap();
    let bounds = WatchBounds { device: root.metadata().unwrap().dev(), state: root.join("state") };
    let watcher = parking_lot::Mutex::new(notify::recommended_watcher(|_| ()).unwrap());
    let mut followed = FollowedDirs { most: 4, paths: BTreeSet::new() };
    followed.all(&bounds, &root, &watcher);
    assert_eq!(followed.paths.len(), 1);
    for number in 0..20 {
        let made = root.join(format!("d{number}/deep"));
        std::fs::create_dir_all(&made).unwrap();
        followed.add(&bounds, made.parent().unwrap(), &watcher);
        assert!(followed.paths.len() <= 4, "{:?}", followed.paths);
    }
    std::fs::remove_dir_all(root.join("d0")).unwrap();
    followed.forget(&root.join("d0"), &watcher);
    assert_eq!(followed.paths.len(), 2);
    followed.add(&bounds, &root.join("d7"), &watcher);
    assert!(followed.paths.contains(&root.join("d7/deep")));
}
