//! What of a project is not to be seen or changed, and what must not be swapped.

use std::path::Path;

use crate::{block, check, python, run, shell};
use acheron_base::host_dir::Source;
use acheron_sandbox::{PathRule, Plan, Visibility};

const INSIDE: &str = "/projects/p/fs";

/// A project with a secret, a mountspec and a directory for results in it.
fn project() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in [("a/state/key", "secret"), ("spec/default.json", "{}"), ("out/old", "old"), ("free", "free")] {
        let file = dir.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    dir
}

fn bound(plan: Plan, dir: &Path, read_only: bool, guards: &[(&str, Visibility)]) -> Plan {
    let mut plan = plan.bind(dir, INSIDE, read_only);
    let guard = |(path, show): &(&str, Visibility)| PathRule {
        path: Path::new(INSIDE).join(path),
        bind: INSIDE.into(),
        show: *show,
    };
    plan.path_rules = guards.iter().map(guard).collect();
    plan.cwd = INSIDE.into();
    plan
}

#[test]
fn what_is_guarded_is_neither_seen_nor_changed_nor_moved_away() {
    let dir = project();
    let script = "ls -A a/state; cat a/state/key 2>/dev/null || echo hidden
        (echo x > spec/default.json) 2>/dev/null || echo fixed
        mv a b 2>/dev/null || echo held; mv spec c 2>/dev/null || echo held; rm -rf spec/default.json 2>/dev/null || echo held
        echo new > free && cat free && echo made > a/beside && cat a/beside";
    let guards = [
        ("a/state", Visibility::Hidden),
        ("spec/default.json", Visibility::ReadOnly),
        ("not/there", Visibility::Hidden),
    ];
    check(&bound(shell(script), dir.path(), false, &guards), "hidden\nfixed\nheld\nheld\nheld\nnew\nmade");
    assert_eq!(std::fs::read_to_string(dir.path().join("a/state/key")).unwrap(), "secret");
}

#[test]
fn a_part_may_be_written_where_the_rest_may_not() {
    let dir = project();
    let script = "(echo x > free) 2>/dev/null || echo fixed; echo new > out/new && cat out/new out/old";
    let guards = [("a", Visibility::ReadOnly), ("out", Visibility::Open)];
    let mut plan = bound(shell(script), dir.path(), true, &guards);
    plan.binds[0].read_only = true;
    check(&plan, "fixed\nnew\nold");
}

#[test]
fn nothing_is_made_in_what_is_bound() {
    let (project, docs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bound = |at: &str| shell("ls -A").bind(project.path(), "/projects/p/fs", false).bind(docs.path(), at, false);
    let refused = crate::block(crate::run(&bound("/projects/p/fs/docs/deep"))).unwrap_err();
    assert_eq!(refused.message, "'/projects/p/fs/docs/deep' is not there, and nothing is made in what is bound");
    assert_eq!(std::fs::read_dir(project.path()).unwrap().count(), 0);
    std::fs::create_dir_all(project.path().join("docs/deep")).unwrap();
    crate::block(crate::run(&bound("/projects/p/fs/docs/deep"))).unwrap();
}

#[test]
fn a_directory_that_was_swapped_for_a_link_is_not_bound() {
    let (dir, other) = (project(), tempfile::tempdir().unwrap());
    let found = Source::resolve(&dir.path().join("a")).unwrap();
    let mut plan = shell("ls").bind(&found.path, INSIDE, true);
    plan.binds[0].id = Some(found.id);
    check(&plan, "");
    std::fs::rename(dir.path().join("a"), dir.path().join("b")).unwrap();
    std::os::unix::fs::symlink(other.path(), dir.path().join("a")).unwrap();
    let refused = block(run(&plan)).unwrap_err();
    assert!(refused.message.contains("is not the directory that it was when it was bound"), "{refused}");
}

#[test]
fn the_hosts_devices_keep_their_mode_and_are_of_use() {
    check(
        &shell(
            "chmod 600 /dev/null 2>/dev/null || echo refused; touch /dev/zero 2>/dev/null || echo refused; echo x > /dev/null && head -c 1 /dev/zero | wc -c",
        ),
        "refused\nrefused\n1",
    );
}

/// Tries everything that changes a file or what the file system says of it, and prints what was not refused.
const CHANGES: &str = "import os, sys
def attempt(what, change):
    try: change()
    except OSError: return
    print('changed', what)
def changes(name):
    mode = os.stat(name).st_mode & 0o7777
    attempt('mode', lambda: os.chmod(name, mode))
    attempt('owner', lambda: os.chown(name, -1, os.getgid()))
    attempt('times', lambda: os.utime(name))
    attempt('attributes', lambda: os.setxattr(name, 'user.acheron', b'x'))
    attempt('length', lambda: os.truncate(name, 0))
    attempt('content', lambda: os.write(os.open(name, os.O_WRONLY), b'x'))
";

#[test]
fn a_hidden_file_is_empty_and_changes_nothing_of_the_hosts() {
    let dir = project();
    let null = std::fs::metadata("/dev/null").unwrap();
    let script = format!(
        "{CHANGES}
print(repr(open('a/state/key').read()))
changes('a/state/key')
attempt('name', lambda: os.rename('a/state/key', 'free'))
attempt('entry', lambda: os.unlink('a/state/key'))
print(os.stat('a/state/key').st_rdev)"
    );
    for read_only in [false, true] {
        check(&bound(python(&script), dir.path(), read_only, &[("a/state/key", Visibility::Hidden)]), "''\n0");
    }
    use std::os::unix::fs::MetadataExt;
    let after = std::fs::metadata("/dev/null").unwrap();
    assert_eq!((null.mode(), null.mtime_nsec(), null.ctime_nsec()), {
        (after.mode(), after.mtime_nsec(), after.ctime_nsec())
    });
    assert_eq!(std::fs::read_to_string(dir.path().join("a/state/key")).unwrap(), "secret");
}

#[test]
fn devices_and_files_of_the_system_cannot_be_changed() {
    let script = format!(
        "{CHANGES}
for name in ['/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom', '/dev/tty']:
    attempt(name + ' mode', lambda: os.chmod(name, os.stat(name).st_mode & 0o7777))
    attempt(name + ' owner', lambda: os.chown(name, -1, os.getgid()))
    attempt(name + ' times', lambda: os.utime(name))
for directory, _, names in os.walk('/etc'):
    for name in [directory] + [os.path.join(directory, name) for name in names]:
        if os.path.exists(name): changes(name)"
    );
    check(&python(&script), "");
}

#[test]
fn a_device_that_a_stream_leads_to_cannot_be_changed() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "{CHANGES}
sys.stdout = open('/out/said', 'w')
for stream in (0, 1, 2):
    attempt('mode', lambda: os.fchmod(stream, os.fstat(stream).st_mode & 0o7777))
    attempt('times', lambda: os.utime(stream))
    attempt('by name', lambda: os.chmod(f'/proc/self/fd/{{stream}}', 0o666))
print(os.read(0, 1), os.write(1, b'x'))"
    );
    let plan = python(&script).bind(dir.path(), "/out", false);
    let null = std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
    block(async {
        let streams = acheron_sandbox::Streams::Terminal(null.into());
        let mut running = acheron_sandbox::start(crate::program(), &plan, streams).await.unwrap();
        assert_eq!(running.wait().await.unwrap().code, Some(0));
    });
    assert_eq!(std::fs::read_to_string(dir.path().join("said")).unwrap(), "b'' 1\n");
}

#[test]
fn no_file_is_given_the_rights_of_another_user() {
    let dir = project();
    let script = "import os
def tried(what, *words):
    try: what(*words); print('done')
    except PermissionError: print('refused')
tried(os.chmod, 'free', 0o4755)
tried(os.chmod, 'free', 0o2755)
tried(os.chmod, 'free', 0o755)
tried(lambda: os.open('made', os.O_CREAT | os.O_WRONLY, 0o4755))
tried(lambda: os.open('plain', os.O_CREAT | os.O_WRONLY, 0o755))
tried(os.mknod, 'node', 0o104755)";
    let expected = "refused\nrefused\ndone\nrefused\ndone\nrefused";
    check(&bound(python(script), dir.path(), false, &[]), expected);
}

#[test]
fn a_socket_in_a_project_leads_nowhere_and_pairs_still_work() {
    let dir = project();
    let _listening = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    let script = "import socket as s, subprocess
try: s.socket(s.AF_UNIX).connect('socket'); print('open')
except PermissionError: print('refused')
a, b = s.socketpair(); a.send(b'x'); print(b.recv(1).decode(), subprocess.check_output(['echo', 'ran'], text=True))";
    check(&bound(python(script), dir.path(), false, &[]), "refused\nx ran");
}

#[test]
fn a_datagram_pair_reaches_no_socket_of_the_hosts() {
    let dir = project();
    let listening = std::os::unix::net::UnixDatagram::bind(dir.path().join("socket")).unwrap();
    listening.set_nonblocking(true).unwrap();
    let script = "import socket as s
for kind in (s.SOCK_DGRAM, s.SOCK_RAW, s.SOCK_DGRAM | s.SOCK_CLOEXEC, s.SOCK_RDM):
    try:
        a, b = s.socketpair(s.AF_UNIX, kind); a.sendto(b'x', 'socket'); print('sent')
    except OSError: pass
for kind in (s.SOCK_STREAM, s.SOCK_SEQPACKET, s.SOCK_STREAM | s.SOCK_NONBLOCK):
    a, b = s.socketpair(s.AF_UNIX, kind); a.send(b'x'); print(b.recv(1).decode())";
    check(&bound(python(script), dir.path(), false, &[]), "x\nx\nx");
    assert!(listening.recv(&mut [0; 8]).is_err(), "nothing arrived");
}

#[test]
fn only_the_netlink_socket_that_names_and_addresses_need_can_be_opened() {
    let script = "import socket as s
for protocol in range(1, 23):
    for kind in (s.SOCK_RAW, s.SOCK_DGRAM):
        try: s.socket(s.AF_NETLINK, kind, protocol); print('open', protocol, kind)
        except PermissionError: pass
for kind in (s.SOCK_DGRAM, s.SOCK_DGRAM | s.SOCK_CLOEXEC):
    try: s.socket(s.AF_NETLINK, kind, 0); print('open', kind)
    except PermissionError: pass
print(s.if_nameindex(), sorted(it[4][0] for it in s.getaddrinfo('localhost', 80, type=s.SOCK_STREAM)))
s.socket(s.AF_NETLINK, s.SOCK_RAW | s.SOCK_CLOEXEC, 0)";
    check(&python(script), "[(1, 'lo')] ['127.0.0.1', '::1']");
}

#[test]
fn what_the_kernel_says_of_the_machine_is_empty() {
    let script = "for f in cmdline slabinfo timer_list kmsg vmallocinfo pagetypeinfo kpageflags iomem ioports keys key-users \
        kallsyms modules config.gz sched_debug; do test ! -e /proc/$f || head -c 1 /proc/$f 2>/dev/null | wc -c; done | sort -u
        grep -c . /proc/meminfo /proc/cpuinfo /proc/self/status /proc/loadavg | grep -c ':0$'";
    check(&shell(script), "0\n0");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_by_their_second_number_are_unknown() {
    let script = "import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(0x40000000 | 39), errno.errorcode[ctypes.get_errno()])";
    check(&python(script), "-1 ENOSYS");
}

#[test]
fn a_link_that_cannot_be_made_keeps_no_program_from_starting() {
    let dir = project();
    let mut plan = bound(shell("readlink /projects/p/good; echo started"), dir.path(), false, &[]);
    for path in ["/projects/p/fs", "/projects/p/fs/free/x", "/projects/p/good", "/projects/p/good"] {
        plan.links.push(acheron_sandbox::Link { path: path.into(), to: "/tmp".into() });
    }
    check(&plan, "/tmp\nstarted");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 4, "nothing is made in the project");
}

#[test]
fn watches_of_files_are_bounded_per_sandbox() {
    let script = "import ctypes, os
libc = ctypes.CDLL(None)
instances = []
while len(instances) < 1000:
    fd = libc.inotify_init()
    if fd < 0: break
    instances.append(fd)
watches = 0
for number in range(20000):
    os.mkdir(f'/tmp/{number}')
    if libc.inotify_add_watch(instances[0], f'/tmp/{number}'.encode(), 0x100) < 0: break
    watches += 1
print(len(instances), watches)";
    check(&python(script), "32 16384");
}

#[test]
fn what_counts_with_the_user_of_the_host_is_bounded_per_sandbox() {
    let script = "import ctypes, fcntl, os, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [34])
queued = 0
def queue():
    # SI_QUEUE, which is refused beyond the limit, and not merged as a plain kill is.
    return libc.sigqueue(os.getpid(), 34, ctypes.c_void_p(0)) == 0
while queued < 100000 and queue(): queued += 1
print('signals', queued <= 256)
while signal.sigtimedwait([34], 0): pass
timers, made = 0, ctypes.c_void_p()
while timers < 100000 and libc.timer_create(0, None, ctypes.byref(made)) == 0: timers += 1
print('timers', 0 < timers <= 256)
print('queues', resource.getrlimit(12) == (262144, 262144))
ends = os.pipe()
try: fcntl.fcntl(ends[0], 1031, 1 << 20); print('large pipe')
except PermissionError: print('pipes stay small', fcntl.fcntl(ends[0], 1032) <= 65536)";
    check(&python(script), "signals True\ntimers True\nqueues True\npipes stay small True");
}

#[test]
fn terminals_are_bounded_per_sandbox() {
    let script = "import os
ends = []
try:
    while len(ends) < 200: ends.append(os.openpty())
except OSError as fault: print(len(ends), os.strerror(fault.errno))";
    check(&python(script), "16 No space left on device");
}

/// Calls that came with Linux 6.8 to 6.18: programs fall back to older ones, which the filter knows.
#[test]
fn calls_that_are_newer_than_the_filter_are_unknown() {
    let dir = project();
    let script = "import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def attempt(number, *words):
    return 'open' if libc.syscall(number, *words) >= 0 else errno.errorcode[ctypes.get_errno()]
value = (ctypes.c_uint64 * 2)(ctypes.addressof(ctypes.create_string_buffer(b'v')), 1)
print(attempt(463, -100, b'free', 0, b'user.x', value, 16), {attempt(number, -1, 0, 0, 0, 0, 0) for number in [457, 458, 459, 460, 461, 464, 465, 466, 467, 468, 469, 470, 500]})
print(attempt(462, 0, 0, 0) != 'ENOSYS', attempt(443, 0, 0, 0, 0), attempt(447, 0))";
    check(&bound(python(script), dir.path(), false, &[]), "ENOSYS {'ENOSYS'}\nTrue EPERM EPERM");
}
