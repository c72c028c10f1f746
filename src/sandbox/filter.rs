//! The system calls that no program in a sandbox needs and many a way out begins with.
//!
//! Refused by `EPERM`, so that a program can go on without; `clone3` by `ENOSYS`, because its flags lie in memory that a
//! filter cannot read, and every C library then falls back to `clone`, whose flags it can.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use crate::error::{Error, Result};

/// Refused whatever the arguments: mounts and namespaces, the kernel itself, other processes' memory by handle,
/// interfaces with a long record of holes.
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

/// Address families that may be asked for; the rest (packet, vsock, alg, …) speak to the kernel's oddest corners.
const FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Terminal requests that type into someone else's shell.
const IOCTLS: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// Filters to apply, in this order.
pub(super) fn programs() -> Result<[BpfProgram; 2]> {
    Ok([compiled(refused()?, libc::EPERM)?, compiled(numbers(&[libc::SYS_clone3]), libc::ENOSYS)?])
}

/// Puts the filters on the calling thread. They stay for ever, and over `execve`.
pub(super) fn apply() -> Result<String> {
    for program in programs()? {
        seccompiler::apply_filter(&program).map_err(|err| Error::unavailable(format!("seccomp: {err}")))?;
    }
    Ok(format!("seccomp, {} calls refused", REFUSED.len()))
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn refused() -> Result<Rules> {
    let mut rules = numbers(REFUSED);
    let mut add = |call: libc::c_long, conditions: Vec<SeccompRule>| {
        both(call, |number| _ = rules.insert(number, conditions.clone()));
    };
    let namespaces = NAMESPACES.iter().map(|flag| rule(&[(0, SeccompCmpOp::MaskedEq(*flag as u64), *flag as u64)]));
    add(libc::SYS_clone, namespaces.collect::<Result<_>>()?);
    let families: Vec<_> = FAMILIES.iter().map(|family| (0, SeccompCmpOp::Ne, *family as u64)).collect();
    add(libc::SYS_socket, vec![rule(&families)?]);
    let requests = IOCTLS.iter().map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]));
    add(libc::SYS_ioctl, requests.collect::<Result<_>>()?);
    Ok(rules)
}

/// A rule that holds when all of these hold: (argument, comparison, value).
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule> {
    let all = conditions.iter().map(|(argument, operator, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    });
    let built = all.collect::<Result<Vec<_>, _>>().and_then(SeccompRule::new);
    built.map_err(|err| Error::internal(format!("seccomp rule: {err}")))
}

fn numbers(calls: &[libc::c_long]) -> Rules {
    let mut rules = Rules::new();
    for call in calls {
        both(*call, |number| _ = rules.insert(number, Vec::new()));
    }
    rules
}

/// A call by its number, and on x86-64 by its second number: the x32 calls pass for the same architecture.
fn both(call: libc::c_long, mut each: impl FnMut(i64)) {
    each(call);
    #[cfg(target_arch = "x86_64")]
    each(call | 0x4000_0000);
}

fn compiled(rules: Rules, errno: i32) -> Result<BpfProgram> {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let built = std::env::consts::ARCH
        .try_into()
        .and_then(|arch| SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch))
        .and_then(TryInto::try_into);
    built.map_err(|err: seccompiler::BackendError| Error::unavailable(format!("seccomp filter: {err}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile_on_this_machine() {
        let [refusing, clone3] = programs().unwrap();
        assert!(refusing.len() > REFUSED.len());
        assert!(!clone3.is_empty());
    }

    #[test]
    fn the_second_numbers_of_x86_are_refused_as_well() {
        let rules = refused().unwrap();
        assert!(rules.contains_key(&libc::SYS_mount));
        if cfg!(target_arch = "x86_64") {
            assert!(rules.contains_key(&(libc::SYS_mount | 0x4000_0000)));
        }
    }
}
