//! What a sandbox shows of the system, and what it does not although it lies there.

use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

use crate::{block, check, run, shell};
use acheron_sandbox::Plan;

/// A directory with a file `secret` in a directory `a`, and the same in `b`.
fn directory(above: &str) -> Option<tempfile::TempDir> {
    // Only root may write where the system lies.
    let dir = tempfile::tempdir_in(above).ok()?;
    for name in ["a", "b", "empty"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    for name in ["a", "b"] {
        std::fs::write(dir.path().join(name).join("secret"), "secret\n").unwrap();
    }
    Some(dir)
}

fn within(dir: &Path, script: &str) -> Plan {
    let mut plan = shell(script);
    plan.cwd = dir.into();
    plan
}

#[test]
fn what_is_hidden_in_the_system_is_empty_and_the_rest_is_there() {
    let Some(dir) = directory("/usr/src") else { return };
    let mut plan = within(dir.path(), "ls -A a b; cat b/secret; (echo x > a/x) 2>/dev/null || echo fixed");
    check(&plan, "a:\nsecret\n\nb:\nsecret\nsecret\nfixed");
    let hidden = |name: &str| dir.path().canonicalize().unwrap().join(name);
    plan.hidden = vec![hidden("a"), hidden("b/secret"), hidden("not/there")];
    check(&plan, "a:\n\nb:\nsecret\nfixed");
}

#[test]
fn opt_and_others_are_shown_only_if_they_are_named() {
    check(&shell("ls -d /opt /var 2>/dev/null || echo absent"), "absent");
    let dir = directory("/var/tmp").unwrap();
    let said = format!(
        "cat {0}/a/secret; (echo x > {0}/a/secret) 2>/dev/null || echo fixed; ls -A /var/tmp | wc -l",
        dir.path().display()
    );
    let mut plan = shell(&said);
    plan.system = vec![dir.path().canonicalize().unwrap(), "/not/there".into()];
    check(&plan, "secret\nfixed\n1");
    plan.hidden = vec![plan.system[0].join("a")];
    plan.argv = shell(&format!("ls -A {0} {0}/a | grep -c secret", dir.path().display())).argv;
    check(&plan, "0");
    plan.system = vec!["/etc".into()];
    let refused = block(run(&plan)).unwrap_err();
    assert!(refused.message.starts_with("`/etc` cannot be shown"), "{refused}");
}

/// Takes mounts away before the directories that they stand on are removed with all that is in them.
struct Mounted(Vec<PathBuf>);

impl Drop for Mounted {
    fn drop(&mut self) {
        for point in &self.0 {
            _ = nix::mount::umount2(point, nix::mount::MntFlags::MNT_DETACH);
        }
    }
}

#[test]
fn what_is_mounted_in_the_system_shows_only_if_it_belongs_there() {
    let (Some(dir), Some(other)) = (directory("/usr/src"), directory("/var/tmp")) else { return };
    if !nix::unistd::getuid().is_root() {
        return;
    }
    // Mounts of this thread alone, and of what it starts.
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
    let nothing = None::<&str>;
    mount(nothing, "/", nothing, MsFlags::MS_PRIVATE | MsFlags::MS_REC, nothing).unwrap();
    let at = |name: &str| {
        let path = dir.path().canonicalize().unwrap().join("empty").join(name);
        std::fs::create_dir(&path).unwrap();
        path
    };
    let (memory, home, own) = (at("memory"), at("home"), at("own"));
    let _mounted = Mounted(vec![memory.clone(), home.clone(), own.clone()]);
    mount(Some("tmpfs"), &memory, Some("tmpfs"), MsFlags::empty(), nothing).unwrap();
    std::fs::write(memory.join("secret"), "secret\n").unwrap();
    let bind = |from: &Path, to: &Path| mount(Some(from), to, nothing, MsFlags::MS_BIND, nothing).unwrap();
    bind(other.path(), &home);
    bind(&dir.path().join("a"), &own);
    let script = "ls -A memory home own; cat ../a/secret";
    let mut plan = within(&dir.path().join("empty"), script);
    check(&plan, "home:\n\nmemory:\n\nown:\nsecret\nsecret");
    plan.system = vec![memory, home];
    check(&plan, "home:\na\nb\nempty\n\nmemory:\nsecret\n\nown:\nsecret\nsecret");
}

#[test]
fn a_program_that_is_not_shown_is_told_how_to_be() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let program = dir.path().join("program");
    std::os::unix::fs::symlink("/bin/true", &program).unwrap();
    let mut plan = Plan::new("charon", [program.to_str().unwrap()]);
    let refused = block(run(&plan)).unwrap_err();
    assert!(refused.message.ends_with("what the mountspec names in sandbox.system"), "{refused}");
    plan.system = vec![dir.path().into()];
    check(&plan, "");
}
