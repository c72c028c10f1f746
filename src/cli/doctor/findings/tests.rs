use expect_test::expect;

use super::*;

fn sound() -> MachineFacts {
    MachineFacts {
        device: Device::Open,
        fusermount: Some(("/usr/bin/fusermount3".to_owned(), true)),
        root: true,
        admin: true,
        request_timeouts: [("default_request_timeout", Some(0)), ("max_request_timeout", None)],
        openat2: Ok(()),
        user_namespaces: Namespaces { max: Some(100), ..Namespaces::default() },
        walls: Ok(vec![("pids".to_owned(), true, "pid namespace".to_owned())]),
        second: None,
        accepts_second: false,
        cgroups: Cgroups::Found {
            version: 2,
            controllers: vec!["memory".to_owned(), "pids".to_owned()],
            writable: true,
        },
        state: "/s".to_owned(),
        database: Database::Looked(vec![]),
        mountspec: Ok(()),
        symbols: None,
    }
}

fn render(facts: &MachineFacts) -> String {
    let all = findings(facts);
    let lacking = all.iter().filter(|finding| finding.health != Health::Ok);
    lacking
        .map(|it| format!("{:?} {}: {}\n  {}\n", it.health, it.what, it.said, it.fix.as_deref().unwrap_or("no fix")))
        .collect()
}

#[test]
fn a_sound_machine_lacks_nothing() {
    assert_eq!(render(&sound()), "");
    let fresh = MachineFacts { database: Database::None, fusermount: None, ..sound() };
    assert_eq!(render(&fresh), "", "root needs no helper to mount");
}

#[test]
fn a_user_on_a_bare_machine_is_told_how_to_mend_each_thing() {
    let facts = MachineFacts {
        device: Device::Shut(0o600, "Permission denied".to_owned()),
        fusermount: None,
        root: false,
        admin: false,
        request_timeouts: [("default_request_timeout", Some(20)), ("max_request_timeout", Some(60))],
        openat2: Err("this kernel has no openat2".to_owned()),
        user_namespaces: Namespaces { max: Some(100), clone: Some(0), apparmor: None },
        walls: Ok(vec![
            ("pids".to_owned(), true, "pid namespace".to_owned()),
            ("landlock".to_owned(), false, "this kernel has no Landlock".to_owned()),
        ]),
        second: None,
        accepts_second: false,
        cgroups: Cgroups::Found { version: 2, controllers: vec!["pids".to_owned()], writable: false },
        state: "/s".to_owned(),
        database: Database::Looked(vec!["row 1 missing".to_owned()]),
        mountspec: Err("agents: there is none".to_owned()),
        symbols: Some(("redis at [::1]:6379".to_owned(), Err("it does not answer".to_owned()))),
    };
    expect![[r#"
        Bad /dev/fuse: has mode 0600 and cannot be opened: Permission denied
          as root: chmod 0666 /dev/fuse, and for good: echo 'KERNEL=="fuse", MODE="0666"' > /etc/udev/rules.d/99-fuse.rules
        Bad fusermount3: not found: users need it to mount
          apt-get install fuse3
        Bad request timeout: fs.fuse.default_request_timeout is 20 s and fs.fuse.max_request_timeout is 60 s: a read that waits longer kills the mount
          as root, before mounting: sysctl -w fs.fuse.default_request_timeout=0; sysctl -w fs.fuse.max_request_timeout=0
        Bad openat2: this kernel has no openat2
          use Linux 5.6 or newer, and a container that lets it through
        Weak binds: projects are mirrored through FUSE, which is slower: binding needs CAP_SYS_ADMIN
          run acheron as root where that speed matters
        Bad user namespaces: are restricted to root: users cannot build a sandbox
          as root: sysctl -w kernel.unprivileged_userns_clone=1
        Bad sandbox: cannot be built here: landlock (this kernel has no Landlock)
          boot with lsm=landlock,… on Linux 5.13 or newer; until then programs of agents are refused; "sandbox": {"allow_unconfined": true} in the mountspec runs them without
        Weak cgroups: version 2 without memory: the limits of each single process hold instead, and an agent runs few programs at once
          boot with cgroup_enable=memory, or enable the controllers in cgroup.subtree_control
        Bad database: /s is damaged (1): row 1 missing
          stop acheron, move the directory aside, and restore a backup: acheron restore FILE --state DIR
        Bad mountspec: agents: there is none
          acheron check FILE names every fault with its place
        Bad symbols: are in redis at [::1]:6379: it does not answer
          start that server, fix symbols.url in the mountspec, or use "backend": "sqlite"
    "#]].assert_eq(&render(&facts));
}

#[test]
fn each_other_lack_has_its_own_words() {
    let user = || MachineFacts { root: false, admin: false, ..sound() };
    let names = |max, clone, apparmor| MachineFacts { user_namespaces: Namespaces { max, clone, apparmor }, ..user() };
    let cases = [
        MachineFacts { device: Device::Missing, ..sound() },
        MachineFacts { fusermount: Some(("/bin/fusermount3".to_owned(), false)), ..user() },
        names(Some(0), None, None),
        MachineFacts { user_namespaces: Namespaces::default(), ..sound() },
        names(Some(9), Some(1), Some(1)),
        MachineFacts { walls: Err("no program".to_owned()), ..sound() },
        MachineFacts { cgroups: Cgroups::Missing, ..sound() },
        MachineFacts {
            cgroups: Cgroups::Found { version: 1, controllers: vec!["memory".into(), "pids".into()], writable: false },
            ..sound()
        },
        MachineFacts { database: Database::Unreadable("Permission denied".to_owned()), ..sound() },
    ];
    let all: Vec<String> = cases.iter().map(render).collect();
    expect![[r#"
        Bad /dev/fuse: is not there: nothing can be mounted
          modprobe fuse; in a container: start it with --device /dev/fuse --cap-add SYS_ADMIN
        --
        Bad fusermount3: /bin/fusermount3 is not setuid root: a user cannot mount with it
          as root: chmod u+s /bin/fusermount3
        Weak binds: projects are mirrored through FUSE, which is slower: binding needs CAP_SYS_ADMIN
          run acheron as root where that speed matters
        --
        Weak binds: projects are mirrored through FUSE, which is slower: binding needs CAP_SYS_ADMIN
          run acheron as root where that speed matters
        Bad user namespaces: are switched off: no sandbox can be built
          as root: sysctl -w user.max_user_namespaces=15000
        --
        Bad user namespaces: are switched off: no sandbox can be built
          as root: sysctl -w user.max_user_namespaces=15000
        --
        Weak binds: projects are mirrored through FUSE, which is slower: binding needs CAP_SYS_ADMIN
          run acheron as root where that speed matters
        Bad user namespaces: are restricted by AppArmor: a sandbox would have no rights in its own
          as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give acheron a profile with userns
        --
        Bad sandbox: could not be tested: no program
          programs of agents are refused; "sandbox": {"allow_unconfined": true} in the mountspec runs them without
        --
        Weak cgroups: none: the limits of each single process hold instead, and an agent runs few programs at once
          mount -t cgroup2 none /sys/fs/cgroup
        --
        Weak cgroups: version 1, but not writable: the limits of each single process hold instead, and an agent runs few programs at once
          run as root, or with systemd-run --user --scope -p Delegate=yes acheron mount …
        --
        Bad database: /s: Permission denied
          see who owns the directory, or choose another with --state DIR
    "#]]
    .assert_eq(&all.join("--\n"));
}

#[test]
fn symbols_on_redis_are_as_safe_as_redis_keeps_them() {
    let on = |kept| MachineFacts { symbols: Some(("redis at r:1".to_owned(), Ok(kept))), ..sound() };
    assert_eq!(render(&on(RedisDurability::Everything)), "");
    let lost = [
        RedisDurability::Behind("everysec".to_owned()),
        RedisDurability::Behind("no".to_owned()),
        RedisDurability::Snapshots,
        RedisDurability::Nothing,
        RedisDurability::Evicts("allkeys-lru".to_owned()),
    ];
    let all: Vec<String> = lost.map(|kept| render(&on(kept)).lines().next().unwrap_or_default().to_owned()).to_vec();
    expect![[r#"
        Weak symbols: are in redis at r:1, which may lose the changes of the last second: appendfsync is everysec
        Weak symbols: are in redis at r:1, which may lose the changes of the last half minute or more: appendfsync is no
        Weak symbols: are in redis at r:1, which may lose all changes since its last snapshot: appendonly is no
        Weak symbols: are in redis at r:1, which loses every symbol when it ends: it has neither a log nor snapshots
        Weak symbols: are in redis at r:1, which drops symbols when it is full: maxmemory-policy is allkeys-lru"#]]
    .assert_eq(&all.join("\n"));
}

#[test]
fn whatever_is_wrong_has_a_fix() {
    let broken = MachineFacts { device: Device::Missing, walls: Err(String::new()), ..sound() };
    for finding in findings(&broken) {
        assert_eq!(finding.fix.is_some(), finding.health != Health::Ok, "{}", finding.what);
    }
}

#[test]
fn limits_without_control_groups_are_told_once() {
    let wall = |name: &str, how: &str| (name.to_owned(), true, how.to_owned());
    let told = |walls: Vec<(String, bool, String)>, writable: bool| {
        let controllers = vec!["memory".to_owned(), "pids".to_owned()];
        let facts =
            MachineFacts { walls: Ok(walls), cgroups: Cgroups::Found { version: 2, controllers, writable }, ..sound() };
        let all = findings(&facts);
        let said: Vec<String> = all
            .iter()
            .filter(|it| ["sandbox", "cgroups"].contains(&it.what))
            .map(|it| format!("{:?} {}: {}\n", it.health, it.what, it.said))
            .collect();
        said.concat()
    };
    let without = vec![
        wall("pids", "pid namespace"),
        wall("processes", "rlimit of the user"),
        wall("memory", "rlimit of each process"),
        wall("cpu", "rlimit of each process"),
        wall("agent_limits", "number of sandboxes at once"),
    ];
    let shared = vec![("memory".to_owned(), false, "rlimit of each process; shared memory is not counted".to_owned())];
    assert!(
        told(shared, false)
            .starts_with("Weak sandbox: all isolation mechanisms work: ; limits without control groups: ")
    );
    expect![[r#"
        Ok sandbox: all isolation mechanisms work: pids; limits without control groups: processes (rlimit of the user), memory (rlimit of each process), cpu (rlimit of each process), agent_limits (number of sandboxes at once)
        Weak cgroups: version 2, but not writable: the limits of each single process hold instead, and an agent runs few programs at once
    "#]]
    .assert_eq(&told(without.clone(), false));
    // The sandbox could not use what looks writable, and could use what looks read-only: a part of it is delegated.
    assert!(told(without, true).contains("Weak cgroups: version 2, but a sandbox cannot use them: "));
    let with = vec![
        wall("processes", "control group, version 2"),
        wall("memory", "control group, version 2"),
        wall("cpu", "control group, version 2, and rlimit of each process"),
        wall("agent_limits", "control groups of the agent"),
    ];
    expect![[r#"
        Ok sandbox: all isolation mechanisms work: processes, memory, cpu, agent_limits
        Ok cgroups: version 2: memory, pids
    "#]]
    .assert_eq(&told(with, false));
}
