//! Runs a scenario of `scenarios.mjs` in Chromium, and does what it asks of the host.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::{GUARD, session};
use crate::model::ToldModel;
use crate::served::{Served, token};
use crate::test_host::TestHost;

/// What is installed from the registry of npm, once for all runs.
const PACKAGES: [&str; 2] = ["playwright-core@1.65.0", "axe-core@4.14.0"];
const PROGRAM: &str = env!("CARGO_BIN_EXE_acheron");

/// The directory with the packages: installed by the first test that needs them, whole or not at all, while the others wait.
fn packages() -> Result<PathBuf, String> {
    let top = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let home = top.join(format!("page-npm-{}", PACKAGES.join("-")));
    let lock = File::create(top.join("page-npm.lock")).unwrap();
    lock.lock().unwrap();
    if home.exists() {
        return Ok(home);
    }
    let new = tempfile::tempdir_in(top).unwrap();
    let mut install = Command::new("timeout");
    install.arg((4 * GUARD.as_secs()).to_string()).args(["npm", "install", "--no-audit", "--no-fund", "--prefix"]);
    install.arg(new.path()).args(PACKAGES).env("NODE_EXTRA_CA_CERTS", "/etc/ssl/certs/ca-certificates.crt");
    let output = install.output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    std::fs::rename(new.keep(), &home).unwrap();
    Ok(home)
}

/// The browser, and where the packages are; `None`, said loudly, where they cannot be had.
fn tools() -> Option<(PathBuf, PathBuf)> {
    let named = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let Some(browser) = named.iter().map(PathBuf::from).find(|path| path.exists()) else {
        eprintln!("NOT TESTED: there is no Chromium; `apt-get install chromium`");
        return None;
    };
    match packages() {
        Ok(home) => Some((browser, home)),
        Err(why) => {
            eprintln!("NOT TESTED: {PACKAGES:?}: {why}");
            None
        }
    }
}

/// A host with its page, and a model for its agents.
pub struct PageHost {
    pub house: TestHost,
    pub served: Served,
    pub model: ToldModel,
}

impl PageHost {
    /// A host of this mountspec, to which `model` adds the model; `prepare` puts things into its project.
    pub fn new(spec: impl FnOnce(Value) -> Value, prepare: impl FnOnce(&Path)) -> PageHost {
        let model = ToldModel::start();
        let told = json!({"kind": "vllm", "name": "told", "base_url": model.url, "context_tokens": 16_000,
            "prices": {"input_per_mtok": 3.0, "output_per_mtok": 15.0}});
        let house = TestHost::prepared(&spec(told).to_string(), prepare);
        let served = Served::begin(&house, &["--web"]);
        PageHost { house, served, model }
    }

    /// The address that logs a browser in.
    pub fn login(&self, words: &[&str]) -> String {
        let mut command = Command::new(PROGRAM);
        let output = command.args(["open", "--print", "--state"]).arg(self.house.state()).args(words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Takes the host down and up again, and its listener at the same address.
    fn restart(&mut self) {
        let address = self.served.address().to_owned();
        self.served.end();
        self.house.restart();
        self.served = Served::at(&self.house, &address, &["--web"]);
        assert_eq!(self.served.address(), address);
    }

    fn done(&mut self, asked: &Value) -> Value {
        let word = |key: &str| asked[key].as_str().unwrap_or_default();
        match word("do") {
            "sh" => session(&self.house.root(), word("script")).into(),
            "login" if asked["agent"].is_string() => self.login(&["--agent", word("agent")]).into(),
            "login" => self.login(&[]).into(),
            "token" => {
                let words: Vec<&str> = asked["words"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
                token(&self.house, &words).into()
            }
            "restart" => {
                self.restart();
                Value::Null
            }
            "stop" => {
                self.served.end();
                Value::Null
            }
            "say" => {
                self.model.say(word("text"));
                Value::Null
            }
            "end" => {
                self.model.end();
                Value::Null
            }
            other => panic!("the scenario asks for {other:?}: {asked}"),
        }
    }

    /// Runs a scenario to its end.
    pub fn run(&mut self, scenario: &str) {
        let Some((browser, packages)) = tools() else { return };
        let top = Path::new(env!("CARGO_MANIFEST_DIR"));
        let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
        std::fs::create_dir_all(&pictures).unwrap();
        // The pictures of the documents are made anew only if that is wanted.
        let docs = std::env::var_os("UPDATE_EXPECT").map(|_| top.join("docs/web"));
        let told = json!({"url": self.served.url, "browser": browser, "packages": packages, "pictures": pictures, "docs": docs});
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", "280", "node"]).arg(top.join("tests/page/browser.mjs"));
        command.args([scenario, &told.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        for line in stdout.lines().map_while(Result::ok) {
            match line.strip_prefix("ASK ") {
                Some(asked) => {
                    let answer = self.done(&serde_json::from_str(asked).unwrap());
                    writeln!(stdin, "{answer}").unwrap();
                }
                None => eprintln!("{line}"),
            }
        }
        drop(stdin);
        let status = child.wait().unwrap();
        assert!(status.success(), "the scenario `{scenario}` failed ({status}); what it said stands above");
    }
}
