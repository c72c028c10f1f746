//! `acheron audit`: shows the log of decisions, and verifies that nobody has changed it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::backup::state_of;
use super::{CommandResult, Failure, plain_text, say, since};
use crate::state::audit::{Verdict, check, read};
use acheron_base::Error;

/// Show who did what: denials, calls, requests to models, changes of the rules. `verify` finds lines that were changed or removed.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    /// Lines since then: 30m, 2h, 7d, today, yesterday, 2026-11-18
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Lines about this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Print the lines as they are kept, one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: StateArgs,
}

#[derive(Args)]
struct StateArgs {
    /// Mount point whose audit to read [default: the only mount]
    #[arg(long, value_name = "DIR", conflicts_with = "state")]
    root: Option<PathBuf>,
    /// State directory [default: that of the only mount, else $XDG_STATE_HOME/acheron]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

#[derive(Subcommand)]
enum AuditCommand {
    /// Check every line; fails if one was changed, removed, moved or cut off
    Verify {
        /// File with heads that were written down elsewhere, as `audit head` prints them
        #[arg(long, value_name = "FILE")]
        anchor: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: StateArgs,
    },
    /// Print the number and the hash of the last line, to be kept on another machine
    Head {
        #[command(flatten)]
        place: StateArgs,
    },
}

impl AuditArgs {
    pub fn run(self) -> CommandResult {
        match self.command {
            Some(AuditCommand::Verify { anchor, json, place }) => verify(place, anchor, json),
            Some(AuditCommand::Head { place }) => head(place),
            None => list(self.place, self.since.as_deref(), self.agent.as_deref(), self.json),
        }
    }
}

fn list(place: StateArgs, when: Option<&str>, agent: Option<&str>, as_json: bool) -> CommandResult {
    let state = state_of(place.state, place.root)?;
    let since_ms = when.map(|when| since::parse(when, since::now_ms())).transpose()?.unwrap_or(0);
    let mut text = String::new();
    acheron_store::look_unlocked(&state, |conn| {
        read::each(conn, since_ms, |line| {
            let fields: Value = serde_json::from_str(line).unwrap_or_default();
            let wanted = agent.is_none_or(|agent| is_about(&fields, agent));
            // A commit may hold lines from before.
            if wanted && fields["at_ms"].as_u64().unwrap_or(0) >= since_ms {
                text.push_str(&if as_json { line.to_owned() } else { render(&fields) });
                text.push('\n');
            }
            if text.len() > 1 << 16 {
                say(&std::mem::take(&mut text));
            }
            true
        })
    })?;
    say(&text);
    Ok(ExitCode::SUCCESS)
}

fn is_about(line: &Value, agent: &str) -> bool {
    let principal = format!("agent {agent}");
    line["agent"] == agent || line["payer"] == agent || line["principal"] == principal.as_str()
}

/// One line for people: when, what, who, and the rest.
fn render(line: &Value) -> String {
    let text = |name: &str| line[name].as_str().unwrap_or_default();
    let rest = match text("kind") {
        "denied" | "allowed" if line.get("count").is_some() => {
            format!("{} {} more, not listed one by one", text("principal"), line["count"])
        }
        "denied" | "allowed" => {
            format!("{} {} {}: {}", text("principal"), text("action"), text("path"), text("reason"))
        }
        "call" => format!(
            "{} {}.{} of {} ({}) {}",
            text("principal"),
            text("service"),
            text("operation"),
            text("agent"),
            text("job"),
            text("outcome")
        ),
        "ended" => format!("{} {}", text("job"), text("outcome")),
        "model" => format!("{} {} tokens in, {} out, {}", text("payer"), line["input"], line["output"], line["money"]),
        _ => {
            let own = ["seq", "prev", "at_ms", "kind"];
            let fields = line.as_object().into_iter().flatten().filter(|(name, _)| !own.contains(&name.as_str()));
            fields.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        }
    };
    let rest = plain_text::one_line(&rest);
    format!("{} {:<10} {rest}", since::shown(line["at_ms"].as_u64().unwrap_or(0)), text("kind"))
}

fn verify(place: StateArgs, anchor: Option<PathBuf>, as_json: bool) -> CommandResult {
    let state = state_of(place.state, place.root)?;
    let anchors = match anchor {
        Some(file) => {
            let text = std::fs::read_to_string(&file).map_err(|error| Error::from(error).about(file.display()))?;
            check::anchors(&text)?
        }
        None => Vec::new(),
    };
    let checked = check::verify(&state, anchors)?;
    let intact = matches!(checked.verdict, Verdict::Intact { .. });
    if as_json {
        let said = json!({"intact": intact, "verdict": checked.verdict.to_string(), "has_key": checked.has_key});
        say(&format!("{said}\n"));
    } else if intact {
        say(&format!("{}\n", checked.verdict));
        if !checked.has_key {
            say("audit.key is missing: whether lines were cut off at the end cannot be told\n");
        }
    }
    match intact {
        true => Ok(ExitCode::SUCCESS),
        false if as_json => Ok(ExitCode::FAILURE),
        false => {
            let hint = "somebody has written to acheron.db in the state directory; keep it as it is, and compare with a backup";
            Err(Failure::hint(Error::conflict(format!("the audit is {}", checked.verdict)), hint))
        }
    }
}

fn head(place: StateArgs) -> CommandResult {
    let state = state_of(place.state, place.root)?;
    match acheron_store::look_unlocked(&state, read::head)? {
        Some((head, _)) => say(&format!("{} {}\n", head.seq, head.hash)),
        None => return Err(Error::not_found("the audit has no line yet").into()),
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_to_people() {
        let shown = |line: Value| render(&line);
        assert_eq!(
            shown(
                json!({"seq": 1, "at_ms": 0, "kind": "denied", "principal": "agent eve", "action": "read", "path": "/x", "reason": "no rule"})
            ),
            "1970-01-01 00:00:00 denied     agent eve read /x: no rule"
        );
        assert_eq!(
            shown(json!({"seq": 1, "at_ms": 0, "kind": "denied", "principal": "agent eve", "count": 7})),
            "1970-01-01 00:00:00 denied     agent eve 7 more, not listed one by one"
        );
        assert_eq!(shown(json!({"at_ms": 0, "kind": "start", "pid": 7})), "1970-01-01 00:00:00 start      pid=7");
    }
}
