//! `acheron completions`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use clap_complete::env::Shells;

use super::candidates::VARIABLE;
use super::{CommandResult, say};
use acheron_base::Error;

/// Print the completion script for a shell. It completes commands and options, and agents, mounts, models and operations of
/// what is mounted at that moment.
///
/// For bash: acheron completions bash > ~/.local/share/bash-completion/completions/acheron
#[derive(Args)]
pub struct CompletionsArgs {
    shell: clap_complete::Shell,
}

impl CompletionsArgs {
    pub fn run(self) -> CommandResult {
        let name = self.shell.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let shell = Shells::builtins();
        let shell = shell.completer(&name).ok_or_else(|| Error::invalid(format!("{name} cannot complete words")))?;
        let mut script = Vec::new();
        // By its name, so that the script lives on when the program is installed elsewhere.
        shell.write_registration(VARIABLE, "acheron", "acheron", "acheron", &mut script)?;
        say(&String::from_utf8_lossy(&script));
        Ok(ExitCode::SUCCESS)
    }
}
