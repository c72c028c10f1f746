//! Names that an agent may not see or not change, against every verb that changes something, through every door.
//!
//! The cases are generated: verbs × names. A hidden name that is there must be refused exactly as one that is not, so that
//! nothing is learned, and nothing may change on the disk.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::test_host::TestHost;
use acheron::agent::tools::tree::TreeTools;
use acheron::agent::tools::{ToolCall, perform};
use acheron::policy::PrincipalCaller;
use acheron_vfs::Caller;

/// Names that are there and hidden, each with one that is as hidden and not there. The last ones are hidden by a rule that
/// denies reading alone.
const HIDDEN: [(&str, &str); 4] =
    [("one", "none"), ("secret/key", "secret/none"), ("secret/dir", "secret/nodir"), ("unread/key", "unread/none")];
/// Names that may be seen and not changed, there and not there.
const FIXED: [&str; 3] = ["fixed/key", "fixed/dir", "fixed/none"];

/// With a bind over a directory that is not there, programs of the agent see the project through the mount.
fn spec(through_mount: bool) -> String {
    let mut binds = json!({"/": {"path": ".", "read_only": false}});
    if through_mount {
        binds["/extra"] = json!({"path": "../extra", "read_only": false});
    }
    let deny = |actions: &[&str], path: &str| json!({"deny": actions, "path": format!("/projects/p/fs/{path}")});
    let rules = [
        deny(&["read", "write"], "secret/**"),
        deny(&["read", "write"], "gone/**"),
        deny(&["read", "write"], "one"),
        deny(&["read", "write"], "none"),
        deny(&["read"], "unread/**"),
        deny(&["write"], "fixed/**"),
    ];
    json!({"layout": "acheron-1", "agents": {"charon": {"projects": ["p"], "permissions": rules}},
        "projects": {"p": {"binds": binds}}})
    .to_string()
}

fn house(through_mount: bool) -> TestHost {
    TestHost::prepared(&spec(through_mount), |here| {
        std::fs::create_dir(here.parent().unwrap().join("extra")).unwrap();
        for dir in ["secret", "unread", "fixed", "mine"] {
            std::fs::create_dir_all(here.join(dir).join("dir")).unwrap();
            std::fs::write(here.join(dir).join("key"), "kept").unwrap();
        }
        std::fs::write(here.join("one"), "kept").unwrap();
        for (name, to) in [("by-link", "secret"), ("by-chain", "mine/../by-link"), ("by-fixed", "fixed")] {
            symlink(to, here.join(name)).unwrap();
        }
    })
}

/// All that there is below a directory but in `mine`: kinds, modes, times of change, bytes.
fn state(dir: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            if name == "mine" {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let bytes = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            let (seconds, nanos) = (meta.mtime(), meta.mtime_nsec());
            all.insert(name, format!("{:o} {} {seconds}.{nanos} {bytes:?}", meta.mode(), meta.nlink()));
            if meta.is_dir() {
                open.push(path);
            }
        }
    }
    all
}

/// An answer without the names by which there and absent differ.
fn without_names(said: &str) -> String {
    let names = ["secret/key", "secret/nodir", "secret/none", "secret/dir", "unread/key", "unread/none"];
    let plain = names.iter().fold(said.to_owned(), |said, name| said.replace(name, "NAME"));
    let whole = ["fs/one", "fs/none", "fs/secret", "fs/gone"];
    whole.iter().fold(plain, |said, name| said.replace(name, "fs/NAME"))
}

/// What the agent's own tool answers in a turn.
fn tool(house: &TestHost, name: &str, path: &str, more: &Value) -> String {
    let mut arguments = json!({"path": format!("/projects/p/fs/{path}")}).as_object().unwrap().clone();
    arguments.extend(more.as_object().unwrap().clone());
    let tool = ToolCall::read(name, arguments).ok().unwrap();
    let said = house.inside(async |host| {
        let (tree, caller) = (host.tree().clone(), Caller::agent("charon"));
        perform(&TreeTools { tree, caller, id: Arc::new(|| "h".to_owned()), parked: Arc::new(|_| ()) }, &tool).await
    });
    match &said["error"] {
        Value::Null => "done".to_owned(),
        error => format!("{} {}", error["code"].as_str().unwrap(), error["message"].as_str().unwrap()),
    }
}

#[test]
fn the_tools_of_a_turn_neither_change_nor_tell_apart_what_is_hidden() {
    let writes = [
        json!({"content": "x"}),
        json!({"content": "x", "append": true}),
        json!({"content": "x", "create_parents": true}),
        json!({"content": "", "append": true, "create_parents": true}),
    ];
    for through_mount in [false, true] {
        let house = house(through_mount);
        let before = state(&house.here());
        for write in &writes {
            // The name itself, something below it, and the ways through links.
            let mut pairs: Vec<[String; 2]> = vec![["secret".to_owned(), "gone".to_owned()]];
            for (there, absent) in HIDDEN {
                pairs.extend(["", "/x", "/x/y"].map(|below| [there, absent].map(|name| format!("{name}{below}"))));
            }
            for way in ["by-link", "by-chain"] {
                pairs.push(["key", "none"].map(|name| format!("{way}/{name}")));
                pairs.push(["dir/x", "nodir/x"].map(|name| format!("{way}/{name}")));
            }
            for [there, absent] in pairs {
                let said = [&there, &absent].map(|path| without_names(&tool(&house, "file_write", path, write)));
                assert_eq!(said[0], said[1], "{there} and {absent} are told apart by {write}");
                // Below a hidden name nothing is found, unless the name itself is to be made.
                let named = !there.starts_with("one/") || write["create_parents"] == true;
                let code = if named { "forbidden " } else { "not_found " };
                assert!(said[0].starts_with(code), "{there} {write}: {}", said[0]);
            }
            for path in FIXED.iter().map(|it| (*it).to_owned()).chain(["by-fixed/none".to_owned()]) {
                let said = tool(&house, "file_write", &path, write);
                let expected = if path == "fixed/dir" { "is_a_directory " } else { "forbidden " };
                assert!(said.starts_with(expected), "{path} {write}: {said}");
            }
            assert_eq!(state(&house.here()), before, "{write}");
        }
        for (there, absent) in HIDDEN {
            for name in ["file_read", "file_list"] {
                let said = |path: &str| without_names(&tool(&house, name, path, &json!({})));
                assert_eq!(said(there), said(absent), "{name} {there}");
                assert!(said(there).starts_with("not_found "), "{name} {there}: {}", said(there));
            }
        }
        assert_eq!(tool(&house, "file_write", "mine/new/er", &json!({"content": "x", "create_parents": true})), "done");
        assert_eq!(tool(&house, "file_write", "mine/key", &json!({"content": "x"})), "done");
    }
}

/// Each directory costs one step: with two steps per name above it, 3000 names kept a thread for many minutes.
#[test]
fn a_deep_path_is_made_and_one_that_is_too_long_is_refused() {
    for through_mount in [false, true] {
        let house = house(through_mount);
        let make = |depth: usize| {
            let path = format!("mine/{}x", "d/".repeat(depth));
            tool(&house, "file_write", &path, &json!({"content": "x", "create_parents": true}))
        };
        assert_eq!(make(1000), "done");
        assert_eq!(make(3000), "name_too_long a path has fewer than 4096 bytes");
    }
}

/// Every verb of the system that changes something, as functions of a path; `mine/…` is what the agent may change.
const VERBS: &str = r#"
import errno, os, sys
def opened(flags): return lambda p: os.close(os.open(p, flags, 0o644))
def fresh(make):
    def verb(p):
        for name in ('mine/from', 'mine/other'):
            try: os.rmdir(name)
            except OSError: pass
            try: os.unlink(name)
            except OSError: pass
        make('mine/from')
        return p
    return verb
def file(name): open(name, 'w').close()
verbs = {
    'create': opened(os.O_CREAT | os.O_WRONLY),
    'create and read': opened(os.O_CREAT | os.O_RDWR),
    'create alone': opened(os.O_CREAT | os.O_EXCL | os.O_WRONLY),
    'create and cut': opened(os.O_CREAT | os.O_TRUNC | os.O_WRONLY),
    'open for writing': opened(os.O_WRONLY),
    'open for appending': opened(os.O_WRONLY | os.O_APPEND),
    'open and cut': opened(os.O_WRONLY | os.O_TRUNC),
    'open both': opened(os.O_RDWR),
    'truncate': lambda p: os.truncate(p, 1),
    'mkdir': lambda p: os.mkdir(p),
    'mkfifo': lambda p: os.mkfifo(p),
    'symlink': lambda p: os.symlink('mine/key', p),
    'link from': lambda p: os.link(p, 'mine/other'),
    'link onto': lambda p: (fresh(file)(p), os.link('mine/from', p)),
    'rename from': lambda p: os.rename(p, 'mine/other'),
    'rename a file onto': lambda p: (fresh(file)(p), os.rename('mine/from', p)),
    'rename a directory onto': lambda p: (fresh(os.mkdir)(p), os.rename('mine/from', p)),
    'unlink': os.unlink,
    'rmdir': os.rmdir,
    'chmod': lambda p: os.chmod(p, 0o600),
    'chown': lambda p: os.chown(p, os.getuid(), os.getgid()),
    'utime': lambda p: os.utime(p, (1, 1)),
    'setxattr': lambda p: os.setxattr(p, 'user.x', b'1'),
    'removexattr': lambda p: os.removexattr(p, 'user.x'),
    # And what would tell that it is there.
    'stat': os.lstat, 'readlink': os.readlink, 'getxattr': lambda p: os.getxattr(p, 'user.x'),
    'listxattr': os.listxattr, 'access': lambda p: print(end='') if os.access(p, os.F_OK) else os.lstat(p),
    'listing': lambda p: 0 if os.path.basename(p) in os.listdir(os.path.dirname(p) or '.') else os.stat(p),
}
for path in sys.argv[1:]:
    for name, verb in verbs.items():
        try: verb(path); said = 'done'
        except OSError as error: said = errno.errorcode[error.errno]
        print(path, name, said, sep=':')
"#;

/// What every verb says to a program of the agent about each path.
fn tried(house: &TestHost, paths: &[&str]) -> BTreeMap<(String, String), String> {
    std::fs::write(house.here().join("mine/verbs.py"), VERBS).unwrap();
    let said = house.says(&format!(
        "{} exec --root . --agent charon -- python3 mine/verbs.py {}",
        env!("CARGO_BIN_EXE_acheron"),
        paths.join(" ")
    ));
    let line = |line: &str| {
        let parts: Vec<&str> = line.split(':').collect();
        let [path, verb, said] = parts[..] else { panic!("{line}") };
        ((path.to_owned(), verb.to_owned()), said.to_owned())
    };
    said.lines().map(line).collect()
}

#[test]
fn a_program_on_the_mount_neither_changes_nor_tells_apart_what_is_hidden() {
    let house = house(true);
    let before = state(&house.here());
    let links = [("by-link/key", "by-link/none"), ("by-chain/dir", "by-chain/nodir")];
    let pairs: Vec<(&str, &str)> = HIDDEN.into_iter().chain(links).chain([("secret", "gone")]).collect();
    let mut paths: Vec<&str> = pairs.iter().flat_map(|(there, absent)| [*there, *absent]).collect();
    paths.extend(FIXED);
    let said = tried(&house, &paths);
    assert_eq!(state(&house.here()), before);
    let mut verbs: Vec<&String> = said.keys().map(|(_, verb)| verb).collect();
    verbs.sort();
    verbs.dedup();
    let answer = |path: &str, verb: &String| said[&(path.to_owned(), verb.clone())].as_str();
    for verb in &verbs {
        for (there, absent) in &pairs {
            assert_eq!(answer(there, verb), answer(absent, verb), "{there} and {absent} are told apart by {verb}");
            assert!(["EACCES", "ENOENT"].contains(&answer(there, verb)), "{there} {verb}: {}", answer(there, verb));
        }
        // What may be seen and not changed: nothing is done, and what would make it says so as for a hidden name.
        let looks = ["stat", "readlink", "getxattr", "listxattr", "access", "listing"].contains(&verb.as_str());
        if !looks {
            for path in FIXED {
                assert_ne!(answer(path, verb), "done", "{path} {verb}");
            }
            assert_eq!(answer("fixed/none", verb), answer("none", verb), "{verb}");
        }
    }
    assert_eq!(answer("none", &"create".to_owned()), "EACCES");
}

/// Where the kernel binds the project, covers in the sandbox keep what is there as it is. Only what lies in a hidden directory
/// is tried: what covers a hidden file is a matter of the sandbox, and must never be a device of the host to try this on.
#[test]
fn a_program_on_what_the_kernel_binds_changes_nothing_that_is_hidden() {
    let house = house(false);
    let before = state(&house.here());
    let paths: Vec<&str> = HIDDEN
        .into_iter()
        .map(|(there, _)| there)
        .filter(|name| name.contains('/'))
        .chain(["fixed/key", "fixed/dir"])
        .collect();
    tried(&house, &paths);
    assert_eq!(state(&house.here()), before);
}

/// What a program of the agent may do with files of another user and by their modes.
const MODES: &str = r#"
import errno, os
def opened(flags): return lambda p: os.close(os.open(p, flags))
def listed(p): return os.listdir(p)
verbs = {
    'read': opened(os.O_RDONLY), 'write': opened(os.O_WRONLY), 'cut': opened(os.O_WRONLY | os.O_TRUNC), 'list': listed,
    'stat below': lambda p: os.lstat(p + '/f'), 'read below': lambda p: open(p + '/f').close(),
    'create below': lambda p: open(p + '/new', 'x').close(), 'remove below': lambda p: os.unlink(p + '/f'),
    'truncate': lambda p: os.truncate(p, 1), 'chmod': lambda p: os.chmod(p, 0o777), 'utime': lambda p: os.utime(p, (1, 1)),
    'touch': lambda p: os.utime(p), 'link': lambda p: (os.link(p, 'mine/second'), os.unlink('mine/second')),
    'getxattr': lambda p: os.getxattr(p, 'user.x'), 'setxattr': lambda p: os.setxattr(p, 'user.x', b'1'),
    'listxattr': os.listxattr, 'readable': lambda p: os.access(p, os.R_OK), 'writable': lambda p: os.access(p, os.W_OK),
    'enterable': lambda p: os.access(p, os.X_OK), 'enter': lambda p: (os.chdir(p), os.chdir('/projects/p')),
    'move': lambda p: (os.rename(p, 'mine/moved'), os.rename('mine/moved', p)),
}
here = os.getcwd()
for name in sorted(os.listdir('mine')):
    for verb, do in verbs.items():
        os.chdir(here)
        try: said = do('mine/' + name)
        except OSError as error: said = errno.errorcode[error.errno]
        print(name, verb, said if isinstance(said, (bool, str)) else 'done')
"#;

/// The same files, bound by the kernel and through the mount: the host is root, its agents are not.
#[test]
fn modes_and_owners_count_on_the_mount_as_on_the_disk() {
    let said = |through_mount: bool| {
        let house = house(through_mount);
        let mine = house.here().join("mine");
        std::fs::remove_dir_all(&mine).unwrap();
        for (name, mode, foreign) in [
            ("closed", 0o000, false),
            ("own", 0o600, false),
            ("shown", 0o444, false),
            ("theirs", 0o600, true),
            ("theirs-shown", 0o644, true),
            ("theirs-open", 0o666, true),
        ] {
            for dir in [false, true] {
                let path = mine.join(if dir { format!("{name}-dir") } else { name.to_owned() });
                std::fs::create_dir_all(if dir { path.join("d") } else { mine.clone() }).unwrap();
                std::fs::write(if dir { path.join("f") } else { path.clone() }, "x").unwrap();
                let mode = if dir { mode | (mode & 0o444) >> 2 } else { mode };
                std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
                if foreign && std::os::unix::fs::chown(&path, Some(12_345), Some(12_345)).is_err() {
                    return None; // only root gives files away, and only a root host could open what is not its own
                }
            }
        }
        std::fs::write(house.here().join("modes.py"), MODES).unwrap();
        let program = env!("CARGO_BIN_EXE_acheron");
        Some(house.says(&format!("{program} exec --root . --agent charon -- python3 modes.py")))
    };
    let (Some(disk), Some(mount)) = (said(false), said(true)) else { return };
    assert!(disk.contains("theirs read EACCES") && disk.contains("own read done"), "{disk}");
    let told = |said: &str| said.lines().map(str::to_owned).collect::<Vec<_>>();
    let differ: Vec<_> = told(&disk).into_iter().zip(told(&mount)).filter(|(disk, mount)| disk != mount).collect();
    assert_eq!(differ, [], "on the disk, on the mount");
    assert_eq!(disk.lines().count(), mount.lines().count());
}

/// A file that is denied by its own name lies in a directory that may be seen.
#[test]
fn events_do_not_name_what_is_hidden() {
    let house = house(false);
    let here = house.here();
    for name in ["one", "secret/key", "secret/new", "unread/key", "mine/key", "none"] {
        std::fs::write(here.join(name), "changed").unwrap();
    }
    std::fs::remove_file(here.join("one")).unwrap();
    std::fs::write(here.join("mine/last"), "").unwrap();
    let log = house.root().join("agents/charon/events/log.ndjson");
    crate::common::until("the last change is noticed", || std::fs::read_to_string(&log).unwrap().contains("mine/last"));
    let lines = std::fs::read_to_string(&log).unwrap();
    let named: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["path"].as_str().unwrap().to_owned())
        .filter(|path| path.starts_with("/projects/") && !path.contains("/mine"))
        .collect();
    assert_eq!(named, [""; 0]);
}

/// Names of the tree itself, not of a directory of the machine.
#[test]
fn a_program_is_not_shown_names_of_the_tree_that_are_denied() {
    let deny = |path: &str| json!({"deny": ["read", "write", "invoke"], "path": path});
    let rules =
        [deny("/agents/self/web_search/**"), deny("/agents/self/memory/README.md"), deny("/global/library/topics/**")];
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {"permissions": rules}}});
    let house = TestHost::of(&spec.to_string());
    let script = "ls /agents/self /global/library | grep -E '^(web_search|topics|jobs|services)$'; ls /agents/self/memory | grep README";
    let by_agent = format!("{} exec --root . --agent charon -- sh -c \"{script}\"", env!("CARGO_BIN_EXE_acheron"));
    let all = "ls agents/charon global/library | grep -E '^(web_search|topics)$'";
    // Whoever looks first, the kernel shows nobody what it keeps of another.
    for _ in 0..2 {
        assert_eq!(house.says(all), "web_search\ntopics\n");
        assert_eq!(house.says(&by_agent), "jobs\nservices\nservices\n");
    }
}
