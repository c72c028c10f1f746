//! The part of the host's system that a sandbox sees: enough to run programs, nothing that identifies the host. A
//! directory of the system is shown without what is mounted below it, apart from [what belongs to it](foreign), and
//! without what the [plan](super::Plan) hides: the paths of the host itself and the projects. [`root`](super::root) and
//! the host use it.

use std::path::{Component, Path, PathBuf};

use acheron_base::mountinfo::{Mount, also_at};
use acheron_base::{Error, Result};

/// Directories at the top of a Linux system. On most of today's all but `usr` are links, which are made again as links.
pub(super) const DIRECTORIES: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Parts of them without which no program starts. A project that is one of these cannot be hidden.
const NEEDED: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Names at the top that have another meaning inside.
const TAKEN: [&str; 12] =
    ["agents", "dev", "etc", "global", "home", "meta", "nodes", "proc", "projects", "service", "sys", "tmp"];

/// File systems that hold programs of this machine. Others belong to users (FUSE, network) or hold no programs.
const LOCAL: [&str; 12] =
    ["bcachefs", "btrfs", "erofs", "ext2", "ext3", "ext4", "f2fs", "jfs", "reiserfs", "squashfs", "xfs", "zfs"];

/// Parts of `/etc` that programs need to start, to resolve names and to check certificates. Not the whole: a host
/// that runs as root could read its `shadow` and its private keys in there.
const ETC: [&str; 24] = [
    "alternatives",
    "ca-certificates.conf",
    "crypto-policies",
    "fonts",
    "gai.conf",
    "host.conf",
    "inputrc",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
];

/// Files that matter only where the network is shared.
const NETWORK: [&str; 1] = ["resolv.conf"];

/// The paths under `/etc` to show, whether they exist or not.
pub(super) fn etc(network: bool) -> impl Iterator<Item = PathBuf> {
    let more: &[&str] = if network { &NETWORK } else { &[] };
    ETC.iter().chain(more).map(|name| PathBuf::from("/etc").join(name))
}

/// Device files: harmless, and present on any Linux.
pub(super) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Files of `/proc` that tell of the machine and not of the sandbox. Root's programs could read them all.
pub(super) const UNREADABLE: [&str; 23] = [
    "acpi",
    "asound",
    "cmdline",
    "config.gz",
    "iomem",
    "ioports",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "modules",
    "pagetypeinfo",
    "sched_debug",
    "scsi",
    "slabinfo",
    "sysrq-trigger",
    "timer_list",
    "vmallocinfo",
];

/// Files of `/etc` that are made anew, so that the user has a name and the host an address.
pub(super) fn written(uid: u32, gid: u32) -> [(&'static str, String); 5] {
    let user = format!("agent:x:{uid}:{gid}:agent:/home:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n");
    let group = format!("agent:x:{gid}:\nnogroup:x:65534:\n");
    [
        ("passwd", user),
        ("group", group),
        ("hostname", "acheron\n".to_owned()),
        ("hosts", "127.0.0.1 localhost acheron\n::1 localhost\n".to_owned()),
        ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".to_owned()),
    ]
}

/// Refuses a directory that cannot be shown beside those of the system: the operator wrote the list.
pub fn check_system(named: &Path) -> Result<()> {
    let refused = |why: &str| Err(Error::invalid(format!("`{}` {why}", named.display())));
    let Ok(relative) = named.strip_prefix("/") else { return refused("is not absolute") };
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return refused("is not a plain path: leave `..` out");
    }
    match relative.iter().next().and_then(|first| first.to_str()) {
        None => refused("is the root itself or no text; name a directory below"),
        Some(first) if TAKEN.contains(&first) => {
            refused(&format!("cannot be shown: /{first} is something else in a sandbox; bind it in a project instead"))
        }
        Some(first) if relative == Path::new(first) && DIRECTORIES.contains(&first) => refused("is shown already"),
        Some(_) => Ok(()),
    }
}

/// The part of the system that a sandbox sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemView {
    /// Directories beside the usual ones.
    pub named: Vec<PathBuf>,
    /// The paths that are hidden, by their names inside.
    pub hidden: Vec<PathBuf>,
}

impl SystemView {
    /// Whether a file of the host's is found inside under its own name.
    pub fn shows(&self, path: &Path) -> bool {
        shows(path, &self.named) && !self.hidden.iter().any(|hidden| path.starts_with(hidden))
    }
}

fn shows(path: &Path, named: &[PathBuf]) -> bool {
    in_system(path) || named.iter().any(|shown| path.starts_with(shown))
}

fn in_system(path: &Path) -> bool {
    DIRECTORIES.iter().any(|name| path.starts_with(Path::new("/").join(name)))
}

/// A directory of the host's and its name inside.
struct Shown {
    source: PathBuf,
    target: PathBuf,
}

/// All directories of the system that are shown, where they really are.
fn all_shown(named: &[PathBuf]) -> Vec<Shown> {
    let own = DIRECTORIES.iter().map(|name| Path::new("/").join(name)).filter(|path| !path.is_symlink());
    let own = own.chain(etc(true)).map(|path| Shown { source: path.clone(), target: path });
    own.chain(
        extra(named)
            .map(|path| Shown { source: path.canonicalize().unwrap_or_else(|_| path.clone()), target: path.clone() }),
    )
    .collect()
}

/// Those of the list that are directories of their own, and not a part of another that is shown.
pub(super) fn extra(named: &[PathBuf]) -> impl Iterator<Item = &PathBuf> {
    let part = |path: &Path| named.iter().any(|other| other != path && path.starts_with(other));
    named.iter().filter(move |path| !in_system(path) && !part(path))
}

/// The names inside by which something at these paths of the host's would show in a directory of the system.
pub fn hidden_paths(paths: &[PathBuf], named: &[PathBuf], mounts: &[Mount]) -> Vec<PathBuf> {
    let shown = all_shown(named);
    let mut found = Vec::new();
    for at in paths.iter().flat_map(|path| also_at(mounts, path)) {
        for Shown { source, target } in &shown {
            match at.strip_prefix(source) {
                Ok(below) if !below.as_os_str().is_empty() && !needed(target, below) => found.push(target.join(below)),
                _ => (),
            }
        }
    }
    outermost(found)
}

fn needed(target: &Path, below: &Path) -> bool {
    target == Path::new("/usr") && NEEDED.iter().any(|name| below == Path::new(name))
}

/// Without those that lie in another, and each once.
pub(super) fn outermost(mut places: Vec<PathBuf>) -> Vec<PathBuf> {
    places.sort();
    // A path sorts after the directory that contains it, because paths are compared name by name.
    places.dedup_by(|next, before| next.starts_with(before));
    places
}

/// The mounts below a directory of the system.
pub(super) fn below<'a>(source: &'a Path, mounts: &'a [Mount]) -> impl Iterator<Item = &'a Mount> {
    mounts.iter().filter(move |mount| mount.point != source && mount.point.starts_with(source))
}

/// Whether a mount below a directory of the system is not a part of it: it is not a local file system, or it is a piece
/// of one that is elsewhere on this machine, a home for example. The mountspec can name it.
pub(super) fn foreign(mount: &Mount, named: &[PathBuf], mounts: &[Mount]) -> bool {
    if named.contains(&mount.point) {
        return false;
    }
    let others = mounts.iter().filter(|other| other.device == mount.device && other.id != mount.id);
    let mut elsewhere = others.filter_map(|other| Some(other.point.join(mount.root.strip_prefix(&other.root).ok()?)));
    !LOCAL.contains(&mount.kind.as_str()) || elsewhere.any(|path| !shows(&path, named))
}

#[cfg(test)]
mod tests;
