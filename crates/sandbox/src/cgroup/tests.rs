use super::*;

fn check(mounts: &str, own: &str, controller: &str, expected: &[&str]) {
    let found: Vec<String> =
        parents(mounts, own, controller).iter().map(|p| format!("v{} {}", p.version, p.parent.display())).collect();
    assert_eq!(found, expected);
}

const HYBRID: &str = "\
31 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
38 25 0:33 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 25 0:35 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";
const OWN: &str = "8:pids:/\n4:memory:/process/e92\n0::/\n";

#[test]
fn a_hybrid_host_is_asked_for_the_newer_interface_first() {
    check(HYBRID, OWN, "memory", &["v2 /sys/fs/cgroup/unified", "v1 /sys/fs/cgroup/memory/process/e92"]);
    check(HYBRID, OWN, "pids", &["v2 /sys/fs/cgroup/unified", "v1 /sys/fs/cgroup/pids"]);
}

#[test]
fn a_service_of_systemd_tries_its_own_group_the_one_above_and_the_top() {
    let mounts = "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    let own = "0::/system.slice/acheron.service\n";
    let slice = "v2 /sys/fs/cgroup/system.slice";
    let service = "v2 /sys/fs/cgroup/system.slice/acheron.service";
    check(mounts, own, "pids", &[service, slice, "v2 /sys/fs/cgroup"]);
    let own = "0::/system.slice/acheron.service/host\n";
    let host = "v2 /sys/fs/cgroup/system.slice/acheron.service/host";
    check(mounts, own, "pids", &[host, service, "v2 /sys/fs/cgroup"]);
}

#[test]
fn in_a_container_the_mount_shows_only_a_part_of_the_tree() {
    let mounts = "30 25 0:26 /docker/ab12 /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n";
    check(mounts, "8:pids:/docker/ab12/x\n", "pids", &["v1 /sys/fs/cgroup/pids/x"]);
}

#[test]
fn what_is_no_list_of_mounts_gives_no_places() {
    check("", OWN, "pids", &[]);
    check("garbage\n - \n1 2 - cgroup2", OWN, "pids", &[]);
    check(HYBRID, "", "pids", &[]);
}
