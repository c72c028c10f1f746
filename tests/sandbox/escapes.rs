//! The table of ways out.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::{check, python, secret, shell};
use acheron_sandbox::Link;

#[test]
fn the_operators_home_is_not_there() {
    let (home, file) = secret();
    check(
        &shell(&format!(
            "cat {0} 2>/dev/null || echo absent; ls -d {1} 2>/dev/null || echo absent",
            file.display(),
            home.path().display()
        )),
        "absent\nabsent",
    );
    check(&shell("ls -A /root /home /tmp 2>&1 | sed 's/.*No such.*/no root/'"), "no root\n/home:\n\n/tmp:");
    check(&shell("cat /etc/shadow /etc/ssl/private/* 2>&1 | grep -vc 'No such file'; ls / | tr '\\n' ' '"), {
        "0\nbin dev etc home lib lib64 proc sbin tmp usr"
    });
}

#[test]
fn another_agents_directory_is_absent_and_not_only_closed() {
    let tree = tempfile::tempdir().unwrap();
    for agent in ["charon", "styx"] {
        std::fs::create_dir_all(tree.path().join("agents").join(agent)).unwrap();
    }
    let mut plan = shell("ls /agents; ls /agents/styx /agents/charon/../styx /agents/self/ 2>&1");
    plan = plan.bind(tree.path().join("agents/charon"), "/agents/charon", false);
    plan.links.push(Link { path: "/agents/self".into(), to: "charon".into() });
    check(
        &plan,
        "charon\nself\nls: cannot access '/agents/styx': No such file or directory\n\
         ls: cannot access '/agents/charon/../styx': No such file or directory\n/agents/self/:",
    );
}

#[test]
fn the_hosts_processes_cannot_be_seen_traced_or_killed() {
    let host = std::process::id();
    check(&shell(&format!("test -e /proc/{host} || echo absent; kill -9 {host} 2>&1 | grep -o 'No such process'")), {
        "absent\nNo such process"
    });
    check(
        &python(&format!(
            "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n\
             print(libc.ptrace(16, {host}, 0, 0), os.strerror(ctypes.get_errno()))\n\
             print(libc.ptrace(16, 1, 0, 0), os.strerror(ctypes.get_errno()))"
        )),
        "-1 No such process\n-1 Operation not permitted",
    );
}

#[test]
fn its_init_can_be_neither_opened_nor_hurt() {
    check(
        &shell(
            "{ kill -9 1; kill -TERM 1; } 2>&1 | grep -c 'not permitted'; cat /proc/1/environ 2>&1; ls /proc/1/root/ 2>&1; \
             readlink /proc/1/fd/3 || echo closed",
        ),
        "2\ncat: /proc/1/environ: Permission denied\nls: cannot access '/proc/1/root/': Permission denied\nclosed",
    );
}

#[test]
fn nothing_outside_can_be_written() {
    let (home, _) = secret();
    let plan = shell(
        "for f in /x /usr/x /etc/x /projects/p/fs/x /proc/sys/kernel/pid_max /proc/self/oom_score_adj; do
           (echo 1 > $f) 2>&1 | sed 's/.*cannot create //'; done
         chmod 777 /usr /projects/p/fs 2>&1 | sed 's/.*: //'; touch /tmp/x /home/x /dev/shm/x && echo scratch",
    );
    check(
        &plan.bind(home.path(), "/projects/p/fs", true),
        "/x: Read-only file system\n/usr/x: Read-only file system\n/etc/x: Read-only file system\n\
         /projects/p/fs/x: Read-only file system\n/proc/sys/kernel/pid_max: Read-only file system\n\
         /proc/self/oom_score_adj: Read-only file system\nRead-only file system\nRead-only file system\nscratch",
    );
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
}

#[test]
fn a_link_leads_nowhere_else_than_inside() {
    let (_home, file) = secret();
    let project = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&file, project.path().join("key")).unwrap();
    std::os::unix::fs::symlink("/proc/1/root", project.path().join("root")).unwrap();
    let plan =
        shell("cat /projects/p/fs/key 2>&1; ls /projects/p/fs/root/ 2>&1; cd /projects/p/fs && ls ../../../../..");
    check(
        &plan.bind(project.path(), "/projects/p/fs", false),
        "cat: /projects/p/fs/key: No such file or directory\n\
         ls: cannot access '/projects/p/fs/root/': Permission denied\n\
         bin\ndev\netc\nhome\nlib\nlib64\nproc\nprojects\nsbin\ntmp\nusr",
    );
}

#[test]
fn a_link_in_a_project_cannot_move_another_bind() {
    let (home, _) = secret();
    let project = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/etc", project.path().join("fs")).unwrap();
    let plan = shell("true").bind(project.path(), "/projects/p", false).bind(home.path(), "/projects/p/fs", false);
    let refused = crate::block(crate::run(&plan)).unwrap_err();
    assert!(refused.message.contains("mounting '/projects/p/fs'"), "{refused}");
}

#[test]
fn no_socket_leads_to_the_host() {
    let (home, _) = secret();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let path = home.path().join("socket");
    let _named = UnixListener::bind(&path).unwrap();
    let name = format!("acheron-test-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let script = format!(
        "import socket as s, errno
def attempt(what, family, kind, address):
    try:
        with s.socket(family, kind) as k: k.connect(address); k.send(b'x'); print(what, 'open')
    except OSError as e: print(what, errno.errorcode[e.errno])
attempt('tcp', s.AF_INET, s.SOCK_STREAM, ('127.0.0.1', {tcp}))
attempt('out', s.AF_INET, s.SOCK_DGRAM, ('192.0.2.1', 53))
attempt('path', s.AF_UNIX, s.SOCK_STREAM, '{path}')
attempt('abstract', s.AF_UNIX, s.SOCK_STREAM, chr(0) + '{name}')
attempt('packet', s.AF_PACKET, s.SOCK_RAW, ('lo', 0))
attempt('vsock', 40, s.SOCK_STREAM, (2, 1))
attempt('udp', s.AF_INET, s.SOCK_DGRAM, ('127.0.0.1', {udp}))
print([n for _, n in s.if_nameindex()])",
        tcp = tcp.local_addr().unwrap().port(),
        udp = udp.local_addr().unwrap().port(),
        path = path.display(),
    );
    // UDP leaves without complaint, on a loopback of its own.
    let expected =
        "tcp ECONNREFUSED\nout ENETUNREACH\npath EPERM\nabstract EPERM\npacket EPERM\nvsock EPERM\nudp open\n['lo']";
    check(&python(&script), expected);
    assert_eq!(udp.recv(&mut [0; 8]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_granted_network_is_the_hosts() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let mut plan = python(&format!("import socket; socket.create_connection(('127.0.0.1', {port})); print('open')"));
    plan.network = true;
    check(&plan, "open");
}

#[test]
fn no_further_namespace_no_mount_no_other_root() {
    check(
        &python(
            "import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what, *call):
    print(what, 'open' if libc.syscall(*call) >= 0 else os.strerror(ctypes.get_errno()))
attempt('unshare', 272, 0x10000000)
attempt('setns', 308, 0, 0)
attempt('clone', 56, 0x10000000 | 17, 0, 0, 0, 0)
attempt('clone3', 435, 0, 0)
attempt('mount', 165, b'none', b'/tmp', b'tmpfs', 0, 0)
attempt('umount', 166, b'/tmp', 2)
attempt('chroot', 161, b'/tmp')
attempt('open_tree', 428, -100, b'/', 1)
attempt('open_tree_attr', 467, -100, b'/', 0, 0, 0)
attempt('handle', 304, -100, 0, 0)
attempt('bpf', 321, 0, 0, 0)
attempt('io_uring', 425, 1, 0)
attempt('keyctl', 250, 0, 0)
attempt('module', 175, 0, 0, 0)
attempt('x32 mount', 165 | 0x40000000, b'none', b'/tmp', b'tmpfs', 0, 0)",
        ),
        "unshare Operation not permitted\nsetns Operation not permitted\nclone Operation not permitted\n\
         clone3 Function not implemented\nmount Operation not permitted\numount Operation not permitted\n\
         chroot Operation not permitted\nopen_tree Operation not permitted\n\
         open_tree_attr Function not implemented\nhandle Operation not permitted\n\
         bpf Operation not permitted\nio_uring Operation not permitted\nkeyctl Operation not permitted\n\
         module Operation not permitted\nx32 mount Function not implemented",
    );
}

#[test]
fn no_privileges_are_left_and_none_can_be_had() {
    check(
        &shell("grep -E '^(CapPrm|CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'"),
        "CapPrm:0000000000000000\nCapEff:0000000000000000\nCapBnd:0000000000000000\nNoNewPrivs:1\nSeccomp:2",
    );
}

#[test]
fn a_fork_bomb_stops_at_its_limit() {
    let mut plan = python(
        "import os, time
n = 0
try:
    while n < 5000:
        if os.fork() == 0: time.sleep(600)
        n += 1
except OSError as e: print(e.strerror, n < 400)",
    );
    plan.limits.processes = 60;
    check(&plan, "Resource temporarily unavailable True");
}

#[test]
fn a_disk_that_is_filled_is_its_own() {
    let mut plan = shell("dd if=/dev/zero of=/tmp/x bs=1M count=64 2>&1 | grep -o 'No space left on device'");
    plan.limits.scratch_bytes = 8 << 20;
    check(&plan, "No space left on device");
    let project = tempfile::tempdir().unwrap();
    let mut plan = shell("dd if=/dev/zero of=/projects/p/fs/x bs=1M count=64 2>/dev/null; stat -c %s /projects/p/fs/x");
    plan.limits.file_bytes = 4 << 20;
    check(&plan.bind(project.path(), "/projects/p/fs", false), "4194304");
}

#[test]
fn memory_ends_at_its_limit() {
    let mut plan = shell("/usr/bin/python3 -c 'x = bytearray(1 << 30)' 2>/dev/null && echo open || echo stopped");
    plan.limits.memory_bytes = 128 << 20;
    check(&plan, "stopped");
}

#[test]
fn limits_cannot_be_raised_from_inside() {
    let mut plan = shell("ulimit -n 4096 2>/dev/null && echo raised || echo kept; ulimit -n");
    plan.limits.open_files = 200;
    check(&plan, "kept\n200");
}

#[test]
fn the_environment_holds_nothing_of_the_hosts() {
    check(
        &shell("env | cut -d= -f1 | sort | tr '\\n' ' '; cat /proc/1/environ 2>/dev/null | wc -c"),
        "ACHERON_AGENT HOME LANG PATH PWD TERM TMPDIR USER 0",
    );
    check(&shell("ls /proc/self/fd | tr '\\n' ' '; hostname; id -un"), "0 1 2 3 acheron\nagent");
}
