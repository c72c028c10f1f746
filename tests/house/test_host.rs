//! A whole host on a real mount, in a directory of its own.

use std::path::{Path, PathBuf};

use expect_test::Expect;
use parking_lot::Mutex;
use regex::Regex;
use tempfile::TempDir;

use crate::common;
use acheron::host::{Host, Options};
use acheron::spec::Spec;
use acheron_base::{Clock, Random};

/// A mounted host. Dropping it takes everything away again, also when a test fails.
pub struct TestHost {
    host: Mutex<Option<Host>>,
    runtime: Option<tokio::runtime::Runtime>,
    dir: TempDir,
}

impl TestHost {
    /// The default namespace over a project with two files in it.
    pub fn new() -> TestHost {
        TestHost::of(acheron::spec::DEFAULT)
    }

    /// The namespace of a mountspec.
    pub fn of(spec: &str) -> TestHost {
        TestHost::prepared(spec, |_| ())
    }

    /// As [`of`](Self::of), after `prepare` has put things into the directory that the host is started in.
    pub fn prepared(spec: &str, prepare: impl FnOnce(&Path)) -> TestHost {
        let dir = TempDir::new().unwrap();
        for name in ["here", "ns"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let here = dir.path().join("here");
        std::fs::write(here.join("main.rs"), "fn main() {\n    // TODO: everything\n}\n").unwrap();
        std::fs::write(here.join("notes.txt"), "a note\n").unwrap();
        prepare(&here);
        std::fs::write(dir.path().join("spec.json"), spec).unwrap();
        let mut house = TestHost { host: Mutex::default(), runtime: None, dir };
        house.start();
        house
    }

    fn start(&mut self) {
        acheron_sandbox::use_program(env!("CARGO_BIN_EXE_acheron"));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let spec = Spec::load(&self.spec_file()).unwrap();
        let (here, state) = (self.here(), self.dir.path().join("state"));
        let options =
            Options { spec, here, state, mountpoint: Some(self.root()), clock: Clock::real(), random: Random::real() };
        let host = runtime.block_on(async {
            let mut host = Host::start(options).unwrap();
            host.mount(&self.root()).unwrap();
            host.follow(&self.spec_file());
            host.listen().unwrap();
            host
        });
        *self.host.lock() = Some(host);
        self.runtime = Some(runtime);
    }

    fn stop(&mut self) {
        let host = self.host.lock().take();
        if let (Some(host), Some(runtime)) = (host, self.runtime.take()) {
            runtime.block_on(host.down());
            runtime.shutdown_background();
        }
    }

    /// Takes the host down and starts it again on the same state.
    pub fn restart(&mut self) {
        self.stop();
        self.start();
    }

    /// Takes the host down until [`start_again`](Self::start_again).
    pub fn stop_for_a_while(&mut self) {
        self.stop();
    }

    pub fn start_again(&mut self) {
        self.start();
    }

    fn spec_file(&self) -> PathBuf {
        self.dir.path().join("spec.json")
    }

    /// Edits the mountspec of the mounted host as an editor does: another file takes its name.
    pub fn edit(&self, spec: &str) {
        let draft = self.dir.path().join("spec.json~");
        std::fs::write(&draft, spec).unwrap();
        std::fs::rename(draft, self.spec_file()).unwrap();
    }

    /// The root of the mount.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("ns")
    }

    /// The directory in which the host was started.
    pub fn here(&self) -> PathBuf {
        self.dir.path().join("here")
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Does something with the host itself, inside its runtime.
    pub fn inside<T>(&self, work: impl AsyncFnOnce(&Host) -> T) -> T {
        let host = self.host.lock();
        let runtime = self.runtime.as_ref().unwrap();
        runtime.block_on(work(host.as_ref().unwrap()))
    }

    /// What a session prints, with what differs from run to run made the same.
    pub fn says(&self, script: &str) -> String {
        steady(&common::session(&self.root(), script), self.dir.path())
    }

    /// Runs a session in the root of the mount and compares everything it says.
    #[track_caller]
    pub fn check(&self, script: &str, expect: Expect) {
        expect.assert_eq(&self.says(script));
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ids, times and the temporary directory are different each time.
pub fn steady(said: &str, dir: &Path) -> String {
    let mut said = said.replace(&dir.display().to_string(), "DIR");
    for (pattern, word) in [
        (r"job-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "JOB"),
        (r#"_ms": ?1[0-9]{12}"#, "_ms\":NOW"),
        (r"\b1[0-9]{12}\b", "NOW"),
        (r#"duration_ms": ?[0-9]+"#, "duration_ms\":MS"),
    ] {
        said = Regex::new(pattern).unwrap().replace_all(&said, word).into_owned();
    }
    said
}
