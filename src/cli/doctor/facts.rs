//! Gathers facts about this machine without changing it. Used by `acheron doctor`.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::findings::{Cgroups, Database, Device, MachineFacts, Namespaces};
use crate::contract::ValueFault;
use crate::services::symbols::durability::{self, RedisDurability};
use crate::spec::{Spec, SymbolsBackend, SymbolsSpec};
use acheron_base::{Code, ConfinedDir, Result};
use acheron_sandbox::Level;

/// The time limit of the sandbox test.
const PATIENCE: Duration = Duration::from_secs(20);

/// Facts about this machine, the state directory and the services of the mountspec; `faults` are those of the mountspec
/// that depend on the machine.
pub async fn look(state: &Path, spec: &Result<Spec>, faults: &[ValueFault]) -> MachineFacts {
    let walls = confinement().await;
    let complete = walls.as_ref().is_ok_and(|walls| walls.iter().all(|(_, stands, _)| *stands));
    MachineFacts {
        device: device(Path::new("/dev/fuse")),
        fusermount: fusermount(),
        root: nix::unistd::geteuid().is_root(),
        admin: caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_SYS_ADMIN).unwrap_or(false),
        request_timeouts: ["default_request_timeout", "max_request_timeout"]
            .map(|name| (name, number(&format!("/proc/sys/fs/fuse/{name}")))),
        openat2: openat2(),
        user_namespaces: Namespaces {
            max: number("/proc/sys/user/max_user_namespaces"),
            clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        },
        walls,
        second: if complete { None } else { second().await },
        accepts_second: spec.as_ref().is_ok_and(|spec| spec.sandbox.require == Some(Level::Landlock)),
        cgroups: cgroups(Path::new("/sys/fs/cgroup")),
        state: state.display().to_string(),
        database: match crate::state::faults(state) {
            Ok(None) => Database::None,
            Ok(Some(faults)) => Database::Looked(faults),
            // The file is no longer a SQLite database.
            Err(err) if err.code == Code::Internal => Database::Looked(vec![err.message]),
            Err(err) => Database::Unreadable(err.message),
        },
        mountspec: match spec {
            Err(err) => Err(err.message.clone()),
            Ok(_) if faults.is_empty() => Ok(()),
            Ok(_) => {
                let lines: Vec<String> = faults.iter().map(|fault| format!("\n  {fault}")).collect();
                Err(format!("parts of it cannot work on this machine:{}", lines.concat()))
            }
        },
        symbols: match spec {
            Ok(spec) => symbols(&spec.symbols).await,
            Err(_) => None,
        },
    }
}

async fn symbols(spec: &SymbolsSpec) -> Option<(String, Result<RedisDurability, String>)> {
    if spec.backend != SymbolsBackend::Redis {
        return None;
    }
    let (at, kept) = durability::of(spec).await;
    Some((at, kept.map_err(|err| err.message)))
}

fn device(path: &Path) -> Device {
    let Ok(meta) = path.metadata() else { return Device::Missing };
    match std::fs::OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => Device::Open,
        Err(err) => Device::Shut(meta.mode() & 0o7777, err.to_string()),
    }
}

/// The first match in the search path, and whether it is setuid root.
fn fusermount() -> Option<(String, bool)> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&paths).map(|dir: PathBuf| dir.join("fusermount3"));
    let path = found
        .find(|path| path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0))?;
    let setuid = path.metadata().is_ok_and(|meta| meta.uid() == 0 && meta.permissions().mode() & 0o4000 != 0);
    Some((path.display().to_string(), setuid))
}

fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn openat2() -> Result<(), String> {
    let asked = ConfinedDir::open("/").and_then(|root| root.exists("no such name"));
    match asked {
        Err(err) if err.code == Code::Unavailable => Err(err.message),
        _ => Ok(()),
    }
}

async fn confinement() -> Result<Vec<(String, bool, String)>, String> {
    let program = acheron_sandbox::program();
    match tokio::time::timeout(PATIENCE, acheron_sandbox::probe(&program)).await {
        Ok(Ok(walls)) => Ok(walls.0.into_iter().map(|wall| (wall.name, wall.active, wall.detail)).collect()),
        Ok(Err(err)) => Err(err.message),
        Err(_) => Err(format!("it was not built within {} s", PATIENCE.as_secs())),
    }
}

/// The walls of the second level, if the first cannot be held and the second can.
async fn second() -> Option<Vec<String>> {
    let program = acheron_sandbox::program();
    let tried = tokio::time::timeout(PATIENCE, acheron_sandbox::tried(&program)).await.ok()?.ok()?;
    let (Level::Landlock, walls) = tried else { return None };
    Some(walls.0.into_iter().filter(|wall| wall.active).map(|wall| wall.name).collect())
}

fn cgroups(root: &Path) -> Cgroups {
    let writable = |path: &Path| nix::unistd::access(path, nix::unistd::AccessFlags::W_OK).is_ok();
    if let Ok(line) = std::fs::read_to_string(root.join("cgroup.controllers")) {
        let controllers = line.split_whitespace().map(str::to_owned).collect();
        return Cgroups::Found { version: 2, controllers, writable: writable(root) };
    }
    let names = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut controllers: Vec<String> = names
        .filter(|entry| entry.path().join("cgroup.procs").exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    controllers.sort();
    match controllers.is_empty() {
        true => Cgroups::Missing,
        false => {
            let writable = controllers.iter().all(|name| writable(&root.join(name)));
            Cgroups::Found { version: 1, controllers, writable }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_found_in_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(cgroups(dir.path()), Cgroups::Missing));
        for name in ["memory", "pids"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            std::fs::write(dir.path().join(name).join("cgroup.procs"), "").unwrap();
        }
        let Cgroups::Found { version: 1, controllers, writable: true } = cgroups(dir.path()) else {
            panic!("not the first version");
        };
        assert_eq!(controllers, ["memory", "pids"]);
        std::fs::write(dir.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        assert!(
            matches!(cgroups(dir.path()), Cgroups::Found { version: 2, controllers, .. } if controllers.len() == 3)
        );
    }

    #[test]
    fn a_device_is_there_or_not() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(device(&dir.path().join("fuse")), Device::Missing));
        assert!(matches!(device(dir.path()), Device::Shut(_, _)), "a directory cannot be opened to be written");
        assert!(matches!(device(Path::new("/dev/null")), Device::Open));
    }
}
