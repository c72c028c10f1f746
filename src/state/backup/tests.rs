use super::*;

const ALL: BackupChoice = BackupChoice { keys: true, caches: true };

fn files(state: &Path, choice: BackupChoice) -> StateFiles<'static> {
    // Leaked, so that a test can hold it as long as it likes.
    let progress = Box::leak(Box::new(|_: &BackupReport| ()));
    let plan = BackupPlan { choice, mountspec: None, progress };
    StateFiles { root: open_root(state).unwrap(), plan, report: BackupReport::default(), sums: String::new() }
}

fn copy(state: &Path, archive: &Path, choice: BackupChoice) -> BackupReport {
    backup(state, archive, BackupPlan { choice, mountspec: None, progress: &mut |_| () }).unwrap()
}

fn names(archive: &Path) -> Vec<String> {
    let mut archive = tar::Archive::new(File::open(archive).unwrap());
    let names = archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string());
    names.collect()
}

#[test]
fn a_file_that_grows_is_copied_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (path, archive) = (dir.path().join("log"), dir.path().join("a.tar"));
    std::fs::write(&path, "one\n").unwrap();
    let mut builder = Builder::new(File::create(&archive).unwrap());
    let mut files = files(dir.path(), ALL);
    let file = File::open(&path).unwrap();
    let size = file.metadata().unwrap().len();
    std::fs::write(&path, "one\ntwo\n").unwrap();
    files.add(&mut builder, Path::new("log"), size, 0, file.take(size)).unwrap();
    // One that has become shorter is an error: half of it would look like all of it.
    let file = File::open(&path).unwrap();
    std::fs::write(&path, "o").unwrap();
    assert_eq!(files.add(&mut builder, Path::new("log"), 8, 0, file.take(8)).unwrap_err().code, Code::Busy);
    drop(builder);
    let mut archive = tar::Archive::new(File::open(&archive).unwrap());
    let mut text = String::new();
    archive.entries().unwrap().next().unwrap().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "one\n");
}

#[test]
fn nothing_that_an_agent_left_in_its_home_leads_out_or_swells() {
    let dir = tempfile::tempdir().unwrap();
    let (state, home) = (dir.path().join("state"), dir.path().join("state/agents/mal/home"));
    crate::state::open_in(&state).unwrap().close();
    std::fs::create_dir_all(home.join("deep")).unwrap();
    std::fs::write(dir.path().join("secret"), "secret").unwrap();
    std::fs::write(home.join("kept"), "kept").unwrap();
    std::os::unix::fs::symlink(dir.path().join("secret"), home.join("link")).unwrap();
    std::os::unix::fs::symlink(dir.path(), home.join("deep/up")).unwrap();
    let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, home.join("pipe"), kind, mode, 0).unwrap();
    File::create(home.join("sparse")).unwrap().set_len(1 << 40).unwrap();
    let archive = dir.path().join("copy.tar");
    let left_out = copy(&state, &archive, ALL).left_out;
    let said: Vec<String> = left_out.iter().map(|out| format!("{} {}", out.path.display(), out.why)).collect();
    assert_eq!(
        said,
        [
            "agents/mal/home/deep/up a link",
            "agents/mal/home/link a link",
            "agents/mal/home/pipe no plain file",
            "agents/mal/home/sparse mostly holes"
        ]
    );
    let names = names(&archive);
    assert!(names.contains(&"agents/mal/home/kept".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with("secret") || name.ends_with("link")), "{names:?}");
}

/// A program swaps a directory for a link and back while the backup goes through it.
#[test]
fn a_directory_that_is_swapped_for_a_link_is_not_followed() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let dir = tempfile::tempdir().unwrap();
    let (state, home) = (dir.path().join("state"), dir.path().join("state/agents/mal/home"));
    crate::state::open_in(&state).unwrap().close();
    std::fs::create_dir_all(home.join("real")).unwrap();
    std::fs::create_dir(dir.path().join("outside")).unwrap();
    std::fs::write(dir.path().join("outside/secret"), "secret").unwrap();
    std::os::unix::fs::symlink(dir.path().join("outside"), home.join("link")).unwrap();
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let (real, link) = (home.join("real"), home.join("link"));
                rustix::fs::renameat_with(rustix::fs::CWD, &real, rustix::fs::CWD, &link, flags).unwrap();
                done.store(true, Ordering::SeqCst);
            }
        });
        while !done.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        for _ in 0..200 {
            let mut builder = Builder::new(Vec::new());
            let mut files = files(&state, ALL);
            files.folder(&mut builder, Path::new("agents"), 1).unwrap();
            let bytes = builder.into_inner().unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains("secret"));
        }
        stop.store(true, Ordering::SeqCst);
    });
}

#[test]
fn keys_and_caches_are_left_out_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (state, home) = (dir.path().join("state"), dir.path().join("state/agents/eve/home"));
    crate::state::open_in(&state).unwrap().close();
    for (name, text) in [(".cache/big", "x"), (".codex/auth.json", "secret"), ("work/notes", "kept")] {
        std::fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
        std::fs::write(home.join(name), text).unwrap();
    }
    let report = copy(&state, &dir.path().join("a.tar"), BackupChoice { keys: false, caches: false });
    assert_eq!((report.keys, report.caches), (2, 1), "the key of the audit and the log-in; the cache");
    let small = names(&dir.path().join("a.tar"));
    assert!(small.contains(&"agents/eve/home/work/notes".to_owned()), "{small:?}");
    assert!(
        !small.iter().any(|name| name.contains("auth.json") || name.contains("audit.key") || name.contains(".cache"))
    );
    let report = copy(&state, &dir.path().join("b.tar"), ALL);
    assert_eq!((report.keys, report.caches), (0, 0));
    assert_eq!(names(&dir.path().join("b.tar")).len(), small.len() + 4, "two files, a directory and a file in it");
}

/// Every byte of an archive is part of a checksum, or of the form of the archive, which is checked by itself.
#[test]
fn a_backup_that_was_changed_cut_or_lengthened_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    crate::state::open_in(&state).unwrap().close();
    std::fs::create_dir_all(state.join("agents/eve")).unwrap();
    std::fs::write(state.join("agents/eve/words"), "the words of eve").unwrap();
    let archive = dir.path().join("good.tar");
    copy(&state, &archive, ALL);
    let good = std::fs::read(&archive).unwrap();
    let restored = |bytes: &[u8]| {
        let (file, to) = (dir.path().join("bad.tar"), dir.path().join("restored"));
        std::fs::write(&file, bytes).unwrap();
        let done = crate::state::restore::restore(&file, &to);
        assert_eq!(to.exists(), done.is_ok());
        _ = std::fs::remove_dir_all(&to);
        done
    };
    let report = restored(&good).unwrap();
    assert!(report.is_verified && report.has_keys && !report.has_mountspec && report.files == 3, "{report:?}");
    let at = good.windows(16).position(|bytes| bytes == b"the words of eve").unwrap();
    let mut changed = good.clone();
    changed[at] = b'T';
    let error = restored(&changed).unwrap_err().message;
    assert!(error.ends_with("is damaged: agents/eve/words is not what was written"), "{error}");
    // Cut anywhere, and any byte of the middle of each block changed.
    for cut in [0, 511, 512, 4096, good.len() / 2, good.len() - 4096] {
        restored(&good[..cut]).unwrap_err();
    }
    for block in (0..good.len() - 1024).step_by(512 * 7) {
        let mut changed = good.clone();
        changed[block + 100] ^= 1;
        if restored(&changed).is_ok() {
            // Only what fills a block after the end of a file may differ.
            let block: &[u8] = &good[block..block + 512];
            assert!(block[100..].iter().all(|byte| *byte == 0), "{block:?}");
        }
    }
}
