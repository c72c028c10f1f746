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
