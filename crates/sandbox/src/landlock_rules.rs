//! The second layer for files: Landlock rules on the directories of the new root. It cannot be the first: under
//! Landlock alone `stat`, `chmod`, UNIX sockets by path and UDP are still allowed. The init uses it.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::write_grants::Grant;
use acheron_base::{Error, Result};

/// The newest interface that this code was tested with.
const KNOWN: ABI = ABI::V6;

/// Directories of the sandbox itself that may be written.
const SCRATCH: [&str; 3] = ["/tmp", "/home", "/dev"];

/// The Landlock version of the running kernel.
pub(super) fn version() -> Option<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with a null attribute, size 0 and the version flag the kernel only answers a number.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) };
    u32::try_from(answer).ok().filter(|version| *version > 0)
}

/// Everything may be read; what is granted and the scratch directories may be written; signals and abstract sockets
/// stay inside. `no_tcp` also refuses TCP, where no namespace does.
pub(super) fn apply(granted: &[Grant], no_tcp: bool) -> Result<String> {
    let version = version().ok_or_else(|| Error::unavailable("this kernel has no Landlock, or does not enable it"))?;
    let status = restrict(granted, no_tcp).map_err(|err| Error::unavailable(format!("landlock: {err}")))?;
    match status {
        RulesetStatus::NotEnforced => Err(Error::unavailable("this kernel does not enforce Landlock")),
        _ => Ok(format!("landlock, version {version}")),
    }
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
        .add_rules(path_beneath_rules(SCRATCH, AccessFs::from_all(KNOWN)))?
        .add_rules(granted.iter().map(|grant| {
            let rights = if grant.directory { AccessFs::from_all(KNOWN) } else { AccessFs::from_file(KNOWN) };
            Ok::<_, RulesetError>(PathBeneath::new(&grant.file, rights))
        }))?;
    Ok(rules.restrict_self()?.ruleset)
}
