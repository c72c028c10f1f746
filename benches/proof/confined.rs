//! One confined `/bin/true`, against bubblewrap: with the same walls, and with no more than namespaces and a small root.

mod same_walls;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Run;
use super::house::{TestHost, plain};
use super::method::compare_timed;
use super::table::{Aim, Figure};

pub fn rows(run: &Run) -> Vec<Figure> {
    install_bubblewrap();
    let house = TestHost::start(&plain());
    let pace = run.pace(20, 5);
    let walls = same_walls::SameWalls::of(&house);
    let same = compare_timed(pace, || ours(&house), || walls.bubblewrap());
    let less = compare_timed(pace, || ours(&house), bubblewrap);
    let plain = compare_timed(pace, || ours(&house), || timed(&mut Command::new("/bin/true")));
    vec![
        Figure::ratio("a confined /bin/true (acheron exec) ÷ bubblewrap with the same walls", same, Aim::AtMost(1.2))
            .because("ours has Landlock and a system call filter besides, and asks the host for the plan"),
        Figure::ratio("the same ÷ bubblewrap with namespaces and a small root alone", less, Aim::Told),
        Figure::ratio("the same ÷ a plain /bin/true", plain, Aim::Told),
    ]
}

fn ours(house: &TestHost) -> Duration {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acheron"));
    timed(command.args(["exec", "--root"]).arg(house.path("")).args(["--agent", "charon", "--", "/bin/true"]))
}

/// Everything that it can take away, a small root, and no more of the system than ours shows.
fn bubblewrap() -> Duration {
    let mut words = "--unshare-all --die-with-parent --new-session --cap-drop ALL --ro-bind /usr /usr --proc /proc --dev /dev \
                     --tmpfs /tmp --tmpfs /home --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64"
        .split_whitespace()
        .collect::<Vec<_>>();
    words.extend(["--chdir", "/home", "/bin/true"]);
    timed(Command::new("bwrap").args(words))
}

fn timed(command: &mut Command) -> Duration {
    let began = Instant::now();
    let done = command.stdin(Stdio::null()).stdout(Stdio::piped()).status();
    let took = began.elapsed();
    assert!(done.is_ok_and(|status| status.success()), "{command:?}");
    took
}

fn install_bubblewrap() {
    if Path::new("/usr/bin/bwrap").exists() {
        return;
    }
    let installed = Command::new("apt-get").args(["install", "-y", "-qq", "bubblewrap"]).stdout(Stdio::null()).status();
    assert!(
        installed.is_ok_and(|status| status.success()),
        "bubblewrap is needed to compare with: apt-get install bubblewrap"
    );
}
