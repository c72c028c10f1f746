//! Evaluates the facts about this machine: facts in, findings with fixes out.
//!
//! Pure; `facts` gathers the facts.

#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::services::symbols::durability::RedisDurability;
use acheron_sandbox::Level;

/// Facts about the machine.
#[derive(Clone, Debug)]
pub struct MachineFacts {
    pub device: Device,
    /// The path of `fusermount3`, and whether it is setuid root.
    pub fusermount: Option<(String, bool)>,
    /// The effective user is root.
    pub root: bool,
    /// The process may mount: CAP_SYS_ADMIN.
    pub admin: bool,
    /// The seconds after which the kernel aborts a FUSE request; none if it has no such setting.
    pub request_timeouts: [(&'static str, Option<u64>); 2],
    /// Whether openat2 keeps a path beneath a directory, or why not.
    pub openat2: Result<(), String>,
    pub user_namespaces: Namespaces,
    /// For each wall its name, whether it works, and how or why not; or why none could be tested.
    pub walls: Result<Vec<(String, bool, String)>, String>,
    /// The walls of the second level, where the first cannot be held and the second can.
    pub second: Option<Vec<String>>,
    /// Whether the mountspec accepts the second level.
    pub accepts_second: bool,
    pub cgroups: Cgroups,
    pub state: String,
    pub database: Database,
    /// The faults of the mountspec.
    pub mountspec: Result<(), String>,
    /// The address of a symbols server and its durability, or the error; none if symbols are in the database.
    pub symbols: Option<(String, Result<RedisDurability, String>)>,
}

/// `/dev/fuse`.
#[derive(Clone, Debug)]
pub enum Device {
    Missing,
    /// It exists but cannot be opened: its mode, and the error of the system.
    Shut(u32, String),
    Open,
}

/// The kernel's settings for user namespaces; none if it does not know the setting.
#[derive(Clone, Copy, Debug, Default)]
pub struct Namespaces {
    pub max: Option<u64>,
    /// Debian's `kernel.unprivileged_userns_clone`.
    pub clone: Option<u64>,
    /// Ubuntu's `kernel.apparmor_restrict_unprivileged_userns`.
    pub apparmor: Option<u64>,
}

#[derive(Clone, Debug)]
pub enum Cgroups {
    Missing,
    /// Version 2 has one tree; version 1 has one per controller.
    Found {
        version: u8,
        controllers: Vec<String>,
        writable: bool,
    },
}

#[derive(Clone, Debug)]
pub enum Database {
    /// There is no database yet.
    None,
    Looked(Vec<String>),
    Unreadable(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    Ok,
    /// It works, but less well or less safely.
    Weak,
    /// Something will not work.
    Bad,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    pub what: &'static str,
    pub health: Health,
    pub said: String,
    /// The fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl DoctorFinding {
    fn ok(what: &'static str, said: impl Into<String>) -> DoctorFinding {
        DoctorFinding { what, health: Health::Ok, said: said.into(), fix: None }
    }

    fn weak(what: &'static str, said: impl Into<String>, fix: impl Into<String>) -> DoctorFinding {
        DoctorFinding { what, health: Health::Weak, said: said.into(), fix: Some(fix.into()) }
    }

    fn bad(what: &'static str, said: impl Into<String>, fix: impl Into<String>) -> DoctorFinding {
        DoctorFinding { what, health: Health::Bad, said: said.into(), fix: Some(fix.into()) }
    }
}

/// The findings, most important first.
pub fn findings(facts: &MachineFacts) -> Vec<DoctorFinding> {
    vec![
        device(facts),
        fusermount(facts),
        timeouts(facts),
        confinement(facts),
        binds(facts),
        namespaces(facts),
        sandbox(facts),
        cgroups(facts),
        database(facts),
        mountspec(facts),
        symbols(facts),
    ]
}

fn device(facts: &MachineFacts) -> DoctorFinding {
    let what = "/dev/fuse";
    match &facts.device {
        Device::Open => DoctorFinding::ok(what, "is there and can be opened"),
        Device::Missing => DoctorFinding::bad(
            what,
            "is not there: nothing can be mounted",
            "modprobe fuse; in a container: start it with --device /dev/fuse --cap-add SYS_ADMIN",
        ),
        Device::Shut(mode, why) => DoctorFinding::bad(
            what,
            format!("has mode {mode:04o} and cannot be opened: {why}"),
            "as root: chmod 0666 /dev/fuse, and for good: \
             echo 'KERNEL==\"fuse\", MODE=\"0666\"' > /etc/udev/rules.d/99-fuse.rules",
        ),
    }
}

fn fusermount(facts: &MachineFacts) -> DoctorFinding {
    let what = "fusermount3";
    match &facts.fusermount {
        Some((path, true)) => DoctorFinding::ok(what, path.clone()),
        _ if facts.admin => DoctorFinding::ok(what, "not needed: this process may mount by itself"),
        Some((path, false)) => DoctorFinding::bad(
            what,
            format!("{path} is not setuid root: a user cannot mount with it"),
            format!("as root: chmod u+s {path}"),
        ),
        None => DoctorFinding::bad(what, "not found: users need it to mount", "apt-get install fuse3"),
    }
}

fn timeouts(facts: &MachineFacts) -> DoctorFinding {
    let what = "request timeout";
    let set: Vec<_> = facts.request_timeouts.iter().filter(|(_, seconds)| seconds.is_some_and(|it| it > 0)).collect();
    if set.is_empty() {
        return DoctorFinding::ok(what, "none: reads may wait without limit");
    }
    let said: Vec<String> = set.iter().map(|(name, it)| format!("fs.fuse.{name} is {} s", it.unwrap_or(0))).collect();
    let fix: Vec<String> = set.iter().map(|(name, _)| format!("sysctl -w fs.fuse.{name}=0")).collect();
    DoctorFinding::bad(
        what,
        format!("{}: a read that waits longer kills the mount", said.join(" and ")),
        format!("as root, before mounting: {}", fix.join("; ")),
    )
}

fn confinement(facts: &MachineFacts) -> DoctorFinding {
    match &facts.openat2 {
        Ok(()) => DoctorFinding::ok("openat2", "paths are kept beneath their directory by the kernel"),
        Err(why) => {
            DoctorFinding::bad("openat2", why.clone(), "use Linux 5.6 or newer, and a container that lets it through")
        }
    }
}

fn binds(facts: &MachineFacts) -> DoctorFinding {
    match facts.admin {
        true => DoctorFinding::ok("binds", "projects are bound by the kernel, at native speed"),
        false => DoctorFinding::weak(
            "binds",
            "projects are mirrored through FUSE, which is slower: binding needs CAP_SYS_ADMIN",
            "run acheron as root where that speed matters",
        ),
    }
}

fn namespaces(facts: &MachineFacts) -> DoctorFinding {
    let what = "user namespaces";
    let Namespaces { max, clone, apparmor } = facts.user_namespaces;
    match (max, clone, apparmor) {
        (None | Some(0), _, _) => DoctorFinding::bad(
            what,
            "are switched off: no sandbox can be built",
            "as root: sysctl -w user.max_user_namespaces=15000",
        ),
        _ if facts.root => DoctorFinding::ok(what, "may be made by root"),
        (_, Some(0), _) => DoctorFinding::bad(
            what,
            "are restricted to root: users cannot build a sandbox",
            "as root: sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (_, _, Some(1..)) => DoctorFinding::bad(
            what,
            "are restricted by AppArmor: a sandbox would have no rights in its own",
            "as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give acheron a profile with userns",
        ),
        _ => DoctorFinding::ok(what, "may be made by a user"),
    }
}

fn sandbox(facts: &MachineFacts) -> DoctorFinding {
    let what = "sandbox";
    let refuse =
        "programs of agents are refused; \"sandbox\": {\"allow_unconfined\": true} in the mountspec runs them without";
    match &facts.walls {
        Err(why) => DoctorFinding::bad(what, format!("could not be tested: {why}"), refuse),
        Ok(walls) => {
            // A limit that holds only in part does not keep programs from running.
            let missing = walls.iter().filter(|(name, stands, why)| !stands && !ungrouped(name, why));
            let missing: Vec<String> = missing.map(|(name, _, why)| format!("{name} ({why})")).collect();
            if missing.is_empty() {
                let (weaker, others): (Vec<_>, Vec<_>) = walls.iter().partition(|(name, _, how)| ungrouped(name, how));
                let names: Vec<&str> = others.iter().map(|(name, _, _)| name.as_str()).collect();
                let weaker: Vec<String> = weaker.iter().map(|(name, _, how)| format!("{name} ({how})")).collect();
                let weaker = match weaker.is_empty() {
                    true => String::new(),
                    false => format!("; limits without control groups: {}", weaker.join(", ")),
                };
                let said = format!("all isolation mechanisms work: {}{weaker}", names.join(", "));
                return match walls.iter().all(|(_, stands, _)| *stands) {
                    true => DoctorFinding::ok(what, said),
                    false => DoctorFinding::weak(what, said, "see cgroups"),
                };
            }
            if let Some(second) = &facts.second {
                return second_level(facts.accepts_second, &missing, second);
            }
            let landlock = missing.iter().any(|wall| wall.starts_with("landlock"));
            let boot = if landlock { "boot with lsm=landlock,… on Linux 5.13 or newer; until then " } else { "" };
            DoctorFinding::bad(what, format!("cannot be built here: {}", missing.join("; ")), format!("{boot}{refuse}"))
        }
    }
}

/// What is said where only the second level can be held: `missing` of the first, `walls` of the second.
fn second_level(accepted: bool, missing: &[String], walls: &[String]) -> DoctorFinding {
    let (what, missing, walls) = ("sandbox", missing.join("; "), walls.join(", "));
    let not_held = Level::Landlock.not_held().join("; ");
    if accepted {
        let said = format!("only the level `landlock` stands: {walls}; without {missing}; not held: {not_held}");
        return DoctorFinding::weak(what, said, "allow namespaces on this machine");
    }
    let fix = format!(
        "programs of agents are refused; \"sandbox\": {{\"require\": \"landlock\"}} in the mountspec confines them by {walls} \
         alone, and then {not_held}; {{\"allow_unconfined\": true}} runs them without"
    );
    DoctorFinding::bad(what, format!("cannot be built here: {missing}"), fix)
}

/// Whether a limit that control groups are for is kept by something weaker.
fn ungrouped(name: &str, how: &str) -> bool {
    ["processes", "memory", "cpu", "agent_limits"].contains(&name)
        && !how.starts_with("control group")
        && !how.starts_with("no ")
}

fn cgroups(facts: &MachineFacts) -> DoctorFinding {
    let what = "cgroups";
    let fallback = "the limits of each single process hold instead, and an agent runs few programs at once";
    match &facts.cgroups {
        Cgroups::Missing => {
            DoctorFinding::weak(what, format!("none: {fallback}"), "mount -t cgroup2 none /sys/fs/cgroup")
        }
        Cgroups::Found { version, controllers, writable } => {
            let lacking: Vec<&str> =
                ["memory", "pids"].into_iter().filter(|name| !controllers.iter().any(|it| it == name)).collect();
            // What the test of the sandbox could use counts more than a mode: a part of the tree may be delegated.
            let limits = facts.walls.iter().flatten().filter(|(name, _, _)| name == "memory" || name == "processes");
            let usable =
                limits.map(|(name, stands, how)| *stands && !ungrouped(name, how)).reduce(|one, two| one && two);
            let unusable = if *writable { "but a sandbox cannot use them" } else { "but not writable" };
            match (lacking.is_empty(), usable.unwrap_or(*writable)) {
                (true, true) => DoctorFinding::ok(what, format!("version {version}: {}", controllers.join(", "))),
                (true, false) => DoctorFinding::weak(
                    what,
                    format!("version {version}, {unusable}: {fallback}"),
                    "run as root, or with systemd-run --user --scope -p Delegate=yes acheron mount …",
                ),
                (false, _) => DoctorFinding::weak(
                    what,
                    format!("version {version} without {}: {fallback}", lacking.join(" and ")),
                    "boot with cgroup_enable=memory, or enable the controllers in cgroup.subtree_control",
                ),
            }
        }
    }
}

fn database(facts: &MachineFacts) -> DoctorFinding {
    let (what, state) = ("database", &facts.state);
    match &facts.database {
        Database::None => DoctorFinding::ok(what, format!("nothing is kept in {state} yet")),
        Database::Looked(faults) if faults.is_empty() => DoctorFinding::ok(what, format!("{state}: sound")),
        Database::Looked(faults) => {
            let first: Vec<&str> = faults.iter().take(3).map(String::as_str).collect();
            DoctorFinding::bad(
                what,
                format!("{state} is damaged ({}): {}", faults.len(), first.join("; ")),
                "stop acheron, move the directory aside, and restore a backup: acheron restore FILE --state DIR",
            )
        }
        Database::Unreadable(why) => DoctorFinding::bad(
            what,
            format!("{state}: {why}"),
            "see who owns the directory, or choose another with --state DIR",
        ),
    }
}

fn mountspec(facts: &MachineFacts) -> DoctorFinding {
    match &facts.mountspec {
        Ok(()) => DoctorFinding::ok("mountspec", "sound"),
        Err(why) => DoctorFinding::bad("mountspec", why.clone(), "acheron check FILE names every fault with its place"),
    }
}

fn symbols(facts: &MachineFacts) -> DoctorFinding {
    let what = "symbols";
    let Some((at, kept)) = &facts.symbols else { return DoctorFinding::ok(what, "are in the database") };
    let always =
        "redis-cli CONFIG SET appendonly yes; redis-cli CONFIG SET appendfsync always; redis-cli CONFIG REWRITE";
    let weak = |lost: &str| DoctorFinding::weak(what, format!("are in {at}, which {lost}"), always);
    match kept {
        Ok(RedisDurability::Everything) => {
            DoctorFinding::ok(what, format!("are in {at}, which logs each change first"))
        }
        Ok(RedisDurability::Behind(fsync)) if fsync == "everysec" => {
            weak("may lose the changes of the last second: appendfsync is everysec")
        }
        Ok(RedisDurability::Behind(fsync)) => {
            weak(&format!("may lose the changes of the last half minute or more: appendfsync is {fsync}"))
        }
        Ok(RedisDurability::Snapshots) => weak("may lose all changes since its last snapshot: appendonly is no"),
        Ok(RedisDurability::Nothing) => weak("loses every symbol when it ends: it has neither a log nor snapshots"),
        Ok(RedisDurability::Evicts(policy)) => DoctorFinding::weak(
            what,
            format!("are in {at}, which drops symbols when it is full: maxmemory-policy is {policy}"),
            "redis-cli CONFIG SET maxmemory-policy noeviction; redis-cli CONFIG REWRITE",
        ),
        Err(why) => DoctorFinding::bad(
            what,
            format!("are in {at}: {why}"),
            "start that server, fix symbols.url in the mountspec, or use \"backend\": \"sqlite\"",
        ),
    }
}
