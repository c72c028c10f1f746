//! The 23 attempts by which sandboxes for agents are compared, each made from inside: none may be open, neither for root nor
//! for a plain user.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use crate::landlock_only::Refusing;
use crate::{block, finish, program, python};
use acheron_sandbox::{Level, PathRule, Streams, Visibility, start};

const INSIDE: &str = "/projects/p/fs";
const PLAIN_USER: u32 = 61_234;
const SIBLING_SECRET: &str = "sibling-secret";

/// Makes each attempt and prints `open <name>` if it gets through, then how many were made.
const ATTEMPTS: &str = r#"
import ctypes, os, signal, socket as s, subprocess, sys
(home, project, tcp, udp, abstract, sibling) = sys.argv[1:7]
libc, made = ctypes.CDLL(None, use_errno=True), 0
def attempt(name, change):
    global made
    made += 1
    try: through = change()
    except Exception: through = False
    if through is not False: print('open', name)
def child(code): return subprocess.run(['/usr/bin/python3', '-c', code], stderr=subprocess.DEVNULL).returncode == 0
def write(name, text='evil'):
    os.makedirs(os.path.dirname(name) or '.', exist_ok=True)
    open(name, 'w').write(text)
def connect(family, kind, address):
    with s.socket(family, kind) as socket: socket.connect(address)
def send_udp():
    with s.socket(s.AF_INET, s.SOCK_DGRAM) as socket: socket.sendto(b'x', ('127.0.0.1', int(udp)))
    return False  # whether it arrived is seen outside
def datagram_pair():
    one, other = s.socketpair(s.AF_UNIX, s.SOCK_DGRAM); one.sendto(b'x', project + '/datagrams')
attempt('read a key in home', lambda: open(home + '/.ssh/id_ed25519').read())
attempt('read another secret in home', lambda: open(home + '/.netrc').read())
attempt('write in home', lambda: write(home + '/planted') or False)  # seen outside
attempt('write in /tmp', lambda: write('/tmp/acheron-yardstick') or False)  # seen outside
attempt('plant a hook', lambda: write(project + '/.git/hooks/pre-commit'))
attempt('change settings of an agent', lambda: write(project + '/.claude/settings.json'))
attempt('plant .mcp.json', lambda: write(project + '/.mcp.json'))
attempt('TCP', lambda: connect(s.AF_INET, s.SOCK_STREAM, ('127.0.0.1', int(tcp))))
attempt('UDP', send_udp)
attempt('abstract socket', lambda: connect(s.AF_UNIX, s.SOCK_STREAM, '\0' + abstract))
attempt('socket in home', lambda: connect(s.AF_UNIX, s.SOCK_STREAM, home + '/socket'))
attempt('socket in the project', lambda: connect(s.AF_UNIX, s.SOCK_STREAM, project + '/socket') or datagram_pair())
attempt('trace a sibling', lambda: libc.ptrace(16, int(sibling), 0, 0) == 0)
attempt('environment of a sibling', lambda: 'sibling-secret' in open(f'/proc/{sibling}/environ').read())
attempt('list processes', lambda: any(open(f'/proc/{pid}/cmdline').read().startswith('sleep') for pid in os.listdir('/proc') if pid.isdigit()))
attempt('signal a sibling', lambda: os.kill(int(sibling), 0) is None)
attempt('key of the parent', lambda: 'secret' in os.environ.get('PARENT_KEY', ''))
attempt('user namespace', lambda: child('import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x10000000) != 0)'))
attempt('io_uring', lambda: libc.syscall(425, 8, ctypes.create_string_buffer(256)) >= 0)
def opens(protocol):
    try: s.socket(s.AF_NETLINK, s.SOCK_RAW, protocol).close(); return True
    except OSError: return False
attempt('netlink', lambda: any([opens(protocol) for protocol in range(1, 23)]))
def forks():
    pids = []
    try:
        while len(pids) < 1400:
            pid = os.fork()
            if pid == 0: signal.pause(); os._exit(0)
            pids.append(pid)
    except OSError: pass
    for pid in pids: os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
    return len(pids) >= 1400
attempt('fork 1400 children', forks)
attempt('touch 2 GiB', lambda: child("b = bytearray(2 << 30)\nfor at in range(0, len(b), 4096): b[at] = 1"))
def fill():
    with open(project + '/big', 'wb', buffering=0) as out:
        for _ in range(300): out.write(b'x' * (1 << 20)); os.fsync(out.fileno())
    return os.path.getsize(project + '/big') >= 300 << 20
attempt('write 300 MiB', fill)
print(made, 'made')
"#;

/// Kills the sibling when it goes.
struct Sibling(Child);

impl Drop for Sibling {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Everything that an attempt could reach, and what got through.
fn attempts(level: Level, program: &Path) -> String {
    let outside = tempfile::tempdir().unwrap();
    let (home, project) = (outside.path().join("home"), outside.path().join("project"));
    for name in ["home/.ssh", "project/.git/hooks", "project/.claude"] {
        std::fs::create_dir_all(outside.path().join(name)).unwrap();
    }
    for name in ["home/.ssh/id_ed25519", "home/.netrc", "project/.claude/settings.json", "project/.git/config"] {
        std::fs::write(outside.path().join(name), "kept").unwrap();
    }
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let name = format!("acheron-yardstick-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let _sockets = [home.join("socket"), project.join("socket")].map(|path| UnixListener::bind(path).unwrap());
    let datagrams = std::os::unix::net::UnixDatagram::bind(project.join("datagrams")).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let sibling = Sibling(Command::new("sleep").arg("600").env("KEY", SIBLING_SECRET).spawn().unwrap());

    let mut plan = python(ATTEMPTS).bind(&project, INSIDE, false);
    plan.level = level;
    let shown = if level == Level::Landlock { project.display().to_string() } else { INSIDE.to_owned() };
    let words = [home.display().to_string(), shown, tcp.local_addr().unwrap().port().to_string()];
    let more = [udp.local_addr().unwrap().port().to_string(), name, sibling.0.id().to_string()];
    plan.argv.extend(words.into_iter().chain(more));
    let names = [".git/hooks", ".git/config", ".claude", ".mcp.json"];
    plan.path_rules = names
        .map(|name| PathRule { path: Path::new(INSIDE).join(name), bind: INSIDE.into(), show: Visibility::ReadOnly })
        .to_vec();
    // All others are the defaults; the limits of memory and processes are too.
    plan.limits.disk_bytes = 100 << 20;
    let seen = block(async {
        let mut running = start(program, &plan, Streams::Piped).await.unwrap();
        finish(&mut running).await.unwrap()
    });
    let mut said = format!("{}{}", seen.out, seen.err);
    let arrived = |what: &str, so: bool| if so { format!("open {what}\n") } else { String::new() };
    said += &arrived("UDP", udp.recv(&mut [0; 8]).is_ok());
    said += &arrived("socket in the project", datagrams.recv(&mut [0; 8]).is_ok());
    said += &arrived("write in home", home.join("planted").exists());
    said += &arrived("write in /tmp", Path::new("/tmp/acheron-yardstick").exists());
    let kept = std::fs::read_to_string(project.join(".claude/settings.json")).unwrap() == "kept";
    said += &arrived("change settings of an agent", !kept);
    said
}

#[test]
fn every_attempt_is_stopped() {
    assert_eq!(attempts(Level::Namespaces, program()), "23 made\n");
}

/// The column beside it: where namespaces are refused. What is open there is told.
#[test]
fn landlock_alone_stops_as_many_as_it_says() {
    let said = attempts(Level::Landlock, Refusing::new().program());
    let open: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("open ")).collect();
    println!("attempts stopped: 23 of 23 with namespaces, {} of 23 with Landlock alone {open:?}", 23 - open.len());
    assert_eq!(said, "23 made\n");
}

/// The same as a user without rights: this program again.
#[test]
fn every_attempt_is_stopped_for_a_plain_user_too() {
    if !nix::unistd::geteuid().is_root() {
        return; // the test above was it
    }
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    let both = ["yardstick::every_attempt_is_stopped", "yardstick::landlock_alone_stops_as_many_as_it_says"];
    again.args(["--exact", both[0], both[1], "--nocapture", "--test-threads=1"]);
    again.env_clear().env("TMPDIR", place.path()).env("PATH", "/usr/bin:/bin").current_dir("/");
    again.uid(PLAIN_USER).gid(PLAIN_USER);
    let output = again.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("2 passed"), "{said}");
}
