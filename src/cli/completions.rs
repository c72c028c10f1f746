//! `acheron completions`.

use std::process::ExitCode;

use clap::{Args, CommandFactory};

use super::{Cli, CommandResult};

/// Print the completion script for a shell.
///
/// For bash: acheron completions bash > ~/.local/share/bash-completion/completions/acheron
#[derive(Args)]
pub struct CompletionsArgs {
    shell: clap_complete::Shell,
}

impl CompletionsArgs {
    pub fn run(self) -> CommandResult {
        clap_complete::generate(self.shell, &mut Cli::command(), "acheron", &mut std::io::stdout().lock());
        Ok(ExitCode::SUCCESS)
    }
}
