//! `acheron check`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::here::here;
use super::{CommandResult, say};
use crate::contract::ValueFault;
use crate::host::{presence, programs, sandbox_level};
use crate::services::dm::store::{folder_files, unreadable_pages};
use crate::services::symbols::open as symbols;
use crate::spec::{self, Spec};
use acheron_base::{ConfinedDir, Error};
use acheron_dm::inspect::inspect_folder;

/// Check a mountspec, or a folder with a CARTRIDGE.md, and report every fault with its path.
#[derive(Args)]
pub struct CheckArgs {
    /// The mountspec, or the folder of a cartridge
    file: PathBuf,
}

impl CheckArgs {
    pub fn run(self) -> CommandResult {
        if self.file.is_dir() {
            return cartridge(&self.file);
        }
        let text = spec::read(&self.file)?;
        let name = self.file.display().to_string();
        // Relative paths start at the current directory, as for `mount`.
        let here = here()?;
        let (spec, mut faults) = match Spec::check_parts(&text) {
            Ok(spec) => (Some(spec), Vec::new()),
            Err(faulty) => (faulty.read.map(|spec| *spec), faulty.faults),
        };
        faults.extend(spec.iter().flat_map(|spec| on_this_machine(spec, &here)));
        let Some(spec) = spec.filter(|_| faults.is_empty()) else {
            say(&render(&name, &faults));
            return Ok(ExitCode::FAILURE);
        };
        say(&format!("{name}: ok: {}\n", summary(&spec)));
        for note in spec::notes(&spec).into_iter().chain(programs::notes(&spec, &here)) {
            say(&format!("{name}: note: {note}\n"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Checks the folder of a cartridge of the game master.
fn cartridge(dir: &Path) -> CommandResult {
    let name = dir.display().to_string();
    if !dir.join("CARTRIDGE.md").is_file() {
        return Err(Error::not_found(format!(
            "{name} is a folder without a CARTRIDGE.md: name a mountspec, or the folder of a cartridge"
        ))
        .into());
    }
    let place = ConfinedDir::open(dir)?;
    let folder = dir.canonicalize()?.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut report = inspect_folder(&folder, &folder_files(&place)?);
    report.add(unreadable_pages(&place)?);
    report.faults.iter().for_each(|fault| say(&format!("{name}/{fault}\n")));
    if report.ok {
        say(&format!("{name}: ok: {}\n", report.summary));
    }
    report.notes.iter().for_each(|note| say(&format!("{name}: note: {note}\n")));
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The faults that depend on this machine: programs and directories that are missing, programs that agents could replace.
pub fn on_this_machine(spec: &Spec, here: &Path) -> Vec<ValueFault> {
    let mut faults = presence::faults(spec, here);
    let replaced = programs::faults(spec, here, []);
    // A program that is missing where agents may write has the graver reason.
    faults.retain(|fault| !replaced.iter().any(|other| other.path == fault.path));
    faults.extend(replaced);
    faults.extend(sandbox_level::faults(spec));
    // The function by which a mount opens them decides; the shape of the spec has been checked before.
    if spec.symbols.url.is_some()
        && let Some(fault) = symbols::fault(&spec.symbols)
    {
        faults.push(ValueFault { path: "symbols".to_owned(), message: fault.message });
    }
    faults
}

fn summary(spec: &Spec) -> String {
    let count = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    let (agents, projects) = (count(spec.agents.len(), "agent"), count(spec.projects.len(), "project"));
    format!("{agents}, {projects}, {}", count(spec.services.len(), "service"))
}

/// One line per fault, in the format of compilers: file, path, message.
fn render(name: &str, faults: &[ValueFault]) -> String {
    faults.iter().map(|fault| format!("{name}: {fault}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address that a mount refuses is refused here, by the same function.
    #[test]
    #[cfg(feature = "redis")]
    fn an_address_of_symbols_that_a_mount_refuses_is_refused() {
        for (symbols, refused) in [
            (r#""url": "redis://127.0.0.1:6379/0""#, false),
            (r#""url": "rediss://127.0.0.1:6379/0""#, false),
            (r#""url": "redis://127.0.0.1:port/0""#, true),
            (r#""url": "redis://127.0.0.1/zero""#, true),
            (r#""url": "redis://127.0.0.1", "password_env": "ACHERON_NO_SUCH_VARIABLE""#, true),
            (r#""url": "rediss://127.0.0.1", "ca_file": "/no/such/file""#, true),
        ] {
            let spec = Spec::check(&format!(r#"{{"symbols": {{"backend": "redis", {symbols}}}}}"#)).unwrap();
            let faults = on_this_machine(&spec, Path::new("/"));
            assert_eq!(faults.iter().any(|fault| fault.path == "symbols"), refused, "{symbols}: {faults:?}");
        }
    }

    #[test]
    fn every_fault_is_a_line() {
        let faults = Spec::check(r#"{"agnets": {}, "layout": "x"}"#).unwrap_err();
        expect_test::expect![[r#"
            spec.json: unknown key `agnets`; did you mean agents?
            spec.json: layout: `x` is not known; this program knows acheron-1
        "#]]
        .assert_eq(&render("spec.json", &faults));
        assert_eq!(summary(&Spec::default()), "1 agent, 1 project, 0 services");
    }
}
