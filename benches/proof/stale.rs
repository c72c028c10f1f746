//! Whether anybody ever reads what is old: readers from the page cache, against a writer whose changes were
//! acknowledged.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Run;
use super::table::{Aim, Figure};
use super::workshop::Workshop;

pub fn rows(run: &Run) -> Vec<Figure> {
    let reads: u64 = if run.quick { 200_000 } else { 10_000_000 };
    let workshop = Workshop::start();
    let change = File::options().write(true).open(workshop.path("page.json")).expect("a control file");
    let (told, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let reader = |kept: bool| {
        let (path, told, over) = (workshop.path("page"), told.clone(), over.clone());
        std::thread::spawn(move || {
            let mut file = File::open(&path).expect("the page");
            let (mut stale, mut count) = (0_u64, 0_u64);
            while count < reads / 2 {
                if !kept && count.is_multiple_of(64) {
                    file = File::open(&path).expect("the page");
                }
                let least = told.load(Ordering::SeqCst);
                let mut bytes = [0; 64];
                let length = file.read_at(&mut bytes, 0).expect("a read");
                let seen = std::str::from_utf8(&bytes[..length]).ok().and_then(|text| text.trim().parse::<u64>().ok());
                stale += u64::from(seen.is_none_or(|seen| seen < least));
                count += 1;
            }
            over.store(true, Ordering::SeqCst);
            stale
        })
    };
    let readers = [reader(true), reader(false)];
    let mut changes = 0;
    while !over.load(Ordering::SeqCst) {
        changes += 1;
        // Always as long: while a file grows, the kernel can show its new length before its new bytes.
        change.write_all_at(format!("{{\"say\":\"{changes:020}\"}}").as_bytes(), 0).expect("a change");
        // The write has returned, so from here on nobody may see less.
        told.store(changes, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    let stale: u64 = readers.into_iter().map(|reader| reader.join().expect("a reader")).sum();
    vec![
        Figure::words(
            format!("stale reads after an acknowledged change, of {reads}"),
            stale.to_string(),
            Aim::Exactly("0"),
        )
        .detail(format!("{changes} changes")),
    ]
}
