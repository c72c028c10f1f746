//! What of the host's system a sandbox sees: enough to run programs, nothing that says who the host is.

use std::path::PathBuf;

/// Directories at the top of a Linux system. On most of today's all but `usr` are links, which are made again as links.
pub(super) const DIRECTORIES: [&str; 8] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt"];

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

/// Files that only matter where the network is shared.
const NETWORK: [&str; 1] = ["resolv.conf"];

/// The paths under `/etc` to show, whether they exist or not.
pub(super) fn etc(network: bool) -> impl Iterator<Item = PathBuf> {
    let more: &[&str] = if network { &NETWORK } else { &[] };
    ETC.iter().chain(more).map(|name| PathBuf::from("/etc").join(name))
}

/// Device files; all harmless, all there on any Linux.
pub(super) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Files of `/etc` written anew, so that a user has a name and a host an address.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_of_etc_is_listed() {
        let listed: Vec<String> = etc(true).map(|path| path.display().to_string()).collect();
        for secret in
            ["/etc", "/etc/shadow", "/etc/ssl", "/etc/ssl/private", "/etc/pki", "/etc/pki/tls", "/etc/sudoers"]
        {
            assert!(!listed.iter().any(|path| path == secret), "{secret}");
        }
        assert!(listed.contains(&"/etc/resolv.conf".to_owned()));
        assert!(!etc(false).any(|path| path.ends_with("resolv.conf")));
    }
}
