//! Ten thousand parked readers: what they cost, and what they cost others.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::Value;

use super::Run;
use super::bare;
use super::house::{pread, status, until, write_once};
use super::idle::{self, threads};
use super::method::{Compared, compare};
use super::table::{Aim, Figure};
use super::workshop::Workshop;

const READERS: usize = 10_000;

const KERNEL: &str = "the kernel's, as the two bare file systems show";

pub fn rows(run: &Run) -> Vec<Figure> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("more files");
    let (full, empty) = (Workshop::start(), Workshop::start());
    let job = hang(&full);
    hang(&empty);

    // Once beforehand: the memory of tables that have grown belongs to nobody.
    let few = park(&full.path(&job), READERS / 100);
    settle(full.pid(), few.len());
    let (before, lines) = (status(full.pid(), "RssAnon"), threads(full.pid()));
    let readers = park(&full.path(&job), READERS - few.len());
    settle(full.pid(), READERS);
    let bytes = (status(full.pid(), "RssAnon") - before) as f64 * 1024.0 / readers.len() as f64;
    let more = threads(full.pid()) - lines;
    let quiet = idle::watched(full.pid(), Duration::from_secs(if run.quick { 1 } else { 5 }));

    let progress = |shop: &Workshop| File::open(shop.path("jobs/last/progress.json")).expect("a file");
    let (here, there) = (progress(&full), progress(&empty));
    let read = compare(run.pace(200, 100), |_| pread(&here), |_| pread(&there));
    let (here, there) = (full.path("trivial"), empty.path("trivial"));
    let list = compare(run.pace(200, 20), |_| listed(&here), |_| listed(&there));

    let began = Instant::now();
    write_once(&full.path("jobs/last/control/cancel"), b"x");
    few.into_iter().chain(readers).for_each(|reader| reader.join().expect("a reader"));
    let woken = began.elapsed().as_secs_f64();
    vec![
        Figure::ratio("small read with 10,000 parked readers ÷ with none", read, Aim::AtMost(1.1)).because(KERNEL),
        Figure::ratio("the same on two bare file systems", ground(run), Aim::Told),
        Figure::ratio("ls with 10,000 parked readers ÷ with none", list, Aim::AtMost(1.1)).because(KERNEL),
        Figure::number("memory of a parked reader", bytes.round(), "bytes", Aim::AtMost(1024.0)),
        Figure::number("threads that they cost", more as f64, "", Aim::AtMost(0.0)),
        Figure::number("processor time of the daemon while they wait", quiet.ticks as f64, "ticks", Aim::AtMost(0.0))
            .detail(format!("{} context switches in {:?}", quiet.switches, quiet.over)),
        Figure::number("all wake at once, each", woken / READERS as f64 * 1e6, "µs", Aim::Told)
            .detail(format!("{woken:.2} s in all")),
    ]
}

fn listed(dir: &Path) {
    assert!(std::fs::read_dir(dir).expect("a directory").count() > 5);
}

/// A job that does not end; returns where it stands.
fn hang(shop: &Workshop) -> String {
    write_once(&shop.path("trivial/control/hang.json"), b"{}");
    let status = std::fs::read(shop.path("trivial/status.json")).expect("a status");
    let status: Value = serde_json::from_slice(&status).expect("JSON");
    format!("jobs/{}/status.json", status["job_id"].as_str().expect("a job"))
}

/// Readers of a file that waits; they end when it has said something, or when its mount is gone.
fn park(path: &Path, count: usize) -> Vec<JoinHandle<()>> {
    let reader = || {
        let path = path.to_owned();
        let read = move || {
            let _ = File::open(&path).and_then(|file| file.read_at(&mut [0; 1024], 0));
        };
        std::thread::Builder::new().stack_size(32 << 10).spawn(read).expect("a thread")
    };
    (0..count).map(|_| reader()).collect()
}

/// Waits until so many are parked: until all our threads are there, and nothing moves any more.
fn settle(pid: u32, count: usize) {
    until("parked readers", || threads(std::process::id()) > count);
    until("quiet", || idle::watched(pid, Duration::from_millis(300)).switches == 0);
}

/// The same read on two bare file systems, of which one has as many parked readers: what that costs in the kernel.
fn ground(run: &Run) -> Compared {
    let [full, empty] = [(); 2].map(|()| bare::Mounted::start(300));
    let readers = park(&full.waits(), READERS);
    settle(full.pid(), READERS);
    let open = |bare: &bare::Mounted| File::open(bare.file()).expect("a file");
    let (here, there) = (open(&full), open(&empty));
    let compared = compare(run.pace(200, 100), |_| pread(&here), |_| pread(&there));
    drop((here, there));
    drop(full);
    readers.into_iter().for_each(|reader| reader.join().expect("a reader"));
    compared
}
