//! Descriptors that a host was given by its own parent lead no program out of its sandbox.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::{block, check, program, run, secret, shell};
use acheron_base::{Code, Error};
use acheron_sandbox::{Plan, Streams, read_process, start};

/// A directory of the host, held by a descriptor that every child of this process inherits.
fn inherited(path: &Path) -> OwnedFd {
    let held = std::fs::File::open(path).unwrap();
    // Far from the numbers that the sandbox uses itself.
    // SAFETY: a copy of an open descriptor, owned here alone; without the flag that closes it.
    let number = unsafe { libc::fcntl(held.as_raw_fd(), libc::F_DUPFD, 200) };
    assert!(number >= 200);
    // SAFETY: as above.
    unsafe { std::os::fd::FromRawFd::from_raw_fd(number) }
}

fn refused(cwd: impl Into<PathBuf>, mut plan: Plan) -> Error {
    plan.cwd = cwd.into();
    block(run(&plan)).expect_err("it ran")
}

#[test]
fn no_working_directory_leads_through_a_descriptor() {
    let (home, _) = secret();
    let held = inherited(home.path());
    let project = tempfile::tempdir().unwrap();
    let out = format!("/proc/self/fd/{}", held.as_raw_fd());
    std::os::unix::fs::symlink(&out, project.path().join("way")).unwrap();
    let plan = || shell("ls").bind(project.path(), "/projects/p/fs", false);
    for cwd in [&out, &format!("{out}/.."), "/projects/p/fs/way", "/proc/self/cwd", "/proc/self/root", "/proc/1/cwd"] {
        let error = refused(cwd, plan());
        assert!(matches!(error.code, Code::NotFound | Code::Forbidden), "{cwd}: {error:?}");
        assert!(error.message.contains("the working directory"), "{cwd}: {error}");
    }
}

#[test]
fn a_working_directory_lies_under_the_new_root() {
    let project = tempfile::tempdir().unwrap();
    std::fs::create_dir(project.path().join("src")).unwrap();
    std::os::unix::fs::symlink("../../../../../usr", project.path().join("up")).unwrap();
    std::os::unix::fs::symlink("/projects/p/fs/src", project.path().join("in")).unwrap();
    for (cwd, expected) in [
        ("/projects/p/fs/src", "/projects/p/fs/src"),
        ("/projects/p/fs/in", "/projects/p/fs/src"),
        ("/projects/p/fs/up", "/usr"),
        ("/../../tmp", "/tmp"),
        ("/", "/"),
    ] {
        let mut plan = shell("pwd -P").bind(project.path(), "/projects/p/fs", false);
        plan.cwd = cwd.into();
        check(&plan, expected);
    }
    std::fs::write(project.path().join("file"), "").unwrap();
    let error = refused("/projects/p/fs/file", shell("ls").bind(project.path(), "/projects/p/fs", false));
    assert!(error.message.ends_with("Not a directory (os error 20)"), "{error}");
}

#[test]
fn no_process_of_a_sandbox_keeps_what_it_inherited() {
    let (home, _) = secret();
    let held = inherited(home.path());
    for bare in [false, true] {
        let mut plan =
            shell(&format!("ls /proc/self/fd; test -e /proc/self/fd/{} && echo kept; read x", held.as_raw_fd()));
        plan.cwd = "/".into();
        plan.bare = bare;
        block(async {
            let mut running = start(program(), &plan, Streams::Piped).await.unwrap();
            let keeper = read_process(running.init).expect("init lives").parent;
            // Only root may look into processes that nobody is to look into.
            for pid in [keeper, running.init].iter().filter(|_| nix::unistd::getuid().is_root()) {
                let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
                let leads = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
                let leads: Vec<PathBuf> = leads.filter(|to| to.starts_with(home.path())).collect();
                assert_eq!(leads, Vec::<PathBuf>::new(), "process {pid}, bare {bare}");
            }
            let seen = crate::finish(&mut running).await.unwrap();
            assert_eq!(seen.out, "0\n1\n2\n3\n", "bare {bare}");
        });
        let error = refused(format!("/proc/self/fd/{}", held.as_raw_fd()), plan);
        assert_eq!(error.code, Code::NotFound, "bare {bare}");
    }
}

#[test]
fn a_directory_is_no_stream() {
    let (home, _) = secret();
    let directory = std::fs::File::open(home.path()).unwrap();
    let refused = block(start(program(), &shell("cd /proc/self/fd/0 && ls"), Streams::Terminal(directory.into())));
    let error = refused.err().expect("it ran");
    assert_eq!(
        error.message,
        "standard input is a directory, which would lead out of the sandbox; give a file or a pipe"
    );
}
