//! The start of a program of the mountspec: its command as it is inside, and the plan of its sandbox. Used by services that run
//! one process per call and by those that keep one.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::file_identity::file_identities;
use super::{ProgramParts, Trust};
use crate::contract::Contract;
use crate::services::terminal::{Look, RunningProgram, Surroundings, remove_proxy};
use crate::spec;
use acheron_base::Result;
use acheron_base::host_dir::Source;
use acheron_sandbox::{Bind, PathRule, Plan, Visibility};

/// Where the program's own directory is, inside.
const INSIDE: &str = "/service";

/// A private directory, empty at first.
const HOME: &str = "/home";

/// A program of the mountspec's, ready to be started for any agent.
pub struct ProgramLaunch {
    spec: spec::ServiceSpec,
    parts: ProgramParts,
    /// The directories that its command names files of, by the name in the command and as they were when the mountspec was
    /// read.
    found: Vec<(PathBuf, Source)>,
}

/// The contract with the flags of a program; what is withheld is not claimed.
pub fn flagged(contract: Contract, service: &spec::ServiceSpec, parts: &ProgramParts) -> Contract {
    let mut contract = contract;
    if service.network && !parts.withheld.contains(&contract.name) {
        contract = contract.flag("network");
    }
    if service.unconfined {
        contract = contract.flag("unconfined");
    }
    contract
}

impl ProgramLaunch {
    /// `shows` tells what a sandbox sees of the host as a part of the system.
    pub fn new(service: &spec::ServiceSpec, parts: ProgramParts, shows: impl Fn(&Path) -> bool) -> ProgramLaunch {
        let (command, _) = service.program();
        let (_, directories) = located(command, &parts.here, service.unconfined, |path| path.is_file(), shows);
        let resolved = |directory: PathBuf| Some((directory.clone(), Source::resolve(&directory).ok()?));
        let found = directories.into_iter().filter_map(resolved).collect();
        ProgramLaunch { spec: service.clone(), parts, found }
    }

    /// What the program is: its command, and the files that it runs, as they are now. Blocks.
    pub fn identity(&self) -> Value {
        let (command, _) = self.spec.program();
        json!({ "command": command, "files": file_identities(&self.spec, &self.parts.here) })
    }

    /// The program that knows how to be a sandbox.
    pub fn init(&self) -> &Path {
        &self.parts.init
    }

    /// Binds a directory that the command names a file of.
    fn bind(&self, plan: &mut Plan, around: &Surroundings, source: PathBuf, target: PathBuf) {
        // Another if the mountspec has changed since what a sandbox sees of the system.
        let found = self.found.iter().find(|(directory, _)| !plan.bare && *directory == source).cloned();
        let (source, id) = found.map_or((source, None), |(_, found)| (found.path, Some(found.id)));
        let hidden = around.own.iter().filter_map(|own| own.strip_prefix(&source).ok());
        plan.path_rules.extend(hidden.filter(|below| !below.as_os_str().is_empty()).map(|below| PathRule {
            path: target.join(below),
            bind: target.clone(),
            show: Visibility::Hidden,
        }));
        plan.binds.push(Bind { source, target, read_only: true, alone: true, id, on_disk: true });
    }

    /// The plan for a program of `agent`, the entry that tells when it must end, and why its variables and the network are
    /// withheld, if they are.
    pub async fn plan(&self, agent: &str) -> Result<(Plan, RunningProgram, Option<String>)> {
        let (find, agent) = (self.parts.around.clone(), agent.to_owned());
        let owner = agent.clone();
        let (around, running) = self.parts.programs.begin(&owner, move || find(&agent, Look::Again)).await?;
        let shows = |path: &Path| around.system.shows(path);
        let (command, _) = self.spec.program();
        let (argv, directories) =
            located(command, &self.parts.here, self.spec.unconfined, |path| path.is_file(), shows);
        let trust: Trust = (self.parts.trusting)(&self.spec)?;
        let mut plan = around.plan(argv);
        plan.bare = self.spec.unconfined;
        if plan.bare {
            remove_proxy(&mut plan);
        }
        if let Some(first) = directories.first() {
            plan.cwd = if plan.bare { first.clone() } else { inside(0) };
            for (at, source) in directories.into_iter().enumerate() {
                self.bind(&mut plan, &around, source, inside(at));
            }
        } else if plan.bare {
            // A file that is looked up in the working directory must not be writable by an agent.
            plan.cwd = if trust.here_written { PathBuf::from("/") } else { self.parts.here.clone() };
        }
        if trust.withheld.is_none() {
            let given = self.spec.network || !self.spec.env.is_empty();
            let writes = plan.binds.iter().any(|bind| bind.target == plan.cwd && !bind.read_only);
            if given && writes && !plan.bare {
                // Interpreters load files of the working directory, as `python3 -c` does.
                plan.cwd = PathBuf::from(HOME);
            }
            if self.spec.network {
                plan.network = true;
                remove_proxy(&mut plan);
            }
            plan.env.extend(self.spec.env.clone());
        }
        Ok((plan, running, trust.withheld))
    }
}

/// The command as it is inside, and the directory of the host that it lies in: `./weather.py` is a file beside the mountspec,
/// and so is the second word of `python3 ./weather.py`. An absolute path that a sandbox shows by itself stays what it is, and
/// so does every path outside a sandbox.
fn located(
    command: &[String],
    here: &Path,
    outside: bool,
    is_file: impl Fn(&Path) -> bool,
    shows: impl Fn(&Path) -> bool,
) -> (Vec<String>, Vec<PathBuf>) {
    let mut directories: Vec<PathBuf> = Vec::new();
    let words = command.iter().map(|word| {
        let path: PathBuf = here.join(word).components().collect();
        let (true, Some(parent), Some(name)) = (word.contains('/') && is_file(&path), path.parent(), path.file_name())
        else {
            return word.clone();
        };
        let shown = Path::new(word).is_absolute() && shows(&path);
        if shown {
            return word.clone();
        }
        let at = directories.iter().position(|known| known == parent).unwrap_or_else(|| {
            directories.push(parent.to_owned());
            directories.len() - 1
        });
        if outside { path.display().to_string() } else { inside(at).join(name).display().to_string() }
    });
    let words = words.collect();
    (words, directories)
}

/// The name inside of a directory that a command names files of: `/service`, then `/service-2`.
fn inside(at: usize) -> PathBuf {
    match at {
        0 => PathBuf::from(INSIDE),
        more => PathBuf::from(format!("{INSIDE}-{}", more + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acheron_sandbox::SystemView;

    #[test]
    fn a_command_is_found_beside_the_mountspec() {
        let files =
            ["/here/weather.py", "/here/bin/x", "/usr/bin/env", "/else/y", "/opt/shown/n", "/opt/n", "/usr/src/p/n"];
        let check = |command: &[&str], outside: bool| {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            let known = |path: &Path| files.iter().any(|file| Path::new(file) == path);
            let system = SystemView { named: vec!["/opt/shown".into()], hidden: vec!["/usr/src/p".into()] };
            let (words, directory) = located(&command, Path::new("/here"), outside, known, |path| system.shows(path));
            format!(
                "{} in {}",
                words.join(" "),
                if directory.is_empty() {
                    "-".to_owned()
                } else {
                    directory.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
                }
            )
        };
        assert_eq!(check(&["./weather.py", "-v"], false), "/service/weather.py -v in /here");
        assert_eq!(check(&["python3", "./weather.py"], false), "python3 /service/weather.py in /here");
        assert_eq!(check(&["bin/x", "/else/y"], false), "/service/x /service-2/y in /here/bin, /else");
        assert_eq!(check(&["/usr/bin/env", "./weather.py"], false), "/usr/bin/env /service/weather.py in /here");
        assert_eq!(check(&["./weather.py"], true), "/here/weather.py in /here");
        assert_eq!(check(&["jq", "."], false), "jq . in -");
        assert_eq!(check(&["/opt/shown/n", "./weather.py"], false), "/opt/shown/n /service/weather.py in /here");
        assert_eq!(check(&["/opt/n"], false), "/service/n in /opt");
        assert_eq!(check(&["/usr/src/p/n"], false), "/service/n in /usr/src/p");
    }
}
