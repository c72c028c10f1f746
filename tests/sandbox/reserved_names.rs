//! Paths that a rule protects although nothing is there yet, and what happens when something takes their place.

use std::path::Path;

use crate::{block, check, finish, program, python, run, shell};
use acheron_sandbox::{PathRule, Plan, Streams, Visibility, start};

const INSIDE: &str = "/projects/p/fs";

/// A project in which some names are protected: some are there, some are not.
fn project() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in
        [("git/config", "config"), ("git/index", "1"), ("git/objects/x", "x"), ("src/main", "main"), ("free", "free")]
    {
        let file = dir.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    dir
}

const PROTECTED: [&str; 5] = ["git/config", "git/hooks", ".mcp.json", ".claude", ".github/workflows"];

fn protecting(plan: Plan, dir: &Path, names: &[&str]) -> Plan {
    let mut plan = plan.bind(dir, INSIDE, false);
    let rule =
        |name: &&str| PathRule { path: Path::new(INSIDE).join(name), bind: INSIDE.into(), show: Visibility::ReadOnly };
    plan.path_rules = names.iter().map(rule).collect();
    plan.cwd = INSIDE.into();
    plan
}

/// All names in a directory, without the directory itself.
fn names(dir: &Path) -> Vec<String> {
    let out = std::process::Command::new("find").args([".", "-mindepth", "1"]).current_dir(dir).output().unwrap();
    let mut all: Vec<String> = String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect();
    all.sort();
    all
}

/// Tries a change and prints it if it was not refused.
const TRIED: &str = "import ctypes, os, sys, threading
def tried(what, change, *words):
    try: change(*words)
    except OSError: return
    print('done:', what, *words)
def write(name): os.write(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644), b'evil')
";

#[test]
fn a_protected_name_that_is_absent_is_made_in_no_way() {
    let dir = project();
    std::fs::write(dir.path().join("src/evil"), "evil").unwrap();
    let before = names(dir.path());
    let script = format!(
        "{TRIED}
for name in ['.mcp.json', '.claude', 'git/hooks', './src/../.mcp.json', '{INSIDE}/.claude', '.MCP.json']:
    tried('write', write, name)
    tried('mkdir', os.mkdir, name)
    tried('symlink', os.symlink, 'src', name)
    tried('link', os.link, 'src/evil', name)
    tried('rename', os.rename, 'src/evil', name)
    tried('rename of a directory', os.rename, 'src', name)
    tried('mknod', os.mknod, name, 0o100644)
    tried('truncate', os.truncate, name, 0)
top = os.open('.', os.O_RDONLY | os.O_DIRECTORY)
tried('by descriptor', lambda: os.open('.mcp.json', os.O_CREAT | os.O_WRONLY, dir_fd=top))
tried('mkdir by descriptor', lambda: os.mkdir('.claude', dir_fd=top))
os.symlink('..', 'src/up')
tried('through a link', write, 'src/up/.mcp.json')
os.unlink('src/up')
os.chdir('src')
tried('from below', write, '../.mcp.json')
os.chdir('..')
os.symlink('../.mcp.json', 'src/dangling')
tried('a dangling link', write, 'src/dangling')
os.unlink('src/dangling')
# What leads to a protected name: a directory of another name, filled first.
os.makedirs('other/workflows'); write('other/workflows/evil.yml')
tried('rename above', os.rename, 'other', '.github')
tried('symlink above', os.symlink, 'other', '.github')
os.mkdir('.github')
tried('mkdir below', os.mkdir, '.github/workflows')
tried('rename below', os.rename, 'other/workflows', '.github/workflows')
os.unlink('other/workflows/evil.yml'); os.rmdir('other/workflows'); os.rmdir('other'); os.rmdir('.github')"
    );
    check(&protecting(python(&script), dir.path(), &PROTECTED), "");
    assert_eq!(names(dir.path()), before, "nothing is left in the project");
}

#[test]
fn a_name_that_is_swapped_while_it_is_looked_at_is_refused_too() {
    let dir = project();
    // Two names of the same length in one piece of memory; another thread swaps them without a pause.
    let script = format!(
        "{TRIED}
libc = ctypes.CDLL(None)
path = ctypes.create_string_buffer(b'src/x.json')
def swap():
    while True:
        ctypes.memmove(path, b'src/x.json', 10); ctypes.memmove(path, b'.mcp.json\\0', 10)
threading.Thread(target=swap, daemon=True).start()
sys.setswitchinterval(1e-6)
for _ in range(3000):
    fd = libc.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    if fd >= 0: os.close(fd)
try: os.unlink('src/x.json')
except OSError: pass
sys.stdout.flush(); os._exit(0)"
    );
    check(&protecting(python(&script), dir.path(), &PROTECTED), "");
    // Half of one name and half of the other is a name too, and free.
    assert!(!dir.path().join(".mcp.json").exists());
}

#[test]
fn everything_else_goes_on_as_it_did() {
    let dir = project();
    let script = "set -e
        echo 1 > new && echo 2 >> new && cat new && chmod 600 new && mv new newer && cp newer copy && rm newer
        sed -i s/1/3/ copy && cat copy && ln copy hard && ln -s copy soft && cat soft && rm hard soft copy
        mkdir -p build/deep/er && echo x > build/deep/er/file && mv build/deep build/deeper && cat build/deeper/er/file
        rm -r build && mkdir build && touch build/again && rm -r build src && mkdir src && echo y > src/main && cat src/main
        (umask 077; touch private; mkdir closed); stat -c %a private closed; rmdir closed; rm private
        echo 2 > git/index.lock && mv git/index.lock git/index && cat git/index && echo z > git/objects/y && rm git/objects/y
        mkfifo pipe && rm pipe; mktemp -p . -d tmp.XXXX > /tmp/n; rmdir $(cat /tmp/n); echo over > free; cat free
        mkdir .github && touch .github/CODEOWNERS && rm -r .github
        mkdir a && mv a src/a && rmdir src/a && cat git/config && echo";
    check(&protecting(shell(script), dir.path(), &PROTECTED), "1\n2\n3\n2\n3\n2\nx\ny\n600\n700\n2\nover\nconfig");
    let expected = ["./free", "./git", "./git/config", "./git/index", "./git/objects", "./git/objects/x"];
    assert_eq!(names(dir.path()), [expected.as_slice(), &["./src", "./src/main"]].concat());
}

#[test]
fn errors_of_a_name_at_the_top_are_the_kernels_own() {
    let dir = project();
    let script = "import os, errno
def said(change, *words, **more):
    try: change(*words, **more); print('done')
    except OSError as fault: print(errno.errorcode[fault.errno])
said(os.mkdir, 'src'); said(os.rmdir, 'src'); said(os.unlink, 'absent'); said(os.rename, 'absent', 'x')
said(os.open, 'free', os.O_CREAT | os.O_EXCL | os.O_WRONLY); said(os.open, 'src', os.O_WRONLY)
said(os.open, 'no/such', os.O_CREAT | os.O_WRONLY); said(os.rename, 'free', '/tmp/free'); said(os.symlink, 'x', 'free')
said(os.mkdir, 'n' * 256); said(os.open, '', os.O_CREAT | os.O_WRONLY); said(os.unlink, 'src')";
    check(&protecting(python(script), dir.path(), &PROTECTED), {
        "EEXIST\nENOTEMPTY\nENOENT\nENOENT\nEEXIST\nEISDIR\nENOENT\nEXDEV\nEEXIST\nENAMETOOLONG\nENOENT\nEISDIR"
    });
}

#[test]
fn a_link_that_was_planted_keeps_no_sandbox_from_starting() {
    let dir = project();
    std::os::unix::fs::symlink("/etc", dir.path().join(".claude")).unwrap();
    std::os::unix::fs::symlink("src", dir.path().join(".github")).unwrap();
    let script = "echo started; rm .claude 2>/dev/null || echo kept; (echo x > .mcp.json) 2>/dev/null || echo refused";
    check(&protecting(shell(script), dir.path(), &PROTECTED), "started\nkept\nrefused");
}

#[test]
fn many_processes_at_once_make_their_files() {
    let dir = project();
    let script = "for i in $(seq 20); do (for j in $(seq 50); do echo x > new.$i.$j; mv new.$i.$j done.$i.$j; done) & done; \
                  wait; ls | grep -c done; rm done.*";
    check(&protecting(shell(script), dir.path(), &PROTECTED), "1000");
}

/// Runs `script` until it says `ready`, then `change`s the project from outside, then lets it go on.
fn changed_outside(plan: &Plan, change: impl FnOnce()) -> String {
    block(async {
        let mut running = start(program(), plan, Streams::Piped).await.unwrap();
        until_it_attends(running.init).await;
        change();
        use tokio::io::AsyncWriteExt as _;
        _ = running.stdin.as_mut().unwrap().write_all(b"go\n").await; // a failure is seen below
        let seen = finish(&mut running).await.unwrap();
        format!("{}{}", seen.out, seen.err)
    })
}

/// Returns when the init waits: then it has looked once, and depends on being told. A plain user is not shown in which call
/// it waits, and gives it a moment; a change that comes earlier makes the test weaker, not red.
async fn until_it_attends(init: i32) {
    let polls = format!("{} ", nix::libc::SYS_poll);
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        if std::fs::read_to_string(format!("/proc/{init}/syscall")).is_ok_and(|call| call.starts_with(&polls)) {
            return;
        }
    }
}

#[test]
fn a_protected_file_that_is_replaced_outside_stays_protected() {
    let dir = project();
    let script = "read go; cat git/config; (echo evil > git/config) 2>/dev/null || echo refused
        (echo evil >> git/config) 2>/dev/null || echo refused; rm -f git/config 2>/dev/null || echo refused
        mv git/config x 2>/dev/null || echo refused; ln git/config x 2>/dev/null || echo refused
        cp free y; mv y git/config 2>/dev/null || echo refused; rm y";
    let plan = protecting(shell(script), dir.path(), &PROTECTED);
    let said = changed_outside(&plan, || {
        // As git itself writes its settings.
        std::fs::write(dir.path().join("git/config.lock"), "changed\n").unwrap();
        std::fs::rename(dir.path().join("git/config.lock"), dir.path().join("git/config")).unwrap();
    });
    assert_eq!(said, "changed\nrefused\nrefused\nrefused\nrefused\nrefused\nrefused\n");
    assert_eq!(std::fs::read_to_string(dir.path().join("git/config")).unwrap(), "changed\n");
}

#[test]
fn a_hidden_file_that_is_replaced_outside_is_hidden_again() {
    let dir = project();
    // The cover comes after the change; how soon is the machine's affair.
    let script =
        "read go; i=0; while [ $i -lt 1000 ] && [ -n \"$(cat git/config)\" ]; do sleep 0.02; i=$((i + 1)); done
        cat git/config; echo end";
    let mut plan = protecting(shell(script), dir.path(), &["git/config"]);
    plan.path_rules[0].show = Visibility::Hidden;
    let said = changed_outside(&plan, || {
        std::fs::write(dir.path().join("git/config.lock"), "secret\n").unwrap();
        std::fs::rename(dir.path().join("git/config.lock"), dir.path().join("git/config")).unwrap();
    });
    assert_eq!(said, "end\n");
}

/// A script that waits until nothing is read from these files, and says what there is then.
fn until_hidden(files: &str) -> String {
    format!(
        "read go; i=0; while [ $i -lt 1000 ] && [ -n \"$(cat {files} 2>/dev/null)\" ]; do sleep 0.02; i=$((i + 1)); done
        cat {files} 2>/dev/null; ls -A */; echo end"
    )
}

#[test]
fn a_hidden_path_that_appears_while_a_program_runs_is_hidden() {
    let _taken = crate::plain_user::watches_taken();
    let dir = tempfile::tempdir().unwrap();
    let mut plan = protecting(shell(&until_hidden("late/deep/key")), dir.path(), &["late/deep"]);
    plan.path_rules[0].show = Visibility::Hidden;
    let said = changed_outside(&plan, || {
        std::fs::create_dir_all(dir.path().join("late/deep")).unwrap();
        std::fs::write(dir.path().join("late/deep/key"), "secret\n").unwrap();
    });
    assert_eq!(said, "deep\nend\n");
}

#[test]
fn a_hidden_directory_that_is_made_anew_is_hidden_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = protecting(shell(&until_hidden("secret/key")), dir.path(), &["secret"]);
    plan.path_rules[0].show = Visibility::Hidden;
    std::fs::create_dir(dir.path().join("secret")).unwrap();
    let said = changed_outside(&plan, || {
        std::fs::remove_dir(dir.path().join("secret")).unwrap();
        std::fs::create_dir(dir.path().join("secret")).unwrap();
        std::fs::write(dir.path().join("secret/key"), "secret\n").unwrap();
    });
    assert_eq!(said, "end\n");
}

#[test]
fn nothing_is_left_in_the_project_when_the_sandbox_is_killed() {
    let dir = project();
    let before = names(dir.path());
    let plan = protecting(shell("sleep 600"), dir.path(), &PROTECTED);
    block(async {
        let mut running = start(program(), &plan, Streams::Piped).await.unwrap();
        assert_eq!(names(dir.path()), before, "and while it runs there is nothing either");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(running.init), nix::sys::signal::Signal::SIGKILL).unwrap();
        running.wait().await.unwrap();
    });
    assert_eq!(names(dir.path()), before);
    block(run(&plan_of_true(dir.path()))).unwrap();
}

fn plan_of_true(dir: &Path) -> Plan {
    protecting(shell("true"), dir, &PROTECTED)
}

/// A directory on a disk: what is written to memory does not count. The build directory is on one, and a plain user is given
/// a place in it.
pub fn on_disk() -> tempfile::TempDir {
    let own = nix::unistd::geteuid().is_root();
    if own { tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")) } else { tempfile::tempdir() }.unwrap()
}

#[test]
fn bytes_written_to_a_project_are_bounded() {
    let dir = on_disk();
    let script = "import os, errno
block, sizes = b'x' * (1 << 20), []
def full():
    try:
        for n in range(400):
            with open(f'big{n}', 'wb') as out: out.write(block); out.flush(); os.fsync(out.fileno())
            sizes.append(1)
    except OSError as fault: return errno.errorcode[fault.errno]
print(full() in ('EDQUOT', 'EFBIG'), len(sizes) < 300)
try: open('more', 'w').close(); print('opened')
except OSError as fault: print(errno.errorcode[fault.errno])
try: os.posix_fallocate(os.open('/tmp/x', os.O_CREAT | os.O_WRONLY), 0, 1 << 20); print('allocated')
except OSError as fault: print(errno.errorcode[fault.errno])
open('/tmp/scratch', 'w').close(); print(open('big0').read(1))";
    let mut plan = protecting(python(script), dir.path(), &PROTECTED);
    plan.limits.disk_bytes = 32 << 20;
    let seen = block(run(&plan)).unwrap();
    assert!(seen.out.starts_with("True True\nEDQUOT\n") && seen.out.ends_with("x\n"), "{seen:?}");
}

#[test]
fn bytes_are_counted_for_all_programs_of_an_agent_together() {
    let dir = on_disk();
    let host = acheron_sandbox::host_id();
    let mut plan = protecting(shell("head -c 20000000 /dev/zero > big; sync big; echo done"), dir.path(), &PROTECTED);
    let limits = acheron_sandbox::AgentLimits { disk_bytes: 30 << 20, ..Default::default() };
    plan.together = Some(acheron_sandbox::SharedLimits { host, owner: "charon".to_owned(), limits });
    let ran: Vec<String> = (0..4)
        .map(|_| {
            block(run(&plan)).map_or_else(|refused| format!("{:?}", refused.code), |seen| seen.out.trim().to_owned())
        })
        .collect();
    assert_eq!(ran.first().map(String::as_str), Some("done"));
    assert_eq!(ran.last().map(String::as_str), Some("BudgetExceeded"), "{ran:?}");
}

#[test]
fn bytes_written_through_a_mapping_are_bounded() {
    let dir = on_disk();
    let script = "import mmap, os, time
files = [os.open(f'big{n}', os.O_CREAT | os.O_RDWR) for n in range(16)]
for file in files: os.ftruncate(file, 32 << 20)
for file in files:
    with mmap.mmap(file, 32 << 20) as memory:
        for page in range(0, 32 << 20, 4096): memory[page] = 1
        memory.flush()
    time.sleep(0.2)
print('all was written')";
    let mut plan = protecting(python(script), dir.path(), &PROTECTED);
    plan.limits.disk_bytes = 32 << 20;
    let refused = block(run(&plan)).unwrap_err();
    assert_eq!(refused.code, acheron_base::Code::QuotaExceeded, "{refused}");
    assert!(refused.message.contains("sandbox.limits.disk_bytes in the mountspec"), "{refused}");
    let used = std::process::Command::new("du").arg("-sm").arg(dir.path()).output().unwrap().stdout;
    let used: u64 = String::from_utf8_lossy(&used).split('\t').next().unwrap().parse().unwrap();
    assert!(used < 300, "{used} MiB of 512");
}

#[test]
fn the_number_of_files_and_directories_is_bounded() {
    let dir = project();
    let script = "import os, errno
made = 0
def more(make):
    global made
    while made < 1000:
        try: make(made)
        except OSError as fault: return errno.errorcode[fault.errno]
        made += 1
os.mkdir('deeper')
print(more(lambda n: (os.mkdir(f'd{n}'), os.rmdir(f'd{n}'))), made)
for make in [lambda n: os.mkdir(f'deeper/{n}'), lambda n: open(f'src/{n}', 'w').close(), lambda n: os.symlink('x', f'l{n}'), lambda n: os.mkfifo(f'f{n}')]:
    print(more(make), made)
open('deeper/../free', 'a').close(); os.mkdir('/tmp/d'); print('the rest goes on')";
    let mut plan = protecting(python(script), dir.path(), &PROTECTED);
    plan.limits.disk_files = 100;
    let seen = block(run(&plan)).unwrap();
    assert_eq!(seen.out, format!("{}the rest goes on\n", "EDQUOT 99\n".repeat(5)), "{seen:?}");
}

#[test]
fn files_are_counted_for_all_programs_of_an_agent_together() {
    let dir = project();
    let mut plan =
        protecting(shell("for n in 1 2 3; do mkdir d$1$n; rmdir d$1$n; done; echo done"), dir.path(), &PROTECTED);
    let limits = acheron_sandbox::AgentLimits { disk_files: 8, ..Default::default() };
    let (host, owner) = (acheron_sandbox::host_id(), "charon".to_owned());
    plan.together = Some(acheron_sandbox::SharedLimits { host, owner, limits });
    let ran: Vec<String> = (0..4)
        .map(|_| {
            block(run(&plan))
                .map_or_else(|refused| refused.message, |seen| format!("{} {}", seen.out.trim(), !seen.err.is_empty()))
        })
        .collect();
    assert_eq!(ran[..3], ["done false", "done false", "done true"]);
    assert!(ran[3].contains("sandbox.agent_limits.disk_files"), "{ran:?}");
}
