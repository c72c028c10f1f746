//! Namespaces: the sandbox sees only its own users, processes, mounts and network. The supervisor and the init use it.

use std::fs;
use std::os::fd::OwnedFd;

use nix::sched::{CloneFlags, unshare};

use super::confinement::ConfinementBuilder;
use acheron_base::{Error, Result};

/// Enters a user namespace in which only our own user and group exist, under the same numbers: the kernel compares the
/// numbers of the *host* when it decides who may enter a FUSE mount.
pub(super) fn user() -> Result<String> {
    let (uid, gid) = (nix::unistd::getuid(), nix::unistd::getgid());
    if uid.is_root() {
        // Groups of root that would not exist inside.
        _ = nix::unistd::setgroups(&[]);
    }
    enter(CloneFlags::CLONE_NEWUSER).map_err(|err| Error::unavailable(format!("{err}{}", restricted())))?;
    // Without this an ordinary user may not map a group.
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{uid} {uid} 1")),
        ("gid_map", format!("{gid} {gid} 1")),
    ];
    for (name, text) in maps {
        fs::write(format!("/proc/self/{name}"), text)
            .map_err(|err| Error::unavailable(format!("{name} of the user namespace: {err}{}", restricted())))?;
    }
    Ok(format!("user namespace, as {uid}:{gid}"))
}

/// Lets the children of this process live in a pid namespace of their own.
pub(super) fn pid() -> Result<String> {
    enter(CloneFlags::CLONE_NEWPID).map(|()| "pid namespace".to_owned())
}

/// The namespaces that init enters itself.
pub(super) fn rest(layers: &mut ConfinementBuilder, network: bool) -> Result<()> {
    layers.add("mounts", enter(CloneFlags::CLONE_NEWNS).map(|()| "mount namespace".to_owned()))?;
    layers.add("ipc", enter(CloneFlags::CLONE_NEWIPC).map(|()| "ipc namespace".to_owned()))?;
    let uts = enter(CloneFlags::CLONE_NEWUTS).map(|()| _ = nix::unistd::sethostname("acheron"));
    layers.add("uts", uts.map(|()| "uts namespace".to_owned()))?;
    // Names of control groups contain numbers of processes of the host. Nothing else depends on it.
    _ = enter(CloneFlags::CLONE_NEWCGROUP);
    if !network && layers.add("network", enter(CloneFlags::CLONE_NEWNET).map(|()| "network namespace".to_owned()))? {
        loopback();
    }
    Ok(())
}

fn enter(flag: CloneFlags) -> Result<()> {
    unshare(flag)
        .map_err(|errno| Error::unavailable(format!("the kernel refuses a namespace ({flag:?}): {}", errno.desc())))
}

/// A hint at the setting that forbids user namespaces, if one does.
pub(super) fn restricted() -> String {
    let forbidding = [
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ];
    let found =
        forbidding.iter().find(|(file, value, _)| fs::read_to_string(file).is_ok_and(|text| text.trim() == *value));
    found.map(|(_, _, remedy)| format!("; try `{remedy}`")).unwrap_or_default()
}

/// A listener at a port of the sandbox's own loopback device. Whoever holds it outside answers what connects inside.
pub(super) fn listener(port: u16) -> Result<OwnedFd> {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, port));
    listener.map(Into::into).map_err(|err| Error::unavailable(format!("port {port} of the sandbox: {err}")))
}

/// Brings the loopback device up, so that a program can connect to itself. Nothing depends on it.
fn loopback() {
    // SAFETY: a plain socket; the result is checked.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return;
    }
    // SAFETY: an all-zero ifreq is valid, the name fits and ends in zero, and the request only reads the struct.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        libc::ioctl(socket, libc::SIOCSIFFLAGS, &request);
        libc::close(socket);
    }
}
