//! The system calls that no program in a sandbox needs and that many escapes begin with. Refused with `EPERM`, so that
//! a program can continue; `clone3` and `openat2` with `ENOSYS`, because their flags are in memory that a filter cannot
//! read, and programs then fall back to `clone` and `openat`, whose flags it can; so are all calls that are newer than this
//! list. The init applies it last.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::broker::{self, OPEN_FLAGS, WATCHED};
use super::level::Level;
use acheron_base::{Error, Result};

/// Calls from here on (Linux 6.8) are unknown: what they do was not weighed, and programs fall back to older ones that were,
/// from `setxattrat` to `setxattr` for instance. The numbers are the same on all architectures.
const FIRST_UNKNOWN: u32 = 457;
/// The one exception: `mseal` only takes rights away.
const MSEAL: u32 = 462;

/// Refused with any arguments: mounts and namespaces, the kernel itself, memory of other processes, interfaces with a
/// long record of vulnerabilities.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_memfd_secret,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_lookup_dcookie,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Flags of `clone` that make a namespace.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Allowed address families; the others (packet, vsock, alg, …) reach rarely tested parts of the kernel.
const FAMILIES: [libc::c_int; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Calls that set the mode of a file, and the number of that argument: a set-user-id file made in a project would be
/// one for users outside. The flags of an opening say whether there is a mode at all.
const MODES: &[(libc::c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];
/// Openings, and the number of the flags argument; the mode follows.
const OPENINGS: &[(libc::c_long, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];
/// `O_CREAT`, and the part of `O_TMPFILE` that is not `O_DIRECTORY`.
const MAKING: [libc::c_int; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// Calls whose arguments are in memory: programs know older ones that do the same.
const UNREADABLE: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

/// Takes room on a disk without writing, so that no count shows it. Programs write instead, as on many file systems.
const UNCOUNTED: &[libc::c_long] = &[libc::SYS_fallocate];

/// Makes a pipe hold more memory. What all pipes of a user hold is bounded by the kernel: beyond it those of the operator
/// would hold less.
const PIPE_SIZES: libc::c_int = libc::F_SETPIPE_SZ;

/// Terminal requests that inject input into another process's terminal.
const IOCTLS: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// The kinds of socket pairs that cannot be sent elsewhere: a datagram socket reaches any socket that it can name.
const PAIRS: [libc::c_int; 2] = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET];

/// The kinds of sockets, without their flags.
const KINDS: libc::c_int = 0xf;

/// Refused too where no namespace stands around a program: what changes files that it may only read, or that it may not
/// even read, and memory that processes outside share.
const OUTSIDE: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// Calls that change another process if this argument is not 0, which means the caller.
const OTHERS: &[(libc::c_long, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

/// Filters to apply, in this order. `network` says whether the host's is shared.
pub(super) fn programs(network: bool, level: Level) -> Result<Vec<BpfProgram>> {
    let mut programs = vec![
        compiled(refused(network && level == Level::Namespaces)?, libc::EPERM)?,
        compiled(numbers(UNREADABLE), libc::ENOSYS)?,
        compiled(numbers(UNCOUNTED), libc::EOPNOTSUPP)?,
    ];
    if level == Level::Landlock {
        programs.push(compiled(outside(network)?, libc::EPERM)?);
    }
    programs.push(unknown_numbers());
    Ok(programs)
}

/// The calls that are refused only at the second level.
fn outside(network: bool) -> Result<Rules> {
    use SeccompCmpOp::Ne;
    let mut rules = numbers(OUTSIDE);
    for (call, argument) in OTHERS {
        rules.insert(*call, vec![rule(&[(*argument, Ne, 0)])?]);
    }
    // Times of a file that is open may be set, which is what `touch` does, but not of one that is only named.
    rules.insert(libc::SYS_utimensat, vec![rule(&[(1, Ne, 0)])?]);
    if !network {
        rules.insert(libc::SYS_socket, Vec::new());
    }
    Ok(rules)
}

/// Applies the filters to the calling thread. They are permanent and survive `execve`.
pub(super) fn apply(network: bool, level: Level) -> Result<String> {
    for program in programs(network, level)? {
        seccompiler::apply_filter(&program).map_err(|err| Error::unavailable(format!("seccomp: {err}")))?;
    }
    Ok(format!("seccomp, {} calls refused", REFUSED.len()))
}

/// Reports the calls that the [`broker`](super::broker) serves.
pub(super) fn reporting() -> Result<BpfProgram> {
    use SeccompCmpOp::MaskedEq;
    let mut rules = numbers(WATCHED);
    for (call, flags) in broker::OPENINGS {
        let ways = OPEN_FLAGS.iter().map(|bits| rule(&[(*flags, MaskedEq(*bits as u64), *bits as u64)]));
        rules.insert(*call, ways.collect::<Result<_>>()?);
    }
    // The library knows every action but the one that is wanted.
    let mut program = program(rules, SeccompAction::Trace(0))?;
    for word in program.iter_mut().filter(|word| u32::from(word.code) == libc::BPF_RET | libc::BPF_K) {
        if word.k == libc::SECCOMP_RET_TRACE {
            word.k = libc::SECCOMP_RET_USER_NOTIF;
        }
    }
    Ok(program)
}

/// Calls that are newer than this list do not exist here. On x86-64 every call has a second number (x32) with the same
/// architecture, which is larger than all others: neither do those.
fn unknown_numbers() -> BpfProgram {
    let word = |code: u32, jt, jf, k| seccompiler::sock_filter { code: code as u16, jt, jf, k };
    vec![
        word(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        word(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 2, 0, MSEAL),
        word(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, FIRST_UNKNOWN),
        word(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
        word(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// `sockets` says whether sockets of the file system may be opened, at the first level those in projects.
fn refused(sockets: bool) -> Result<Rules> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let all_bits = |argument: u8, bits: libc::c_int| (argument, MaskedEq(bits as u64), bits as u64);
    let mut rules = numbers(REFUSED);
    let namespaces = NAMESPACES.iter().map(|flag| rule(&[all_bits(0, *flag)]));
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_>>()?);
    // A socket file in a project leads to a program of the host. Socket pairs, which lead nowhere else, stay allowed.
    let local = sockets.then_some(libc::AF_UNIX);
    let families: Vec<_> = FAMILIES.iter().copied().chain(local).map(|family| (0, Ne, family as u64)).collect();
    let mut sockets = vec![rule(&families)?];
    // Resolving names and listing addresses need this one; the others reach further into the kernel.
    let netlink = (0, Eq, libc::AF_NETLINK as u64);
    sockets.push(rule(&[netlink.clone(), (2, Ne, libc::NETLINK_ROUTE as u64)])?);
    let kinds = |allowed: &'static [libc::c_int]| (0..=KINDS).filter(move |kind| !allowed.contains(kind));
    let kind = |kind: libc::c_int| (1, MaskedEq(KINDS as u64), kind as u64);
    for refused in kinds(&[libc::SOCK_RAW]) {
        sockets.push(rule(&[netlink.clone(), kind(refused)])?);
    }
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, kinds(&PAIRS).map(|refused| rule(&[kind(refused)])).collect::<Result<_>>()?);
    let requests = IOCTLS.iter().map(|request| rule(&[(1, Eq, *request)]));
    rules.insert(libc::SYS_ioctl, requests.collect::<Result<_>>()?);
    rules.insert(libc::SYS_fcntl, vec![rule(&[(1, Eq, PIPE_SIZES as u64)])?]);
    let marks = [libc::S_ISUID as libc::c_int, libc::S_ISGID as libc::c_int];
    for (call, mode) in MODES {
        rules.insert(*call, marks.iter().map(|mark| rule(&[all_bits(*mode, *mark)])).collect::<Result<_>>()?);
    }
    for (call, flags) in OPENINGS {
        let ways = MAKING.iter().flat_map(|making| marks.map(|mark| (*making, mark)));
        let rule = |(making, mark)| rule(&[all_bits(*flags, making), all_bits(*flags + 1, mark)]);
        rules.insert(*call, ways.map(rule).collect::<Result<_>>()?);
    }
    Ok(rules)
}

/// A rule that matches when all of these match: (argument, comparison, value).
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule> {
    let all = conditions.iter().map(|(argument, operator, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    });
    let built = all.collect::<Result<Vec<_>, _>>().and_then(SeccompRule::new);
    built.map_err(|err| Error::internal(format!("seccomp rule: {err}")))
}

fn numbers(calls: &[libc::c_long]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

fn compiled(rules: Rules, errno: i32) -> Result<BpfProgram> {
    program(rules, SeccompAction::Errno(errno.unsigned_abs()))
}

fn program(rules: Rules, action: SeccompAction) -> Result<BpfProgram> {
    let built = std::env::consts::ARCH
        .try_into()
        .and_then(|arch| SeccompFilter::new(rules, SeccompAction::Allow, action, arch))
        .and_then(TryInto::try_into);
    built.map_err(|err: seccompiler::BackendError| Error::unavailable(format!("seccomp filter: {err}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile_on_this_machine() {
        for (network, level) in [(false, Level::Namespaces), (true, Level::Namespaces), (true, Level::Landlock)] {
            let programs = programs(network, level).unwrap();
            assert!(programs[0].len() > REFUSED.len());
            assert!(programs.iter().all(|program| !program.is_empty()));
        }
        let reporting = reporting().unwrap();
        let reports = |word: &&seccompiler::sock_filter| word.k == libc::SECCOMP_RET_USER_NOTIF;
        assert!(reporting.iter().filter(reports).count() > 0);
        assert!(reporting.iter().all(|word| word.k != libc::SECCOMP_RET_TRACE));
    }
}
