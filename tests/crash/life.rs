//! One life of a host, in a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use acheron::host::{Host, Options};
use acheron::spec::Spec;
use acheron::state::turns;
use acheron_base::{Clock, Random};

pub const AGENT: &str = "charon";
const STATE: &str = "ACHERON_CRASH_STATE";

/// The spec of the host on `place`, instead of the default one.
/// The records of all turns of an agent, whether or not the host runs.
pub fn turn_records(state: &Path, agent: &str) -> Vec<String> {
    let database = acheron_store::Connection::open(state.join(acheron_store::FILE)).unwrap();
    let jobs = turns::jobs(&database, agent).unwrap();
    jobs.iter().flat_map(|job| turns::records(&database, agent, job).unwrap()).collect()
}

pub fn write_spec(place: &Path, spec: &serde_json::Value) {
    std::fs::write(place.join("spec.json"), spec.to_string()).unwrap();
}

/// Not a test of its own: the host, when this program was started for it.
#[test]
fn the_host_lives_here() {
    let Some(place) = std::env::var_os(STATE).map(PathBuf::from) else { return };
    acheron_sandbox::use_program(env!("CARGO_BIN_EXE_acheron"));
    let spec = match place.join("spec.json") {
        file if file.exists() => Spec::load(&file).unwrap(),
        _ => Spec::default(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let options = Options {
            spec,
            here: place.join("here"),
            state: place.join("state"),
            mountpoint: Some(place.join("mnt")),
            clock: Clock::real(),
            random: Random::real(),
        };
        let mut host = Host::start(options).unwrap();
        let _mount = host.mount(&place.join("mnt")).unwrap();
        if place.join("spec.json").exists() {
            host.follow(&place.join("spec.json"));
        }
        let _gateway = place.join("gateway").exists().then(|| serve_gateway(&host, &place.join("gateway")));
        println!("\nthe host is up");
        // ends when the parent closes its end, should the parent die before it kills us
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
        host.down().await;
    });
}

/// Serves the gateway of the agent, and writes its address down.
fn serve_gateway(host: &Host, file: &Path) -> acheron::gateway::GatewayGuard {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    std::fs::write(file, listener.local_addr().unwrap().to_string()).unwrap();
    let (agent, program) = (AGENT.to_owned(), "program".to_owned());
    let client = acheron::gateway::GatewayClient { agent, program, record: None };
    host.state.gateway().serve(listener, client).unwrap()
}

pub struct Life {
    child: Child,
    root: PathBuf,
    _said: BufReader<ChildStdout>,
}

impl Life {
    /// Starts a host on `place` and waits until its mount is there. `under` is a program to run it under.
    pub fn begin(place: &Path, under: &[String]) -> Life {
        for dir in ["here", "state", "mnt"] {
            std::fs::create_dir_all(place.join(dir)).unwrap();
        }
        let own = std::env::current_exe().unwrap();
        let mut command = match under {
            [program, words @ ..] => {
                let mut command = Command::new(program);
                command.args(words).arg(own);
                command
            }
            [] => Command::new(own),
        };
        command.args(["--exact", "life::the_host_lives_here", "--nocapture", "--test-threads=1"]);
        command.env(STATE, place).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while line.trim() != "the host is up" {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "the host did not come up");
        }
        Life { child, root: place.join("mnt"), _said: said }
    }

    /// The directory of the agent.
    pub fn agent(&self) -> PathBuf {
        self.root.join("agents").join(AGENT)
    }

    /// The root of the mount.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits up to a minute for the host to die by itself.
    pub fn wait_for_death(&self) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        let alive = nix::sys::wait::WaitPidFlag::WNOHANG
            | nix::sys::wait::WaitPidFlag::WNOWAIT
            | nix::sys::wait::WaitPidFlag::WEXITED;
        super::load::until("the host dies", || {
            !matches!(
                nix::sys::wait::waitid(nix::sys::wait::Id::Pid(pid), alive),
                Ok(nix::sys::wait::WaitStatus::StillAlive)
            )
        });
    }

    /// Ends as a host ends that is asked to.
    pub fn leave(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success(), "a host that was asked to end ends well");
    }

    /// `kill -9`, and the dead mount taken away.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = nix::mount::umount2(&self.root, nix::mount::MntFlags::MNT_DETACH);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end();
    }
}
