//! What `exec` and `run` add to a sandbox: variables, binds, a home, a working directory, a terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Failure;
use crate::host::run_plan::compose::{Additions, ExtraBind};
use acheron_base::Error;
use acheron_sandbox::Terminal;

#[derive(Args)]
pub struct PlaceArgs {
    /// A variable of the program; without a value, that of this environment
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// The working directory, as it is named inside
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// The home of the program, which lasts [default: one per agent, in the state directory]
    #[arg(long, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// A file or directory of this machine, seen inside at PLACE or under its own name
    #[arg(long, value_name = "HOST[:PLACE][:ro]")]
    pub bind: Vec<String>,
    /// Refuse to run without a terminal
    #[arg(short = 't', long, overrides_with = "no_terminal")]
    pub terminal: bool,
    /// Run without the terminal, in a session of its own
    #[arg(short = 'T', long)]
    pub no_terminal: bool,
}

/// Variables that say how the terminal and the user's language are; nothing else of the environment goes inside by itself.
const OF_THE_TERMINAL: [&str; 6] = ["TERM", "COLORTERM", "NO_COLOR", "LANG", "LC_ALL", "TZ"];

impl PlaceArgs {
    /// What is added to the plan; the home is `home` outside and `target` inside.
    pub fn additions(&self, home: &Path, target: &Path) -> Result<Additions, Failure> {
        if self.terminal && !std::io::stdin().is_terminal() {
            let said = "-t needs a terminal, and standard input is none";
            return Err(Failure::hint(Error::invalid(said), "script -qc 'acheron exec -t …' /dev/null makes one"));
        }
        let mut env = BTreeMap::new();
        for name in OF_THE_TERMINAL {
            env.extend(std::env::var(name).ok().map(|value| (name.to_owned(), value)));
        }
        for word in &self.env {
            match word.split_once('=') {
                Some((name, value)) => _ = env.insert(name.to_owned(), value.to_owned()),
                None => match std::env::var(word) {
                    Ok(value) => _ = env.insert(word.clone(), value),
                    Err(_) => return Err(Error::invalid(format!("--env {word}: it is not set here")).into()),
                },
            }
        }
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(home)
            .map_err(|err| Error::from(err).about(home.display().to_string()))?;
        let binds = self.bind.iter().map(|text| text.parse::<ExtraBind>().map_err(|error| error.about(text)));
        Ok(Additions {
            env,
            binds: binds.collect::<Result<_, Error>>()?,
            home: Some((home.to_owned(), target.to_owned())),
            cwd: self.cwd.clone(),
            terminal: Some(if self.no_terminal { Terminal::None } else { Terminal::Shared }),
            skills: false,
        })
    }
}
