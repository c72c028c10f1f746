//! `acheron doctor`.

mod facts;
mod findings;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::here::here;
use super::{CommandResult, check, mount, say};
use findings::{DoctorFinding, Health};

/// Check this machine and suggest fixes.
#[derive(Args)]
pub struct DoctorArgs {
    /// State directory whose database to check [default: $XDG_STATE_HOME/acheron]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Mountspec whose services to check [default: ./mountspec/default.json, else the built-in one]
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Print one JSON object per finding
    #[arg(long)]
    json: bool,
}

impl DoctorArgs {
    pub fn run(self) -> CommandResult {
        let here = here()?;
        let spec = mount::spec(self.spec.as_deref(), &here);
        let faults = spec.as_ref().map(|spec| check::on_this_machine(spec, &here)).unwrap_or_default();
        let state = mount::state(self.state.as_deref(), spec.as_ref().ok(), &here)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let findings = findings::findings(&runtime.block_on(facts::look(&state, &spec, &faults)));
        for finding in &findings {
            match self.json {
                true => say(&(serde_json::to_string(finding).unwrap_or_default() + "\n")),
                false => say(&render(finding)),
            }
        }
        let bad = findings.iter().any(|finding| finding.health == Health::Bad);
        Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn render(finding: &DoctorFinding) -> String {
    let health = match finding.health {
        Health::Ok => "ok",
        Health::Weak => "weak",
        Health::Bad => "BAD",
    };
    let fix = finding.fix.as_ref().map_or(String::new(), |fix| format!("      fix: {fix}\n"));
    format!("{health:<5} {}: {}\n{fix}", finding.what, finding.said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_line_and_its_fix_another() {
        let finding = DoctorFinding {
            what: "x",
            health: Health::Bad,
            said: "is gone".to_owned(),
            fix: Some("bring it".to_owned()),
        };
        assert_eq!(render(&finding), "BAD   x: is gone\n      fix: bring it\n");
        assert_eq!(render(&DoctorFinding { health: Health::Ok, fix: None, ..finding }), "ok    x: is gone\n");
    }
}
