//! `acheron completions`.

use std::process::ExitCode;

use clap::{Args, CommandFactory};

use super::{Cli, Outcome};

/// Print the completion script for a shell.
///
/// For bash: acheron completions bash > ~/.local/share/bash-completion/completions/acheron
#[derive(Args)]
pub struct Completions {
    shell: clap_complete::Shell,
}

impl Completions {
    pub fn run(self) -> Outcome {
        clap_complete::generate(self.shell, &mut Cli::command(), "acheron", &mut std::io::stdout().lock());
        Ok(ExitCode::SUCCESS)
    }
}
