//! What the arguments of a call tell by themselves: `service` refuses such a call at its write.

use super::consolidating::check_since;
use super::service::{Command, found};
use super::sleep_runs::check_run;
use super::state::check_message;
use super::talks;
use acheron_base::Result;
use acheron_recall::page::check_path;
use acheron_recall::resolve::Miss;

pub fn check(command: &Command) -> Result<()> {
    match command {
        Command::New { conversation } => conversation.as_deref().map_or(Ok(()), talks::check),
        Command::Turn { conversation, message } => {
            conversation.as_deref().map_or(Ok(()), talks::check)?;
            check_message(message)
        }
        Command::Add { conversation, .. }
        | Command::Gen { conversation, .. }
        | Command::Archive { conversation }
        | Command::Delete { conversation } => talks::check(conversation),
        Command::Read { name, .. }
        | Command::Links { name }
        | Command::Backlinks { name }
        | Command::Tokens { name: Some(name) } => check_name(name),
        Command::Write { path, .. } => check_path(path),
        Command::Rename { name, to } => {
            check_name(name)?;
            check_path(to)
        }
        Command::Consolidate { since, .. } => check_since(since.as_deref()),
        Command::Apply { run } | Command::Undo { run } => check_run(run),
        Command::Search { .. }
        | Command::Orphans {}
        | Command::Broken {}
        | Command::Tokens { name: None }
        | Command::Check {} => Ok(()),
    }
}

fn check_name(name: &str) -> Result<()> {
    match name.trim().is_empty() {
        true => found(name, Err(Miss::Empty)),
        false => Ok(()),
    }
}
