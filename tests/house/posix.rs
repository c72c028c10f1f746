//! A bound directory behaves as the directory itself: operation by operation, errno by errno.

use expect_test::expect;

use crate::common::{python, session};
use crate::house::House;

const SPEC: &str = r#"{
    "layout": "acheron-1",
    "agents": { "charon": { "projects": ["p"] } },
    "projects": { "p": { "binds": { "/": { "path": ".", "read_only": false } } } }
}"#;

/// Does everything that ordinary programs do, and says how each attempt ended.
const TABLE: &str = r#"
import errno, fcntl, mmap, os
def attempt(what, act):
    try: said = act()
    except OSError as fault: said = errno.errorcode[fault.errno]
    print(what, said if isinstance(said, (str, int, bytes)) else "done")
def put(path, data=b"x"):
    with open(path, "wb") as f: f.write(data)
def mapped():
    with open("map", "w+b") as f:
        f.truncate(4096)
        with mmap.mmap(f.fileno(), 4096) as m: m[0:3] = b"abc"
        f.seek(0)
        return f.read(3)
def locked():
    with open("file") as a, open("file") as b:
        fcntl.flock(a, fcntl.LOCK_EX)
        fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB)
for what, act in [
    ("create", lambda: put("file", b"hello")),
    ("create exclusive", lambda: os.open("file", os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
    ("open missing", lambda: os.open("missing", os.O_RDONLY)),
    ("open below a file", lambda: os.open("file/x", os.O_RDONLY)),
    ("open a directory to write", lambda: os.open(".", os.O_WRONLY)),
    ("open as a directory", lambda: os.open("file", os.O_RDONLY | os.O_DIRECTORY)),
    ("long name", lambda: put("n" * 256)),
    ("mkdir", lambda: os.mkdir("dir")),
    ("mkdir again", lambda: os.mkdir("dir")),
    ("mkdir below missing", lambda: os.mkdir("missing/dir")),
    ("put in it", lambda: put("dir/inner")),
    ("rmdir full", lambda: os.rmdir("dir")),
    ("rmdir a file", lambda: os.rmdir("file")),
    ("unlink a directory", lambda: os.unlink("dir")),
    ("unlink missing", lambda: os.unlink("missing")),
    ("link", lambda: os.link("file", "hard")),
    ("link count", lambda: os.stat("file").st_nlink),
    ("link over", lambda: os.link("file", "hard")),
    ("link a directory", lambda: os.link("dir", "dir2")),
    ("rename", lambda: os.rename("hard", "moved")),
    ("rename over", lambda: os.rename("moved", "file")),
    ("rename missing", lambda: os.rename("missing", "x")),
    ("rename a directory into itself", lambda: os.rename("dir", "dir/below")),
    ("rename a file over a directory", lambda: os.rename("file", "dir")),
    ("rename a directory over a file", lambda: os.rename("dir", "file")),
    ("truncate", lambda: os.truncate("file", 2)),
    ("size", lambda: os.stat("file").st_size),
    ("truncate longer", lambda: os.truncate("file", 10)),
    ("holes are zeros", lambda: open("file", "rb").read()),
    ("truncate a directory", lambda: os.truncate("dir", 0)),
    ("truncate below zero", lambda: os.truncate("file", -1)),
    ("symlink", lambda: os.symlink("file", "soft")),
    ("symlink over", lambda: os.symlink("file", "soft")),
    ("readlink", lambda: os.readlink("soft")),
    ("readlink of a file", lambda: os.readlink("file")),
    ("loop", lambda: (os.symlink("loop", "loop"), open("loop"))),
    ("chmod", lambda: os.chmod("file", 0o640)),
    ("mode", lambda: oct(os.stat("file").st_mode)),
    ("chmod missing", lambda: os.chmod("missing", 0o600)),
    ("utimens", lambda: os.utime("file", ns=(1, 1_500_000_000_123_456_789))),
    ("mtime", lambda: os.stat("file").st_mtime_ns),
    ("append", lambda: open("file", "ab").write(b"end")),
    ("mmap", mapped),
    ("lock", locked),
    ("xattr", lambda: (os.setxattr("file", "user.k", b"v"), os.getxattr("file", "user.k"))[1]),
    ("missing xattr", lambda: os.getxattr("file", "user.none")),
    ("fifo", lambda: os.mkfifo("fifo")),
    ("names", lambda: " ".join(sorted(os.listdir(".")))),
]: attempt(what, act)
"#;

#[test]
fn a_bind_behaves_as_the_directory_itself() {
    let house = House::prepared(SPEC, |here| {
        for name in ["native", "bound"] {
            std::fs::create_dir(here.join(name)).unwrap();
        }
    });
    let native = python(&house.here().join("native"), TABLE);
    let bound = python(&house.root().join("projects/p/fs/bound"), TABLE);
    assert!(native.lines().count() > 45 && !native.contains('!'), "{native}");
    assert_eq!(bound, native);
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
        kill -9 "$(jq .pid ns/meta/health.json)"
        {acheron} mount ns --state state --daemon > /dev/null || exit
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
