//! What is mounted where, as the kernel tells it in `/proc/self/mountinfo`.
//!
//! A dead or hanging mount is found here and never by `stat`, which would hang with it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub id: u64,
    pub parent: u64,
    /// `major:minor`
    pub device: String,
    pub point: PathBuf,
    /// The type of the file system, such as `fuse.acheron`.
    pub kind: String,
    /// What was mounted; for FUSE its FSName.
    pub source: String,
    pub read_only: bool,
}

/// All mounts that this process sees, in the order they were made.
pub fn read() -> std::io::Result<Vec<Mount>> {
    std::fs::read("/proc/self/mountinfo").map(|text| parse(&text))
}

/// The mounts in a mountinfo; a line that is not understood is passed over.
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
    next()?; // the part of the file system that is shown
    let point = PathBuf::from(OsString::from_vec(unescaped(next()?)));
    let read_only = text(next()?).split(',').any(|option| option == "ro");
    while next()? != b"-" {} // optional fields, any number of them
    let (kind, source) = (text(next()?), text(&unescaped(next()?)));
    Some(Mount { id, parent, device, point, kind, source, read_only })
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
