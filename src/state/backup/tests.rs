use super::*;

#[test]
fn a_file_that_grows_is_copied_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (path, archive) = (dir.path().join("log"), dir.path().join("a.tar"));
    std::fs::write(&path, "one\n").unwrap();
    let mut builder = Builder::new(File::create(&archive).unwrap());
    let file = File::open(&path).unwrap();
    let size = file.metadata().unwrap().len();
    std::fs::write(&path, "one\ntwo\n").unwrap();
    add(&mut builder, Path::new("log"), size, 0, file.take(size)).unwrap();
    // One that has become shorter is an error: half of it would look like all of it.
    let file = File::open(&path).unwrap();
    std::fs::write(&path, "o").unwrap();
    assert_eq!(add(&mut builder, Path::new("log"), 8, 0, file.take(8)).unwrap_err().code, Code::Busy);
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
    let left_out = backup(&state, &archive).unwrap();
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
    let mut archive = tar::Archive::new(File::open(archive).unwrap());
    let names: Vec<PathBuf> =
        archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().into_owned()).collect();
    assert!(names.contains(&PathBuf::from("agents/mal/home/kept")), "{names:?}");
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
            let mut files = StateFiles { root: open_root(&state).unwrap(), left_out: Vec::new() };
            files.folder(&mut builder, Path::new("agents"), 1).unwrap();
            let bytes = builder.into_inner().unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains("secret"));
        }
        stop.store(true, Ordering::SeqCst);
    });
}
