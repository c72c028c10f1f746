//! What a view costs against the directory itself: walks, searches, builds; and the way back to a snapshot of it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use acheron_views::checkpoint::{self, CheckpointLimits};
use acheron_views::overlay::{self, OverlayDirs};
use acheron_views::walk::{ComparedFiles, Layers, changes};
use acheron_views::{MarkNames, Root};

use super::Run;
use super::method::compare_timed;
use super::table::{Aim, Figure};

const LIMITS: CheckpointLimits = CheckpointLimits { files: 50_000, bytes: 512 << 20 };

/// A view on a directory of its own.
struct BenchView {
    place: tempfile::TempDir,
    dirs: OverlayDirs,
}

impl BenchView {
    fn of(make: impl FnOnce(&Path)) -> BenchView {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("base")).expect("a directory");
        make(&at("base"));
        let dirs = OverlayDirs { base: at("base"), upper: at("upper"), work: at("work"), at: at("fs") };
        overlay::make_dirs(&dirs).expect("directories");
        overlay::mount(&dirs, MarkNames::Trusted).expect("a mount");
        BenchView { place, dirs }
    }
}

impl Drop for BenchView {
    fn drop(&mut self) {
        _ = overlay::take_away(&self.dirs.at);
    }
}

fn timed(dir: &Path, command: &str) -> Duration {
    let began = Instant::now();
    let mut shell = Command::new("sh");
    let done = shell.args(["-c", command]).current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(done.is_ok(), "{command}");
    began.elapsed()
}

/// Source files in a repository: `files` of them, of about `bytes`.
fn sources(base: &Path, files: usize, bytes: usize) {
    for number in 0..files {
        let dir = base.join(format!("d{}", number / 50));
        fs::create_dir_all(&dir).expect("a directory");
        let text = format!("int f{number}(int x) {{ return x + {number}; }}\n").repeat(bytes / 48 + 1);
        fs::write(dir.join(format!("f{number}.txt")), text).expect("a file");
    }
    let git = "git init -q . && git add -A && git -c user.email=a@b -c user.name=n commit -qm first";
    assert!(Command::new("sh").args(["-c", git]).current_dir(base).status().is_ok_and(|done| done.success()));
}

pub fn rows(run: &Run) -> Vec<Figure> {
    let small = BenchView::of(|base| sources(base, if run.quick { 2000 } else { 20_000 }, 400));
    let large = BenchView::of(|base| sources(base, 770, 16_000));
    let build = BenchView::of(|base| {
        for number in 0..24 {
            fs::write(
                base.join(format!("m{number}.c")),
                format!("#include <stdio.h>\n#include <stdlib.h>\nint m{number}(void) {{ return {number}; }}\n"),
            )
            .expect("a file");
        }
        let rule = "OBJECTS = $(patsubst %.c,%.o,$(wildcard *.c))\nall: $(OBJECTS)\nclean:\n\trm -f *.o\n";
        fs::write(base.join("Makefile"), rule).expect("a file");
    });
    let compare = |view: &BenchView, command: &str, chunks: usize| {
        timed(&view.dirs.at, command);
        timed(&view.dirs.base, command);
        compare_timed(run.pace(chunks, 3), || timed(&view.dirs.at, command), || timed(&view.dirs.base, command))
    };
    let status = compare(&small, "git --no-optional-locks status --short", 15);
    let search = compare(&large, "grep -rn 'x + 7' --include='*.txt' . | tail -1", 15);
    let built = compare(&build, "make -s clean all", 7);
    let [back, listed] = rewind(run);
    vec![
        Figure::ratio("git status in a view ÷ in the directory", status, Aim::AtMost(1.0 / 0.75)),
        Figure::ratio("a search in the sources in a view ÷ in the directory", search, Aim::AtMost(1.0 / 0.9)),
        Figure::ratio("make in a view ÷ in the directory", built, Aim::AtMost(1.0 / 0.95)),
        Figure::number("the way back to a snapshot, 50,000 files and 100 changed", back, "ms", Aim::AtMost(300.0))
            .detail("copy, unmount, mount; without the programs that are ended"),
        Figure::number("the list of 100 changes of a view of 50,000 files", listed, "ms", Aim::Told),
    ]
}

/// Milliseconds for the way back, and for the list of changes.
fn rewind(run: &Run) -> [f64; 2] {
    let files = if run.quick { 5000 } else { 50_000 };
    let view = BenchView::of(|base| {
        for number in 0..files {
            let dir = base.join(format!("d{}", number / 100));
            fs::create_dir_all(&dir).expect("a directory");
            fs::write(dir.join(format!("f{number}")), format!("{number}\n").repeat(100)).expect("a file");
        }
    });
    for number in 0..100 {
        let path = format!("d{0}/f{1}", number * files / 100 / 100, number * files / 100);
        fs::write(view.dirs.at.join(path), format!("changed {number}\n").repeat(100)).expect("a change");
    }
    let upper = Root::open(&view.dirs.upper).expect("the upper");
    let kept = view.place.path().join("kept");
    checkpoint::copy(&upper, &kept, None, LIMITS, &|_| false).expect("a snapshot");
    let base = Root::open(&view.dirs.base).expect("the base");
    let began = Instant::now();
    let layers = Layers { upper: &upper, base: &base, marks: MarkNames::Trusted };
    let found = changes(&layers, &mut ComparedFiles::default()).expect("changes");
    let listed = began.elapsed();
    assert_eq!(found.changes.len(), 100);
    let began = Instant::now();
    let at = |name: &str| view.place.path().join(name);
    checkpoint::copy(&Root::open(&kept).expect("the snapshot"), &at("upper2"), None, LIMITS, &|_| false)
        .expect("a copy");
    overlay::take_away(&view.dirs.at).expect("an unmount");
    let dirs = OverlayDirs { upper: at("upper2"), work: at("work2"), ..view.dirs.clone() };
    overlay::make_dirs(&dirs).expect("directories");
    overlay::mount(&dirs, MarkNames::Trusted).expect("a mount");
    let back = began.elapsed();
    [back.as_secs_f64() * 1000.0, listed.as_secs_f64() * 1000.0]
}
