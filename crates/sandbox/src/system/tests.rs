use super::*;

fn paths(text: &str) -> Vec<PathBuf> {
    text.split_whitespace().map(PathBuf::from).collect()
}

fn written(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn hidden_paths_are_found_wherever_they_are_mounted() {
    let mounts = acheron_base::mountinfo::parse(
        b"21 1 8:1 / / rw - ext4 /dev/a rw\n22 21 8:1 /srv/p /usr/src/p rw - ext4 /dev/a rw\n",
    );
    for (hidden, named, expected) in [
        ("/srv/q /home/x", "", ""),
        ("/usr/src/x", "", "/usr/src/x"),
        ("/usr/src/x/state /usr/src/x /usr/src/xy", "", "/usr/src/x /usr/src/xy"),
        ("/srv/p/state", "", "/usr/src/p/state"),
        ("/srv", "", "/usr/src/p"),
        // The system itself: without it no program starts.
        ("/ /usr /usr/lib", "", "/usr/src/p"),
        ("/usr/lib/acheron/library", "", "/usr/lib/acheron/library"),
        ("/opt/x/state", "", ""),
        ("/opt/x/state", "/opt", "/opt/x/state"),
        ("/etc/ssl/certs/own", "", "/etc/ssl/certs/own"),
    ] {
        assert_eq!(written(&hidden_paths(&paths(hidden), &paths(named), &mounts)), expected, "{hidden}, {named}");
    }
}

#[test]
fn what_is_mounted_in_the_system_belongs_to_it_or_not() {
    let mounts = acheron_base::mountinfo::parse(
        b"21 1 8:1 / / rw - ext4 /dev/a rw\n22 21 8:2 / /usr/local rw - xfs /dev/b rw\n\
              23 21 8:1 /home /usr/home rw - ext4 /dev/a rw\n24 21 0:9 / /usr/mnt/ns rw - fuse.acheron x rw\n\
              25 21 8:1 /usr/lib/x /usr/y rw - ext4 /dev/a rw\n26 21 0:8 / /usr/net rw - nfs4 x rw\n\
              27 21 0:20 /@local /usr/@ rw - btrfs /dev/c rw\n28 21 0:20 /@data /data rw - btrfs /dev/c rw\n",
    );
    let hidden = |named: &str| {
        let named = paths(named);
        let hidden = below(Path::new("/usr"), &mounts).filter(|mount| foreign(mount, &named, &mounts));
        written(&hidden.map(|mount| mount.point.clone()).collect::<Vec<_>>())
    };
    assert_eq!(hidden(""), "/usr/home /usr/mnt/ns /usr/net");
    assert_eq!(hidden("/usr/net /usr"), "/usr/home /usr/mnt/ns");
}

#[test]
fn a_directory_with_another_meaning_inside_is_refused() {
    for (named, expected) in [
        ("/opt", "fine"),
        ("/nix/store", "fine"),
        ("/usr/local", "fine"),
        ("opt", "`opt` is not absolute"),
        ("/opt/../etc", "`/opt/../etc` is not a plain path: leave `..` out"),
        ("/", "`/` is the root itself or no text; name a directory below"),
        ("/usr", "`/usr` is shown already"),
        ("/etc/ssl", "`/etc/ssl` cannot be shown: /etc is something else in a sandbox; bind it in a project instead"),
    ] {
        let said = check_system(Path::new(named)).map_or_else(|error| error.message, |()| "fine".to_owned());
        assert_eq!(said, expected);
    }
}

#[test]
fn nothing_secret_of_etc_is_listed() {
    let listed: Vec<String> = etc(true).map(|path| path.display().to_string()).collect();
    for secret in ["/etc", "/etc/shadow", "/etc/ssl", "/etc/ssl/private", "/etc/pki", "/etc/pki/tls", "/etc/sudoers"] {
        assert!(!listed.iter().any(|path| path == secret), "{secret}");
    }
    assert!(listed.contains(&"/etc/resolv.conf".to_owned()));
    assert!(!etc(false).any(|path| path.ends_with("resolv.conf")));
}
