//! The first minute of a stranger: `scripts/quickstart`, as root and as a user, twice, interrupted, in odd places.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::common::{GUARD, until};

/// A copy of the scripts in a place with a space in its name, which is also the home of whoever runs them.
struct Desk {
    dir: TempDir,
}

impl Desk {
    fn new() -> Desk {
        let desk = Desk { dir: TempDir::new().unwrap() };
        std::fs::set_permissions(desk.dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir_all(desk.home().join("scripts")).unwrap();
        for name in ["quickstart", "lib.sh"] {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name);
            std::fs::copy(from, desk.home().join("scripts").join(name)).unwrap();
        }
        // Any user may be at home there.
        std::fs::create_dir(desk.user()).unwrap();
        std::fs::set_permissions(desk.user(), PermissionsExt::from_mode(0o777)).unwrap();
        std::fs::write(desk.home().join("main.rs"), "fn main() {}\n").unwrap();
        desk
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("my house")
    }

    /// The home directory of the user, which is no project.
    fn user(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    fn root(&self) -> PathBuf {
        self.home().join("ns")
    }

    /// A program at home with few variables, killed when it takes too long.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--foreground", "--kill-after=5", &(2 * GUARD.as_secs()).to_string()]).args(words);
        command.current_dir(self.home()).env_clear().env("HOME", self.user()).env("LC_ALL", "C");
        command.env("PATH", std::env::var("PATH").unwrap()).stdin(Stdio::null());
        command
    }

    /// The tour, with the program that is built already.
    fn tour(&self) -> Command {
        let mut command = self.command(&["scripts/quickstart"]);
        command.env("QUICKSTART_BIN", env!("CARGO_BIN_EXE_acheron"));
        command
    }

    fn mounted(&self) -> bool {
        let mounts = acheron_base::mountinfo::read().unwrap();
        mounts.iter().any(|mount| mount.point == self.root())
    }

    /// Who was started from here and is still there.
    fn left(&self) -> Vec<String> {
        let home = format!("HOME={}", self.user().display());
        let all = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        let ours = all.filter(|path| {
            let around = std::fs::read(path.join("environ")).unwrap_or_default();
            around.split(|byte| *byte == 0).any(|one| one == home.as_bytes())
        });
        ours.map(|path| std::fs::read_to_string(path.join("cmdline")).unwrap_or_default()).collect()
    }

    #[track_caller]
    fn is_clean(&self) {
        assert!(!self.mounted(), "it is still mounted");
        until("nobody is left", || self.left().is_empty());
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if self.mounted() {
            _ = self.command(&[env!("CARGO_BIN_EXE_acheron"), "unmount", "ns"]).output();
        }
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The commands that are named at the end of the tour.
fn to_try(said: &str) -> Vec<String> {
    let list = said.split("Three things to try:\n").nth(1).unwrap_or_else(|| panic!("no end: {said}"));
    let list = list.split("\n\n").next().unwrap();
    list.lines().filter(|line| !line.starts_with("   ")).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn the_tour_works_twice_in_a_row_in_a_path_with_spaces_and_without_a_terminal() {
    let desk = Desk::new();
    for beginning in ["Mounting on ", "A namespace is already mounted on "] {
        let output = desk.tour().output().unwrap();
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        assert!(said.trim_start().starts_with(beginning), "{said}");
        for real in ["/projects/here/fs/main.rs", r#""payload":"hello""#, "a script, not a language model"] {
            assert!(said.contains(real), "{real}: {said}");
        }
        // No command is named that is not on the PATH.
        assert!(!said.contains("`acheron "), "{said}");
        assert!(!said.contains('\x1b'), "colours without a terminal: {said}");
        let [read, follow, talk] = &to_try(&said)[..] else { panic!("not three: {said}") };
        for (command, shows) in [
            (format!("{read} | head -n 1"), "# For an agent that finds itself here"),
            (follow.replace("tail -f", "tail -n 1"), r#""seq":"#),
            (format!("{talk} -m 'Who are you?'"), "script"),
        ] {
            let output = desk.command(&["bash", "-c", &command]).output().unwrap();
            assert!(String::from_utf8_lossy(&output.stdout).contains(shows), "{command}: {output:?}");
        }
    }
    let stop = desk.tour().arg("--help").output().unwrap();
    assert!(said(&stop).starts_with("Builds Acheron"), "{stop:?}");
    desk.command(&[env!("CARGO_BIN_EXE_acheron"), "unmount", "ns"]).output().unwrap();
    desk.is_clean();
}

#[test]
fn ctrl_c_leaves_nothing_behind_at_any_moment() {
    for moment in ["Building", "Mounting on", "The tree", "Waiting is a read", "An agent"] {
        let desk = Desk::new();
        let mut command = desk.tour();
        if moment == "Building" {
            // A compiler that takes its time.
            let bin = desk.home().join("bin");
            std::fs::create_dir(&bin).unwrap();
            std::fs::write(bin.join("cargo"), "#!/bin/sh\necho Compiling\nexec sleep 600\n").unwrap();
            std::fs::set_permissions(bin.join("cargo"), PermissionsExt::from_mode(0o755)).unwrap();
            command.env_remove("QUICKSTART_BIN");
            command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
        }
        // A terminal sends the signal to the whole group.
        let mut tour = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(tour.stdout.take().unwrap()).lines().map(|line| line.unwrap());
        assert!(lines.any(|line| line.starts_with(moment)), "{moment}: it did not come so far");
        killpg(Pid::from_raw(i32::try_from(tour.id()).unwrap()), Signal::SIGINT).unwrap();
        lines.for_each(drop);
        assert_eq!(tour.wait().unwrap().code(), Some(130), "{moment}");
        desk.is_clean();
        assert!(!desk.root().exists(), "{moment}: the directory was not there before");
    }
}

#[test]
fn a_mountpoint_in_use_is_left_as_it_is() {
    let desk = Desk::new();
    std::fs::create_dir(desk.root()).unwrap();
    std::fs::write(desk.root().join("mine"), "").unwrap();
    let output = desk.tour().output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(said.contains("ns is not empty, and a mount would hide its files: choose an empty directory"), "{said}");
    assert!(desk.root().join("mine").exists());
    desk.is_clean();
}

/// Runs the tour as `nobody`, in a view of the machine in which `/dev/fuse` has this mode.
fn as_a_user(desk: &Desk, mode: &str, path: &str) -> Output {
    std::fs::write(desk.home().join("acheron"), "").unwrap();
    std::fs::create_dir_all(desk.home().join("dev")).unwrap();
    let script = r#"set -e
        mount -t tmpfs -o mode=755 none dev
        mknod dev/fuse c 10 229; chmod "$MODE" dev/fuse; mount --bind dev/fuse /dev/fuse
        mount --bind "$PROGRAM" acheron
        chown nobody .
        run() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
        run "$(command -v env)" PATH="$TOUR_PATH" "$(command -v bash)" scripts/quickstart && run ./acheron unmount ns"#;
    let mut command = desk.command(&["unshare", "--mount", "bash", "-c", script]);
    command.env("MODE", mode).env("PROGRAM", env!("CARGO_BIN_EXE_acheron")).env("TOUR_PATH", path);
    command.env("QUICKSTART_BIN", desk.home().join("acheron")).output().unwrap()
}

#[test]
fn an_ordinary_user_gets_the_tour_or_hears_what_is_missing() {
    let everything = std::env::var("PATH").unwrap();
    let desk = Desk::new();
    let shut = as_a_user(&desk, "600", &everything);
    let hint = "error: /dev/fuse cannot be opened by nobody\nhint: as root: chmod 666 /dev/fuse\n";
    assert_eq!((shut.status.code(), said(&shut).as_str()), (Some(1), hint));

    // A machine that has next to nothing, and no sudo.
    let little = desk.dir.path().join("little");
    std::fs::create_dir(&little).unwrap();
    for name in ["bash", "realpath", "dirname", "id"] {
        let found = std::env::split_paths(&everything).map(|dir| dir.join(name)).find(|path| path.exists()).unwrap();
        symlink(found, little.join(name)).unwrap();
    }
    let bare = as_a_user(&desk, "666", little.to_str().unwrap());
    let hint = "error: these packages are missing and only root can install them: fuse3 jq\n\
                hint: as root: apt-get install fuse3 jq\n";
    assert_eq!((bare.status.code(), said(&bare).as_str()), (Some(1), hint));

    let output = as_a_user(&desk, "666", &everything);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(to_try(&said).len(), 3, "{said}");
    desk.is_clean();
}
