//! The list of mounts of the kernel, `/proc/self/mountinfo`. A dead or hanging mount is found here and never by `stat`,
//! which would hang with it. Any crate may use it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub id: u64,
    pub parent: u64,
    /// `major:minor`
    pub device: String,
    /// The root of the mount within its file system.
    pub root: PathBuf,
    pub point: PathBuf,
    /// The type of the file system, such as `fuse.acheron`.
    pub kind: String,
    /// The mounted device; for FUSE its FSName.
    pub source: String,
    pub read_only: bool,
}

/// All mounts that this process sees, the oldest first.
pub fn read() -> std::io::Result<Vec<Mount>> {
    std::fs::read("/proc/self/mountinfo").map(|text| parse(&text))
}

/// The mounts in a mountinfo; lines that cannot be parsed are skipped.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut next = || fields.next();
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse().ok();
    let (id, parent) = (number(next()?)?, number(next()?)?);
    let device = text(next()?);
    let mut path = || Some(PathBuf::from(OsString::from_vec(unescaped(next()?))));
    let (root, point) = (path()?, path()?);
    let read_only = text(next()?).split(',').any(|option| option == "ro");
    while next()? != b"-" {} // optional fields, any number of them
    let (kind, source) = (text(next()?), text(&unescaped(next()?)));
    Some(Mount { id, parent, device, root, point, kind, source, read_only })
}

/// The mount of a path without links, found as the kernel finds it: from the root, mount by mount.
fn holding<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let top = |mount: &&Mount| mount.point == Path::new("/") && !mounts.iter().any(|above| above.id == mount.parent);
    let mut at = mounts.iter().find(top)?;
    // No more steps than mounts, should the kernel list a ring.
    for _ in mounts {
        let below = mounts.iter().filter(|mount| mount.parent == at.id && path.starts_with(&mount.point));
        match below.min_by_key(|mount| mount.point.components().count()) {
            Some(next) => at = next,
            None => break,
        }
    }
    Some(at)
}

/// Every path where the directory at `path`, or a part of it, is visible: the path itself, and other mounts of the same
/// part of the file system. Asks the file system nothing.
pub fn also_at(mounts: &[Mount], path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    let Some(mount) = holding(mounts, path) else { return all };
    let Ok(below) = path.strip_prefix(&mount.point) else { return all };
    let within = joined(&mount.root, below);
    for other in mounts.iter().filter(|other| other.device == mount.device && other.id != mount.id) {
        if let Ok(below) = within.strip_prefix(&other.root) {
            all.push(joined(&other.point, below));
        } else if other.root.starts_with(&within) {
            all.push(other.point.clone());
        }
    }
    all
}

/// Joins without the slash that an empty path would leave at the end.
fn joined(path: &Path, below: &Path) -> PathBuf {
    path.join(below).components().collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The kernel writes space, tab, newline and backslash as `\` and three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match (byte, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                plain.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                after
            }
            _ => {
                plain.push(byte);
                after
            }
        };
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAMPLE: &[u8] = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
        40 22 0:40 / /home/a\\040b/mnt rw,nosuid shared:2 master:3 - fuse.acheron acheron:1f3a rw,user_id=0\n\
        41 22 0:41 / /home/a\\040b/mnt rw - fuse.acheron acheron:77 rw\n\
        42 22 0:42 /sub /x ro - tmpfs acheronish rw\n\
        garbage\n\
        43 22 0:43 / /y rw - proc\n";

    #[test]
    fn lines_are_read_and_escapes_undone() {
        let mounts = parse(SAMPLE);
        let shown: Vec<_> = mounts
            .iter()
            .map(|mount| (mount.id, mount.point.to_str().unwrap(), mount.source.as_str(), mount.read_only))
            .collect();
        assert_eq!(
            shown,
            [
                (22, "/", "/dev/sda1", false),
                (40, "/home/a b/mnt", "acheron:1f3a", false),
                (41, "/home/a b/mnt", "acheron:77", false),
                (42, "/x", "acheronish", true),
            ]
        );
    }

    #[test]
    fn what_is_mounted_twice_is_found_at_both_places() {
        let mounts = parse(
            b"21 1 8:1 / / rw - ext4 /dev/a rw\n22 21 8:1 /srv/p /usr/src/p rw - ext4 /dev/a rw\n\
              23 21 8:1 /srv/p/state/agents /usr/agents rw - ext4 /dev/a rw\n\
              24 21 8:2 / /data rw - ext4 /dev/b rw\n25 24 0:9 / /data rw - tmpfs x rw\n\
              26 24 8:1 /hidden /data/deep rw - ext4 /dev/a rw\n",
        );
        let also = |path: &str| {
            let all = also_at(&mounts, Path::new(path));
            all.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(also("/srv/p/state"), "/srv/p/state /usr/src/p/state /usr/agents");
        assert_eq!(also("/srv/p"), "/srv/p /usr/src/p /usr/agents");
        assert_eq!(also("/usr/src/p/state"), "/usr/src/p/state /srv/p/state /usr/agents");
        // The newest of those that stand on one another counts, and what is below it is not reached.
        assert_eq!(also("/data/deep/x"), "/data/deep/x");
        assert_eq!(also("/etc"), "/etc");
    }

    #[test]
    fn this_machine_has_a_root() {
        let mounts = read().unwrap();
        assert!(mounts.iter().any(|mount| mount.point.as_os_str() == "/"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            parse(&bytes);
        }

        #[test]
        fn what_the_kernel_escapes_comes_back(name in prop::collection::vec(any::<u8>(), 0..40)) {
            let escaped: Vec<u8> = name.iter().flat_map(|byte| match byte {
                b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
                byte => vec![*byte],
            }).collect();
            prop_assert_eq!(unescaped(&escaped), name);
        }
    }
}
