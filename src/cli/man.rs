//! `acheron man`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};

use super::{Cli, CommandResult, manual};
use crate::host::library;

const BUGS: &str = include_str!("../../docs/bugs.md");

/// Write the manual pages: commands in section 1, the tree in section 4.
#[derive(Args)]
pub struct ManArgs {
    /// Directory to write to [default: print acheron(1) to standard output, as in `acheron man | man -l -`]
    dir: Option<PathBuf>,
}

impl ManArgs {
    pub fn run(self) -> CommandResult {
        match self.dir {
            None => clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout().lock())?,
            Some(dir) => {
                std::fs::create_dir_all(&dir)?;
                clap_mangen::generate_to(Cli::command(), &dir)?;
                let tree = manual::page(&library::embedded(), BUGS, env!("CARGO_PKG_VERSION"));
                std::fs::write(dir.join("acheron.4"), tree)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
