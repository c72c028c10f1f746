//! A bound directory behaves as the directory itself: operation by operation, errno by errno, whether the kernel binds it
//! or the mount mirrors it.

use expect_test::expect;

use crate::common::{python, session};
use crate::test_host::TestHost;

/// The same directory three times: bound by the kernel, mirrored, and mirrored to be read only.
const SPEC: &str = r#"{
    "layout": "acheron-1",
    "agents": { "charon": { "projects": ["bound", "mirrored", "shut"] } },
    "projects": {
        "bound": { "binds": { "/": { "path": ".", "read_only": false } } },
        "mirrored": { "binds": { "/": { "path": ".", "read_only": false, "mirror": true } } },
        "fixed": { "binds": { "/": { "path": "." } } },
        "shut": { "binds": { "/": { "path": ".", "mirror": true } } }
    }
}"#;

/// How an attempt ended: what it returned, or the name of the errno.
pub const ATTEMPT: &str = r#"
import ctypes, errno, fcntl, mmap, os, socket, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what, act):
    try: said = act()
    except OSError as fault: said = errno.errorcode[fault.errno]
    print(what, said if isinstance(said, (str, int, bytes, list, tuple)) else "done")
def put(path, data=b"x"):
    with open(path, "wb") as f: f.write(data)
def get(path):
    with open(path, "rb") as f: return f.read()
"#;

/// Does everything that ordinary programs do, and says how each attempt ended.
pub const TABLE: &str = include_str!("posix_table.py");

#[test]
fn native_bound_and_mirrored_behave_the_same() {
    let house = TestHost::prepared(SPEC, |here| {
        for name in ["native", "bound", "mirrored"] {
            std::fs::create_dir(here.join(name)).unwrap();
        }
    });
    let table = format!("{ATTEMPT}{TABLE}");
    let native = python(&house.here().join("native"), &table);
    assert!(native.lines().count() > 120 && !native.contains('!'), "{native}");
    for project in ["bound", "mirrored"] {
        let said = python(&house.root().join(format!("projects/{project}/fs/{project}")), &table);
        for (one, other) in native.lines().zip(said.lines()) {
            assert_eq!(other, one, "{project}");
        }
        assert_eq!(said, native, "{project}");
    }
    let left = |name: &str| session(&house.here().join(name), "find . -printf '%P %y %m %s %l\\n' | LC_ALL=C sort");
    assert_eq!(left("mirrored"), left("native"), "what is on the disk");
}

#[test]
fn a_read_only_bind_is_erofs_in_both_forms() {
    let house = TestHost::of(SPEC);
    let table = format!(
        r#"{ATTEMPT}
for what, act in [
    ("read", lambda: get("notes.txt")),
    ("open to write", lambda: os.open("notes.txt", os.O_WRONLY)),
    ("truncate while opening", lambda: os.open("notes.txt", os.O_RDONLY | os.O_TRUNC)),
    ("create", lambda: put("new")),
    ("mkdir", lambda: os.mkdir("new")),
    ("symlink", lambda: os.symlink("x", "new")),
    ("link", lambda: os.link("notes.txt", "new")),
    ("fifo", lambda: os.mkfifo("new")),
    ("unlink", lambda: os.unlink("notes.txt")),
    ("rmdir", lambda: os.rmdir("deep")),
    ("rename", lambda: os.rename("notes.txt", "new")),
    ("chmod", lambda: os.chmod("notes.txt", 0o600)),
    ("chown", lambda: os.chown("notes.txt", 0, 0)),
    ("truncate", lambda: os.truncate("notes.txt", 0)),
    ("utimens", lambda: os.utime("notes.txt")),
    ("xattr", lambda: os.setxattr("notes.txt", "user.k", b"v")),
    ("access", lambda: os.access("notes.txt", os.W_OK)),
    ("names", lambda: sorted(os.listdir("."))),
]: attempt(what, act)
"#
    );
    std::fs::create_dir(house.here().join("deep")).unwrap();
    let kernel = python(&house.root().join("projects/fixed/fs"), &table);
    assert_eq!(kernel.matches("EROFS").count(), 15, "{kernel}");
    assert_eq!(python(&house.root().join("projects/shut/fs"), &table), kernel);
}

#[test]
fn what_is_changed_outside_is_never_seen_as_it_was() {
    let house = TestHost::of(SPEC);
    let (here, mirrored) = (house.here(), house.root().join("projects/mirrored/fs"));
    let script = format!(
        r#"{ATTEMPT}
real = {here:?} + "/"
for turn in range(50):
    word = (b"%06d" % turn)
    put(real + "file", word)
    assert get("file") == word, (turn, get("file"))
    with open("file", "rb") as held:
        assert held.read() == word
        put(real + "file", word[::-1])
        held.seek(0)
        assert held.read() == word[::-1], turn
    name = "name%d" % (turn % 3)
    os.rename(real + "file", real + name)
    assert not os.path.exists("file") and get(name) == word[::-1]
    os.truncate(real + name, 2)
    assert os.stat(name).st_size == 2
    os.unlink(real + name)
    assert name not in os.listdir(".")
print("never")
"#
    );
    assert_eq!(python(&mirrored, &script), "never\n");
}

#[test]
fn a_mirrored_file_is_read_once_and_then_kept_by_the_kernel() {
    // There before the mount: the notice of a new file would let the kernel drop what it has once more.
    let house = TestHost::prepared(SPEC, |here| std::fs::write(here.join("big"), vec![7; 1 << 20]).unwrap());
    let file = house.root().join("projects/mirrored/fs/big");
    let reads = || house.inside(async |host| host.state.mount.get().unwrap().request_counts()["read"]);
    std::fs::read(&file).unwrap();
    let before = reads();
    for _ in 0..5 {
        assert_eq!(std::fs::read(&file).unwrap().len(), 1 << 20);
    }
    assert_eq!(reads(), before, "an unchanged file was asked for again");
    std::fs::write(house.here().join("big"), vec![8; 1 << 20]).unwrap();
    assert_eq!(std::fs::read(&file).unwrap()[0], 8);
}

/// Who has a file mapped asks nobody: the kernel has to be told.
#[test]
fn a_mapped_file_follows_its_changes() {
    let house = TestHost::of(SPEC);
    std::fs::write(house.here().join("mapped"), "before\n").unwrap();
    let script = r#"
import mmap, time
with open("mapped", "r+b") as f, mmap.mmap(f.fileno(), 7, prot=mmap.PROT_READ) as m:
    print(m[:6].decode(), flush=True)
    while m[:6] == b"before": time.sleep(0.01)
    print(m[:6].decode())
"#;
    let mut child = crate::common::command(&house.root().join("projects/mirrored/fs"), &["python3", "-c", script])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "before");
    // In place: a mapping of a file that was cut short is lost on every file system.
    let file = std::fs::File::options().write(true).open(house.here().join("mapped")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"after!", 0).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "after!");
    child.wait().unwrap();
}

/// What a root handle is for: nothing that is done through the mirror lands elsewhere, whatever is moved meanwhile.
#[test]
fn a_directory_swapped_for_a_link_leads_nowhere() {
    let house = TestHost::prepared(SPEC, |here| {
        std::fs::create_dir_all(here.join("dir")).unwrap();
        std::fs::create_dir(here.parent().unwrap().join("outside")).unwrap();
    });
    let (here, mirrored) = (house.here(), house.root().join("projects/mirrored/fs"));
    let dir = std::fs::File::open(mirrored.join("dir")).unwrap();
    std::fs::rename(here.join("dir"), here.join("moved")).unwrap();
    std::os::unix::fs::symlink("../outside", here.join("dir")).unwrap();
    let at = format!("/proc/self/fd/{}/file", std::os::fd::AsRawFd::as_raw_fd(&dir));
    // By the old handle: the directory is looked for, and not found where it was.
    assert!(std::fs::write(&at, "x").is_err());
    assert!(std::fs::read_dir(here.parent().unwrap().join("outside")).unwrap().next().is_none());
    assert_eq!(std::fs::read_link(mirrored.join("dir")).unwrap().to_str().unwrap(), "../outside");
}

#[test]
fn the_mount_itself_is_never_shown_in_the_mount() {
    let spec = r#"{ "layout": "acheron-1", "agents": { "charon": { "projects": ["above", "below"] } },
        "projects": { "above": { "binds": { "/": { "path": "..", "mirror": true } } },
                      "below": { "binds": { "/": { "path": "../ns", "mirror": true }, "/sub": { "path": "." } } } } }"#;
    TestHost::of(spec).check(
        r#"
        ls projects/above/fs
        ls -A projects/above/fs/ns | wc -l
        stat -c %F projects/above/fs/ns
        touch projects/above/fs/ns/x
        cat projects/above/fs/here/notes.txt
        ls projects/below/fs
        cat projects/below/fs/sub/notes.txt
        "#,
        expect![[r#"
            here
            ns
            spec.json
            state
            0
            directory
            a note
            sub
            a note
            ! touch: cannot touch 'projects/above/fs/ns/x': Read-only file system
        "#]],
    );
}

/// Binds of one project over another, shown through the mount.
#[test]
fn a_bind_stands_over_the_names_of_another() {
    let spec = r#"{ "layout": "acheron-1", "agents": { "charon": { "projects": ["p"] } },
        "projects": { "p": { "binds": { "/": { "path": ".", "read_only": false, "mirror": true },
                                        "/docs": { "path": "../docs" }, "/new": { "path": "../docs" } } } } }"#;
    let house = TestHost::prepared(spec, |here| {
        std::fs::create_dir(here.join("docs")).unwrap();
        std::fs::write(here.join("docs/hidden"), "").unwrap();
        std::fs::create_dir(here.parent().unwrap().join("docs")).unwrap();
        std::fs::write(here.parent().unwrap().join("docs/page"), "a page\n").unwrap();
    });
    house.check(
        r#"
        cd projects/p/fs
        ls; ls docs new
        cat docs/page new/page
        touch docs/x; rmdir new; mv docs other; mv main.rs docs/
        echo more > made && mv made moved && cat moved
        "#,
        expect![[r#"
            docs
            main.rs
            new
            notes.txt
            docs:
            page

            new:
            page
            a page
            a page
            more
            ! touch: cannot touch 'docs/x': Read-only file system
            ! rmdir: failed to remove 'new': Device or resource busy
            ! mv: cannot move 'docs' to 'other': Device or resource busy
            ! mv: cannot create regular file 'docs/main.rs': Read-only file system
        "#]],
    );
}

#[test]
fn a_large_directory_is_listed_by_pages() {
    let house = TestHost::prepared(SPEC, |here| {
        std::fs::create_dir(here.join("many")).unwrap();
        for n in 0..4_000 {
            std::fs::File::create(here.join(format!("many/{n}"))).unwrap();
        }
    });
    let many = house.root().join("projects/mirrored/fs/many");
    let names = |path: &std::path::Path| -> std::collections::BTreeSet<std::ffi::OsString> {
        std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_eq!(names(&many), names(&house.here().join("many")));
    assert_eq!(std::fs::read_dir(&many).unwrap().count(), 4_000, "none twice");
    let known = house.inside(async |host| host.state.mount.get().unwrap().inodes());
    assert!(known < 3_500, "listing names is not looking at each: {known}");
}

/// fuser cannot count back so far; the mount must not end of it.
#[test]
fn the_earliest_of_all_times_ends_nothing() {
    let house = TestHost::of(SPEC);
    let script = format!(
        r#"{ATTEMPT}
def far(path):
    spec = (ctypes.c_long * 4)(-2**63, 5, -2**63, 5)
    if libc.utimensat(-100, path, spec, 0) != 0: raise OSError(ctypes.get_errno(), "")
attempt("a file of the tree", lambda: far(b"agents/self/chat/control/input"))
attempt("a page", lambda: far(b"README.md"))
attempt("a directory", lambda: far(b"agents"))
attempt("the mount lives", lambda: os.path.exists("README.md") and "yes")
"#
    );
    expect![[r#"
        a file of the tree done
        a page EPERM
        a directory EPERM
        the mount lives yes
    "#]]
    .assert_eq(&python(&house.root(), &script));
}

/// As on any disk that cannot: programs then make a file with a name.
#[test]
fn a_file_without_a_name_is_made_where_the_kernel_binds_and_refused_in_a_mirror() {
    let house = TestHost::of(SPEC);
    let script = format!("{ATTEMPT}\nattempt('unnamed', lambda: os.close(os.open('.', os.O_TMPFILE | os.O_RDWR)))");
    let said = |project: &str| python(&house.root().join(format!("projects/{project}/fs")), &script);
    assert_eq!((said("bound").as_str(), said("mirrored").as_str()), ("unnamed done\n", "unnamed ENOTSUP\n"));
}

#[test]
fn nothing_stays_mounted_after_a_host_that_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("note"), "kept\n").unwrap();
    let acheron = env!("CARGO_BIN_EXE_acheron");
    let said = session(
        dir.path(),
        &format!(
            r#"
        trap '{acheron} unmount ns > /dev/null 2>&1' EXIT
        mkdir ns
        {acheron} mount ns --state state --daemon > /dev/null || exit
        cat ns/projects/here/fs/note
        ls ns/projects/here/fs/ns | wc -l
        pid=$(jq .pid ns/meta/health.json)
        echo '{{"command":"echo up; sleep 600"}}' > ns/agents/self/terminal/control/exec.json
        until grep -qs up ns/agents/self/jobs/last/log.txt; do :; done
        kill -9 "$pid" $(pgrep -P "$pid")
        {acheron} mount ns --state state --daemon > /dev/null || exit
        # What was killed may take a moment to be gone; the next program sweeps what was left then.
        until [ -z "$(find /sys/fs/cgroup -name "acheron-$pid.*")" ]; do
            echo '{{"command":"true"}}' > ns/agents/self/terminal/control/exec.json; cat ns/agents/self/terminal/result.json > /dev/null
        done
        cat ns/projects/here/fs/note
        {acheron} unmount ns > /dev/null
        grep -c "$PWD/ns" /proc/self/mountinfo
        "#
        ),
    );
    expect![[r#"
        kept
        0
        kept
        0
    "#]]
    .assert_eq(&said);
}
