//! The whole suite once more on a host without rights: this program again, as a user that is made for it and removed.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::inotify;

/// Tests that make their own plain user, and those about control groups, which a plain user is not given.
const LEFT_OUT: [&str; 4] =
    ["plain_user::", "yardstick::", "together::", "lives::all_mechanisms_are_active_on_a_machine_that_has_them"];

/// A user of the machine, without a home and without a password. Removed with its holder.
struct MadeUser {
    name: String,
    id: u32,
}

impl MadeUser {
    fn make() -> MadeUser {
        let name = format!("acheron-t{}", std::process::id());
        let made = Command::new("useradd")
            .args([
                "--system",
                "--user-group",
                "--no-create-home",
                "--home-dir",
                "/nonexistent",
                "--shell",
                "/usr/sbin/nologin",
            ])
            .arg(&name)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .output()
            .expect("useradd");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let id = nix::unistd::User::from_name(&name).unwrap().expect("the user was made").uid.as_raw();
        MadeUser { name, id }
    }

    fn group(&self) -> u32 {
        nix::unistd::User::from_name(&self.name).unwrap().expect("the user is there").gid.as_raw()
    }
}

impl Drop for MadeUser {
    fn drop(&mut self) {
        let removed = Command::new("userdel").arg(&self.name).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output();
        assert!(std::thread::panicking() || removed.is_ok_and(|it| it.status.success()), "{} is left", self.name);
    }
}

/// This program once more, as a user without rights, with these arguments.
fn again(user: u32, group: u32, arguments: &[&str], variables: &[(&str, &str)]) -> (bool, String) {
    // On a disk: some of the tests count what reaches one.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(arguments).env_clear().env("TMPDIR", place.path()).env("PATH", "/usr/bin:/bin").current_dir("/");
    let output = again.envs(variables.iter().copied()).uid(user).gid(group).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), said)
}

#[test]
fn the_suite_holds_for_a_user_without_rights() {
    if !nix::unistd::geteuid().is_root() {
        return; // then all of it was run so
    }
    let user = MadeUser::make();
    let mut arguments = vec!["--test-threads", "2"];
    arguments.extend(LEFT_OUT.iter().flat_map(|name| ["--skip", *name]));
    let (passed, said) = again(user.id, user.group(), &arguments, &[]);
    assert!(passed, "{said}");
    let passed = said.lines().find_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok());
    assert!(passed.is_some_and(|passed: usize| passed > 60), "{said}");
}

#[test]
fn covers_are_renewed_for_a_user_that_may_watch_nothing_more() {
    if !nix::unistd::geteuid().is_root() {
        return; // it would take the watches of all that this user runs
    }
    let nobody_else = 0x4000_0000 + std::process::id();
    let test = "reserved_names::a_hidden_path_that_appears_while_a_program_runs_is_hidden";
    let (passed, said) = again(nobody_else, nobody_else, &["--exact", test], &[(TAKE_ALL_WATCHES, "1")]);
    assert!(passed && said.contains("1 passed"), "{said}");
}

const TAKE_ALL_WATCHES: &str = "TAKE_ALL_WATCHES";

/// All inotify instances that this user may have, if the test was started for that.
pub fn watches_taken() -> Vec<OwnedFd> {
    let taken = || inotify::init(inotify::CreateFlags::CLOEXEC).ok();
    std::env::var_os(TAKE_ALL_WATCHES).map_or_else(Vec::new, |_| std::iter::from_fn(taken).collect())
}
