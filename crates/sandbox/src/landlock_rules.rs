//! Landlock rules. At the first level they are a second layer on the directories of the new root. At the second they stand
//! alone, on the paths of the host: they allow `stat`, `chmod`, UNIX sockets by path and UDP, of which the filter of system
//! calls refuses all but the first. The program applies them to itself.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::host_plan::HostPlan;
use super::system;
use super::write_grants::Grant;
use acheron_base::{Error, Result};

/// The newest interface that this code was tested with.
const KNOWN: ABI = ABI::V6;
/// The first version that keeps signals and abstract sockets inside.
const SCOPES: u32 = 6;

/// The sandbox's own devices may be written; its other directories are among the grants.
const DEVICES: &str = "/dev";

/// The Landlock version of the running kernel.
pub(super) fn version() -> Option<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with a null attribute, size 0 and the version flag the kernel only answers a number.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) };
    u32::try_from(answer).ok().filter(|version| *version > 0)
}

/// Everything may be read; what is granted and the devices may be written; signals and abstract sockets
/// stay inside. `no_tcp` also refuses TCP, where no namespace does.
pub(super) fn apply(granted: &[Grant], no_tcp: bool) -> Result<String> {
    let version = version().ok_or_else(|| Error::unavailable("this kernel has no Landlock, or does not enable it"))?;
    let status = restrict(granted, no_tcp).map_err(|err| Error::unavailable(format!("landlock: {err}")))?;
    match status {
        RulesetStatus::NotEnforced => Err(Error::unavailable("this kernel does not enforce Landlock")),
        _ => Ok(format!("landlock, version {version}")),
    }
}

/// The second level: nothing may be read but what is shown, and no port be used; `granted` and the scratch directory may be
/// written. Without the scopes of version 6 a program could end its own supervisor, and then count as nobody's.
pub(super) fn apply_alone(shown: &HostPlan, granted: &[Grant]) -> Result<String> {
    let version = version().ok_or_else(|| Error::unavailable("this kernel has no Landlock, or does not enable it"))?;
    if version < SCOPES {
        return Err(Error::unavailable(format!(
            "this kernel has Landlock version {version}; alone it confines programs from version {SCOPES} on (Linux 6.12)"
        )));
    }
    let failed = |err: RulesetError| Error::unavailable(format!("landlock: {err}"));
    match restrict_alone(shown, granted).map_err(failed)? {
        RulesetStatus::FullyEnforced => Ok(format!("landlock, version {version}, alone")),
        _ => Err(Error::unavailable("this kernel does not enforce all rules of Landlock")),
    }
}

fn restrict_alone(shown: &HostPlan, granted: &[Grant]) -> Result<RulesetStatus, RulesetError> {
    let mut rules =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(KNOWN))?;
    if !shown.plan.network {
        rules = rules.handle_access(AccessNet::from_all(KNOWN))?;
    }
    let devices = system::DEVICES.iter().map(|name| Path::new("/dev").join(name));
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::Truncate;
    let rules = rules
        .scope(Scope::from_all(KNOWN))?
        .create()?
        .add_rules(path_beneath_rules(&shown.readable, AccessFs::from_read(KNOWN)))?
        .add_rules(path_beneath_rules(devices, device))?
        .add_rules(path_beneath_rules([&shown.scratch.path], AccessFs::from_all(KNOWN)))?
        .add_rules(granted.iter().map(written))?;
    Ok(rules.restrict_self()?.ruleset)
}

fn written(grant: &Grant) -> Result<PathBeneath<&OwnedFd>, RulesetError> {
    let rights = if grant.directory { AccessFs::from_all(KNOWN) } else { AccessFs::from_file(KNOWN) };
    Ok(PathBeneath::new(&grant.file, rights))
}

fn restrict(granted: &[Grant], no_tcp: bool) -> Result<RulesetStatus, RulesetError> {
    let mut rules =
        Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(KNOWN))?;
    if no_tcp {
        rules = rules.handle_access(AccessNet::from_all(KNOWN))?;
    }
    let rules = rules
        .scope(Scope::from_all(KNOWN))?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(KNOWN)))?
        .add_rules(path_beneath_rules([DEVICES], AccessFs::from_all(KNOWN)))?
        .add_rules(granted.iter().map(written))?;
    Ok(rules.restrict_self()?.ruleset)
}
