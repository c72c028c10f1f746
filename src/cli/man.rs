//! `acheron man`.

mod commands;
mod mountspec;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{CommandResult, manual, say};
use crate::host::library;
use crate::spec::Spec;

const BUGS: &str = include_str!("../../docs/bugs.md");

/// Write the manual pages: commands in section 1, the tree in section 4, the mountspec in section 5.
#[derive(Args)]
pub struct ManArgs {
    /// Directory to write to, created if it does not exist [default: print acheron(1) to standard output, as in `acheron man | man -l -`]
    dir: Option<PathBuf>,
}

impl ManArgs {
    pub fn run(self) -> CommandResult {
        match self.dir {
            None => std::io::stdout().lock().write_all(&commands::main_page()?)?,
            Some(dir) => {
                std::fs::create_dir_all(&dir)?;
                let count = commands::write(&dir)?;
                let version = env!("CARGO_PKG_VERSION");
                std::fs::write(dir.join("acheron.4"), manual::page(&library::embedded(), BUGS, version))?;
                std::fs::write(dir.join("acheron-mountspec.5"), mountspec::page(&Spec::schema(), version))?;
                say(&format!("wrote {} pages to {}\n", count + 2, dir.display()));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
