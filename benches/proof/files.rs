//! Small files: reading, asking about them, writing to them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::json;

use super::Run;
use super::bare;
use super::house::{Scratch, TestHost, ask, glance, plain, pread, read_once, write_once};
use super::method::compare;
use super::table::{Aim, Figure};
use super::workshop::Workshop;

const NAMES: usize = 100;

const GROUND: &str = "the next row has the cost of the bare file system on this machine";

pub fn rows(run: &Run) -> Vec<Figure> {
    let house = TestHost::start(&plain());
    let job = ask(&house.own("mounts/control/list.json"), &json!({}));
    let job = job["job_id"].as_str().expect("a job").to_owned();
    let live = house.own(&format!("jobs/{job}/progress.json"));
    let bare = bare::Mounted::start(read_once(&live, &mut [0; 4096]));

    let mut figures = reads(run, &house, &bare, &live);
    figures.extend(names(run, &house));
    figures.extend(writes(run, &house, &bare));
    figures
}

fn reads(run: &Run, house: &TestHost, bare: &bare::Mounted, live: &Path) -> Vec<Figure> {
    let (open, base) = (File::open(live).expect("live"), File::open(bare.file()).expect("bare"));
    let bytes = read_once(live, &mut [0; 4096]);
    let text = house.own("memory/README.md");
    let pace = run.pace(300, 150);
    let once = compare(pace, |_| pread(&open), |_| pread(&base));
    let whole = compare(pace, |_| glance(live), |_| pread(&base));
    let ground = compare(pace, |_| glance(&bare.file()), |_| pread(&base));
    let kept = compare(pace, |_| glance(&text), |_| pread(&base));
    let ground_kept = compare(pace, |_| glance(&bare.kept()), |_| pread(&base));
    vec![
        Figure::ratio(format!("pread of a live file of {bytes} bytes ÷ of a bare fuser file"), once, Aim::AtMost(1.15)),
        Figure::ratio("open+read+close of a live file ÷ one bare pread", whole, Aim::AtMost(2.8)).because(GROUND),
        Figure::ratio("the same on the bare file system", ground, Aim::Told),
        Figure::words(
            "its round trips",
            house.round_trips(1000, |_| glance(live)),
            Aim::Exactly("OPEN 1, READ 1, RELEASE 1"),
        ),
        Figure::ratio("open+read+close of an unchanged text file ÷ one bare pread", kept, Aim::AtMost(1.8))
            .because(GROUND),
        Figure::ratio("the same on the bare file system", ground_kept, Aim::Told),
        Figure::words("its round trips", house.round_trips(1000, |_| glance(&text)), Aim::Exactly("OPEN 1, RELEASE 1")),
    ]
}

fn names(run: &Run, house: &TestHost) -> Vec<Figure> {
    let scratch = Scratch::new();
    let native = scratch.make("agents/charon/memory/items");
    for number in 0..NAMES {
        let name = format!("item-{number:03}");
        let new = json!({ "kind": "note", "name": name, "content": "x" });
        assert_eq!(ask(&house.own("memory/control/create.json"), &new)["ok"], true);
        std::fs::create_dir(native.join(name)).expect("a directory");
    }
    let ours = house.own("memory/items");
    let known = ours.join("item-050");
    let stat = compare(run.pace(300, 200), |_| seen(&known), |_| seen(&native.join("item-050")));
    let list = compare(run.pace(100, 10), |_| listed(&ours), |_| listed(&native));
    vec![
        Figure::ratio("stat of a known path ÷ native", stat, Aim::AtMost(1.4)),
        Figure::words("its round trips", house.round_trips(1000, |_| seen(&known)), Aim::Exactly("none")),
        Figure::ratio(format!("ls -l of {NAMES} known entries ÷ native"), list, Aim::AtMost(2.0)),
        Figure::words(
            "its lookups",
            house.requests(|| (0..100).for_each(|_| listed(&ours))).get("lookup").unwrap_or(&0).to_string(),
            Aim::Exactly("0"),
        )
        .detail(house.round_trips(100, |_| listed(&ours))),
    ]
}

fn seen(path: &Path) {
    std::fs::symlink_metadata(path).expect("it is there");
}

/// What `ls -l` asks of a directory.
fn listed(dir: &Path) {
    let names = std::fs::read_dir(dir).expect("a directory");
    let found = names.map(|entry| seen(&entry.expect("an entry").path())).count();
    assert_eq!(found, NAMES);
}

/// A JSON command that is taken at once and begins no job.
fn writes(run: &Run, house: &TestHost, bare: &bare::Mounted) -> Vec<Figure> {
    let base = File::open(bare.file()).expect("bare");
    let workshop = Workshop::start();
    let ring = workshop.path("ring.json");
    let taken = compare(run.pace(300, 100), |_| write_once(&ring, b"{\"ring\":true}"), |_| pread(&base));
    let ground = compare(run.pace(300, 100), |_| write_once(&bare.file(), b"{\"ring\":true}"), |_| pread(&base));
    let wait = house.own("events/control/wait.json");
    let command = br#"{"paths":["/agents/charon/events/sources/user.json"]}"#;
    let trips = house.round_trips(1000, |_| {
        let file = File::options().read(true).write(true).truncate(true).open(&wait).expect("a control file");
        file.write_all_at(command, 0).expect("a command");
    });
    vec![
        Figure::ratio("control write (truncate+write+close) ÷ one bare pread", taken, Aim::AtMost(3.0)).because(GROUND),
        Figure::ratio("the same on the bare file system", ground, Aim::Told),
        Figure::words("its round trips", trips, Aim::Exactly("OPEN 1, WRITE 1, RELEASE 1")),
    ]
}
