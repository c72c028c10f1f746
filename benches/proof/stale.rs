//! Whether anybody ever reads what is old: readers from the page cache, against a writer whose changes were
//! acknowledged.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Run;
use super::table::{Aim, Figure};
use super::workshop::Workshop;

/// What a change says: its number, and a length that differs from its neighbours'.
fn text(number: u64) -> String {
    format!("{number} {}!", ".".repeat((number * 7 % 40) as usize))
}

/// The number of the change that these are all the bytes of.
fn understood(bytes: &[u8]) -> Option<u64> {
    let said = std::str::from_utf8(bytes).ok()?;
    let number = said.split(' ').next()?.parse().ok()?;
    (said == text(number)).then_some(number)
}

pub fn rows(run: &Run) -> Vec<Figure> {
    let reads: u64 = if run.quick { 200_000 } else { 10_000_000 };
    let workshop = Workshop::start();
    let change = File::options().write(true).open(workshop.path("page.json")).expect("a control file");
    let (begun, told) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let say = |number: u64| {
        begun.store(number, Ordering::SeqCst);
        change.write_all_at(format!("{{\"say\":\"{}\"}}", text(number)).as_bytes(), 0).expect("a change");
        // The write has returned, so from here on nobody may see less.
        told.store(number, Ordering::SeqCst);
    };
    say(1);
    let over = Arc::new(AtomicBool::new(false));
    let reader = |kept: bool| {
        let (path, begun, told, over) = (workshop.path("page"), begun.clone(), told.clone(), over.clone());
        std::thread::spawn(move || {
            let mut file = File::open(&path).expect("the page");
            let (mut stale, mut torn) = (0_u64, 0_u64);
            for count in 0..reads / 2 {
                if !kept && count.is_multiple_of(64) {
                    file = File::open(&path).expect("the page");
                }
                let least = told.load(Ordering::SeqCst);
                let mut bytes = [0; 128];
                let length = file.read_at(&mut bytes, 0).expect("a read");
                let meanwhile = begun.load(Ordering::SeqCst) > least;
                match understood(&bytes[..length]) {
                    Some(seen) => stale += u64::from(seen < least),
                    None if meanwhile => torn += 1,
                    None => stale += 1,
                }
            }
            over.store(true, Ordering::SeqCst);
            (stale, torn)
        })
    };
    let readers = [reader(true), reader(false)];
    let mut changes = 1;
    while !over.load(Ordering::SeqCst) {
        changes += 1;
        say(changes);
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    let found = readers.map(|reader| reader.join().expect("a reader"));
    let (stale, torn) = found.into_iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    let about = format!("{changes} changes, each of another length");
    vec![
        Figure::words(
            format!("stale reads after an acknowledged change, of {reads}"),
            stale.to_string(),
            Aim::Exactly("0"),
        )
        .detail(about),
        Figure::words("reads that a change of length cut through while they ran", torn.to_string(), Aim::Told)
            .because("the kernel keeps length and bytes of a page apart; the next read is whole"),
    ]
}
