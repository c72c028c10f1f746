//! A directory of the machine, bound and mirrored, against the directory itself.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::{Value, json};

use super::Run;
use super::house::{Scratch, TestHost};
use super::method::{Compared, Pace, compare};
use super::table::{Aim, Figure};

const PIECE: usize = 1 << 20;
const PAGE: usize = 4096;

/// Why a mirror is slow.
const ASKED: &str =
    "counted: the kernel asks for the facts of the file before each read, so that nothing old is ever read";
const THROUGH: &str = "counted: two round trips a write, which is in the file itself before it is acknowledged";

pub fn rows(run: &Run) -> Vec<Figure> {
    let megabytes = if run.quick { 16 } else { 256 };
    let mut figures = Vec::new();
    for (word, mirror, least) in [("bound", false, 0.95), ("mirrored", true, 0.85)] {
        let scratch = Scratch::new();
        let native = scratch.make("project").join("file");
        std::fs::write(&native, vec![7; megabytes * PIECE]).expect("a file");
        let spec = spec(&scratch.path().join("project"), mirror);
        let house = TestHost::in_scratch(scratch, &spec);
        let ours = house.path("projects/p/fs/file");
        figures.extend(Way::ALL.map(|way| {
            let compared = way.compared(run, &ours, &native, megabytes);
            // Speeds, not times: more is better.
            let mut figure = Figure::number(
                format!("{word}: {} ÷ native", way.name()),
                1.0 / compared.ratio,
                "x",
                Aim::AtLeast(least),
            );
            figure.noise = Some(1.0 / compared.noise);
            figure.detail(way.speeds(compared, megabytes)).because(if way.reads() { ASKED } else { THROUGH })
        }));
    }
    figures
}

fn spec(project: &Path, mirror: bool) -> Value {
    let mut bind = json!({ "path": project, "read_only": false });
    if mirror {
        bind["mirror"] = true.into();
    }
    json!({
        "layout": "acheron-1",
        "agents": { "charon": { "projects": ["p"] } },
        "projects": { "p": { "binds": { "/": bind } } },
    })
}

#[derive(Clone, Copy)]
enum Way {
    ReadAll,
    WriteAll,
    ReadAnywhere,
    WriteAnywhere,
}

impl Way {
    const ALL: [Way; 4] = [Way::ReadAll, Way::WriteAll, Way::ReadAnywhere, Way::WriteAnywhere];

    fn name(self) -> &'static str {
        match self {
            Way::ReadAll => "sequential read",
            Way::WriteAll => "sequential write",
            Way::ReadAnywhere => "4k random read",
            Way::WriteAnywhere => "4k random write",
        }
    }

    fn reads(self) -> bool {
        matches!(self, Way::ReadAll | Way::ReadAnywhere)
    }

    fn whole(self) -> bool {
        matches!(self, Way::ReadAll | Way::WriteAll)
    }

    fn compared(self, run: &Run, ours: &Path, native: &Path, megabytes: usize) -> Compared {
        let open = |path: &Path| File::options().read(true).write(true).open(path).expect("a file");
        let (ours, native) = (open(ours), open(native));
        let pace = match self.whole() {
            true => Pace { ops: 1, ..run.pace(24, 1) },
            false => run.pace(100, 200),
        };
        let (mut one, mut two) = (0, 0);
        compare(pace, |_| self.go(&ours, megabytes, &mut one), |_| self.go(&native, megabytes, &mut two))
    }

    fn go(self, file: &File, megabytes: usize, seed: &mut usize) {
        if self.whole() {
            let mut piece = vec![7; PIECE];
            for number in 0..megabytes {
                let at = (number * PIECE) as u64;
                match self {
                    Way::ReadAll => file.read_exact_at(&mut piece, at).expect("a read"),
                    _ => file.write_all_at(&piece, at).expect("a write"),
                }
            }
            return;
        }
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = ((*seed >> 33) % (megabytes * PIECE / PAGE) * PAGE) as u64;
        let mut page = [7; PAGE];
        match self {
            Way::ReadAnywhere => file.read_exact_at(&mut page, at).expect("a read"),
            _ => file.write_all_at(&page, at).expect("a write"),
        }
    }

    fn speeds(self, compared: Compared, megabytes: usize) -> String {
        let speed = |seconds: f64| match self.whole() {
            true => format!("{:.2} GB/s", (megabytes * PIECE) as f64 / seconds / 1e9),
            false => format!("{:.0} k/s", 1e-3 / seconds),
        };
        format!("{} / {}", speed(compared.ours), speed(compared.base))
    }
}
