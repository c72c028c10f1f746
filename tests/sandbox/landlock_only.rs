//! The second level, on a machine that refuses namespaces: this program is started under a filter that refuses them, as a
//! container's does.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::{block, finish, program, shell};
use acheron_base::Code;
use acheron_sandbox::{Level, PathRule, Plan, Streams, Visibility, start, tried};

/// Refuses every call that makes or enters a namespace, then becomes the program.
const REFUSING: &str = r#"#!/usr/bin/python3
import ctypes, os, struct, sys
calls = {'x86_64': (272, 308, 56, 435), 'aarch64': (97, 268, 220, 435)}[os.uname().machine]
unshare, setns, clone, clone3 = calls
def word(code, jt, jf, k): return struct.pack('HBBI', code, jt, jf, k)
LOAD, EQUAL, SET, RETURN = 0x20, 0x15, 0x45, 0x06
EPERM, ENOSYS, ALLOW = 0x50000 | 1, 0x50000 | 38, 0x7fff0000
filter = b''.join([
    word(LOAD, 0, 0, 0),
    word(EQUAL, 5, 0, unshare), word(EQUAL, 4, 0, setns), word(EQUAL, 4, 0, clone3), word(EQUAL, 0, 4, clone),
    word(LOAD, 0, 0, 16), word(SET, 0, 2, 0x7e020000), word(RETURN, 0, 0, EPERM),
    word(RETURN, 0, 0, ENOSYS), word(RETURN, 0, 0, ALLOW),
])
kept = ctypes.create_string_buffer(filter, len(filter))
class Program(ctypes.Structure): _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
made = Program(len(filter) // 8, ctypes.addressof(kept))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(made), 0, 0) == 0, ctypes.get_errno()
os.execv('PROGRAM', sys.argv)
"#;

/// A machine that refuses namespaces.
pub struct Refusing {
    _dir: tempfile::TempDir,
    program: PathBuf,
}

impl Refusing {
    pub fn new() -> Refusing {
        let dir = tempfile::tempdir().unwrap();
        let wrapper = dir.path().join("refusing");
        std::fs::write(&wrapper, REFUSING.replace("PROGRAM", program().to_str().unwrap())).unwrap();
        for path in [dir.path(), &wrapper] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        Refusing { _dir: dir, program: wrapper }
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    fn says(&self, plan: &Plan) -> acheron_base::Result<String> {
        let seen = block(async { finish(&mut start(&self.program, plan, Streams::Piped).await?).await })?;
        Ok(format!("{}{}", seen.out, seen.err))
    }
}

fn alone(mut plan: Plan) -> Plan {
    plan.level = Level::Landlock;
    plan
}

#[test]
fn without_namespaces_nothing_starts_unless_the_second_level_is_chosen() {
    let machine = Refusing::new();
    let refused = machine.says(&shell("echo ran")).unwrap_err();
    assert_eq!(refused.code, Code::Unavailable);
    let said = "the sandbox cannot be built on this machine: user: the kernel refuses a namespace";
    assert!(refused.message.starts_with(said), "{refused}");
    assert_eq!(machine.says(&alone(shell("echo ran"))).unwrap(), "ran\n");
}

#[test]
fn trying_finds_the_level_and_claims_no_wall_that_is_missing() {
    let (level, walls) = block(tried(program())).unwrap();
    assert_eq!((level, walls.has("user")), (Level::Namespaces, true));
    let (level, walls) = block(tried(Refusing::new().program())).unwrap();
    assert_eq!(level, Level::Landlock);
    for absent in ["user", "pids", "mounts", "ipc", "uts", "network", "root"] {
        assert!(!walls.has(absent), "{absent} {walls:?}");
    }
    assert!(walls.has("landlock") && walls.has("system_calls") && walls.has("privileges"), "{walls:?}");
}

#[test]
fn a_program_works_in_its_project_and_sees_nothing_else() {
    let (machine, dir) = (Refusing::new(), tempfile::tempdir().unwrap());
    let (project, other) = (dir.path().join("project"), dir.path().join("other"));
    for path in [&project, &other] {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join("file"), "text\n").unwrap();
    }
    let mut plan = alone(shell(&format!(
        "cat file; echo new > made && cat made; mkdir deep && echo x > deep/y && cat deep/y; echo temp > $TMPDIR/t && cat ~/t
         cat {0}/file 2>/dev/null || echo unreadable; (echo x > {0}/made) 2>/dev/null || echo unwritable
         ls {0} 2>/dev/null || echo unlisted; chmod 600 file 2>/dev/null || echo mode stays
         ls /proc 2>/dev/null || echo no processes; mkdir .git && (echo x > .mcp.json) 2>/dev/null || echo reserved",
        other.display()
    )));
    plan = plan.bind(&project, "/projects/p/fs", false);
    plan.cwd = "/projects/p/fs".into();
    let path = Path::new("/projects/p/fs/.mcp.json").to_owned();
    plan.path_rules = vec![PathRule { path, bind: "/projects/p/fs".into(), show: Visibility::ReadOnly }];
    assert_eq!(
        machine.says(&plan).unwrap(),
        "text\nnew\nx\ntemp\nunreadable\nunwritable\nunlisted\nmode stays\nno processes\nreserved\n"
    );
    assert!(!project.join(".mcp.json").exists() && project.join("made").exists());
}

#[test]
fn what_landlock_alone_cannot_hide_is_refused() {
    let (machine, dir) = (Refusing::new(), tempfile::tempdir().unwrap());
    let mut plan = alone(shell("true")).bind(dir.path(), "/projects/p/fs", true);
    let path = Path::new("/projects/p/fs/secret").to_owned();
    plan.path_rules = vec![PathRule { path, bind: "/projects/p/fs".into(), show: Visibility::Hidden }];
    let refused = machine.says(&plan).unwrap_err();
    assert!(refused.message.starts_with("Landlock alone cannot hide `/projects/p/fs/secret`"), "{refused}");
}

#[test]
fn what_a_program_leaves_behind_ends_with_it() {
    let (machine, dir) = (Refusing::new(), tempfile::tempdir().unwrap());
    let script = "(setsid sh -c 'echo $$ > pid; exec sleep 600' &) ; until test -s pid; do :; done; cat pid";
    let mut plan = alone(shell(script)).bind(dir.path(), "/projects/p/fs", false);
    plan.cwd = "/projects/p/fs".into();
    // Ends although the sleeping process holds the output open: it is killed when the program ends.
    let pid: i32 = machine.says(&plan).unwrap().trim().parse().unwrap();
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} is left");
}
