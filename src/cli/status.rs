//! `acheron status`.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::{CommandResult, daemon, pasted, root, say};
use acheron_fuse::mounts_of;

/// List mounts: where, since when, by which process.
#[derive(Args)]
pub struct StatusArgs {
    /// Print one JSON object per mount
    #[arg(long)]
    json: bool,
}

impl StatusArgs {
    pub fn run(self) -> CommandResult {
        let mounts = mounts_of("acheron")?;
        if mounts.is_empty() && !self.json {
            say("nothing is mounted\n");
        }
        for mount in mounts {
            let health = root::health(&mount.path);
            match self.json {
                true => {
                    let line = json!({ "mountpoint": mount.path, "answers": health.is_some(), "health": health });
                    say(&format!("{line}\n"));
                }
                false => say(&render(&mount.path, health.as_ref())),
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn render(path: &Path, health: Option<&Value>) -> String {
    let mountpoint = path.display();
    let Some(health) = health else {
        return format!("{mountpoint}\n  does not answer; `acheron unmount {}` detaches it\n", pasted(path));
    };
    let state = health["state"].as_str().unwrap_or("?");
    let seconds = health["uptime_ms"].as_u64().unwrap_or_default() / 1000;
    let agents: Vec<&str> = health["agents"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    format!(
        "{mountpoint}\n  pid     {}\n  up      {}\n  agents  {}\n  state   {state}\n  log     {}\n  health  {}\n",
        health["pid"],
        span(seconds),
        agents.join(", "),
        daemon::log_file(state.as_ref()).display(),
        if health["ok"] == true { "ok".to_owned() } else { format!("not ok{}", reasons(health)) },
    )
}

/// Why a host is not well, one reason per line.
fn reasons(health: &Value) -> String {
    let faults = health["faults"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let edit = health["mountspec"]["error"].as_str();
    faults.chain(edit).map(|reason| format!("\n          {}", reason.replace('\n', "\n          "))).collect()
}

fn span(seconds: u64) -> String {
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_not_well_says_why() {
        let health = json!({"ok": false, "pid": 7, "state": "/s", "uptime_ms": 61_000, "agents": ["a", "b"],
            "faults": ["symbols: redis does not answer"], "mountspec": {"error": "cannot be mounted:\n  agents: one"}});
        expect_test::expect![[r#"
            /ns
              pid     7
              up      1 min 1 s
              agents  a, b
              state   /s
              log     /s/acheron.log
              health  not ok
                      symbols: redis does not answer
                      cannot be mounted:
                        agents: one
        "#]]
        .assert_eq(&render(Path::new("/ns"), Some(&health)));
    }
}
