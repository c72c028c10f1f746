//! The whole suite once more on a host without rights: this program again, as a user that is made for it and removed.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

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

#[test]
fn the_suite_holds_for_a_user_without_rights() {
    if !nix::unistd::geteuid().is_root() {
        return; // then all of it was run so
    }
    // On a disk: some of the tests count what reaches one.
    let (user, place) = (MadeUser::make(), tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--test-threads", "2"]).args(LEFT_OUT.iter().flat_map(|name| ["--skip", name]));
    again.env_clear().env("TMPDIR", place.path()).env("PATH", "/usr/bin:/bin").current_dir("/");
    let output = again.uid(user.id).gid(user.group()).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    let passed = said.lines().find_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok());
    assert!(passed.is_some_and(|passed: usize| passed > 60), "{said}");
}
