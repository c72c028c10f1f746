//! Whether an operation costs the same when there is much: two houses, one with little and one with much, in turns.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::json;

use super::Run;
use super::house::{Scratch, TestHost, ask, plain, read_once, status};
use super::method::compare;
use super::store::fill;
use super::table::{Aim, Figure};
use acheron::contract::Effect;
use acheron::state::jobs::{JobRow, JobState, insert};

const FLAT: Aim = Aim::AtMost(1.3);

pub fn rows(run: &Run) -> Vec<Figure> {
    let much = if run.quick { 10_000 } else { 100_000 };
    let mut figures = jobs(run, much);
    figures.extend(items(run, much));
    figures.extend(inodes(run, much * 10));
    figures
}

/// Two houses whose states were made by `make`, with 1,000 and with `much`.
fn pair(much: usize, make: fn(&Path, usize)) -> [TestHost; 2] {
    [1_000, much].map(|count| {
        let scratch = Scratch::new();
        make(&scratch.path().join("state"), count);
        let mut spec = plain();
        spec["retention"] = json!({ "jobs": 10_000_000, "days": 10_000 });
        TestHost::in_scratch(scratch, &spec)
    })
}

/// Ended jobs in the journal, as an earlier life left them.
pub fn ended(state: &Path, count: usize) {
    let store = crate::method::open_state(state);
    let job = |number: usize| JobRow {
        id: format!("job-01900000-0000-7000-8000-{number:012x}"),
        agent: "charon".into(),
        service: "memory".into(),
        operation: "create".into(),
        effect: Effect::Write.name().into(),
        idempotent: false,
        state: JobState::Done,
        correlation_id: Some(format!("mine-{number}")),
        principal: "operator".into(),
        request: json!({ "kind": "note", "content": "x" }),
        result: Some(json!({ "ok": true })),
        error: None,
        created_at_ms: 1_700_000_000_000 + number as u64,
        started_at_ms: Some(1_700_000_000_000 + number as u64),
        updated_at_ms: 1_700_000_000_000 + number as u64,
        attempt: 1,
        approval: None,
    };
    for start in (0..count).step_by(1000) {
        let batch: Vec<JobRow> = (start..count.min(start + 1000)).map(job).collect();
        store.write_blocking(move |tx| batch.iter().try_for_each(|job| insert(tx, job))).expect("jobs");
    }
    store.close();
}

fn jobs(run: &Run, much: usize) -> Vec<Figure> {
    let [few, many] = pair(much, ended);
    // Enough of them that old ones have to make room.
    for house in [&few, &many] {
        (0..600).for_each(|_| called(house));
    }
    let call = compare(run.pace(60, 20), |_| called(&many), |_| called(&few));
    let old = |house: &TestHost, number: usize| {
        let id = format!("job-01900000-0000-7000-8000-{:012x}", number * 7 % 1000);
        assert!(read_once(&house.own(&format!("jobs/{id}/status.json")), &mut [0; 1024]) > 0);
    };
    let read = compare(run.pace(60, 20), |number| old(&many, number), |number| old(&few, number));
    vec![
        Figure::ratio(format!("growth: a call, with 1,000 → {much} jobs"), call, FLAT),
        Figure::ratio("growth: the status of an old job", read, FLAT),
    ]
}

fn called(house: &TestHost) {
    assert_eq!(ask(&house.own("mounts/control/list.json"), &json!({}))["ok"], true);
}

fn items(run: &Run, much: usize) -> Vec<Figure> {
    let [few, many] = pair(much, fill);
    let item = |number: usize| format!("memory/items/item-{:06}/content", number * 7 % 1000);
    let read = |house: &TestHost, number| assert!(read_once(&house.own(&item(number)), &mut [0; 1024]) > 0);
    let write = |house: &TestHost, number: usize| {
        let file = File::options().write(true).truncate(true).open(house.own(&item(number))).expect("a memory");
        file.write_all_at(b"anew", 0).expect("a version");
        nix::unistd::close(file).expect("an acknowledged version");
    };
    let load = compare(run.pace(60, 20), |number| read(&many, number), |number| read(&few, number));
    let change = compare(run.pace(60, 5), |number| write(&many, number), |number| write(&few, number));
    vec![
        Figure::ratio(format!("growth: reading a memory, with 1,000 → {much} items"), load, FLAT),
        Figure::ratio("growth: a new version of a memory", change, FLAT),
    ]
}

/// Names without number: every moment that can be waited for is a file.
fn inodes(run: &Run, much: usize) -> Vec<Figure> {
    let [few, many] = [TestHost::start(&plain()), TestHost::start(&plain())];
    let before = status(many.pid(), "RssAnon");
    let known = |house: &TestHost, from: usize, to: usize| {
        let dir = house.own("events/sources/time/after");
        (from..to).for_each(|ms| assert!(std::fs::symlink_metadata(dir.join(format!("{ms}.json"))).is_ok()));
    };
    known(&few, 1, 1_000);
    known(&many, 1, much);
    let bytes = (status(many.pid(), "RssAnon") - before) as f64 * 1024.0 / much as f64;
    let inodes = many.metrics()["inodes"].as_u64().unwrap_or_default();
    let read = |house: &TestHost| assert!(read_once(&house.own("memory/status.json"), &mut [0; 1024]) > 0);
    let open = compare(run.pace(100, 50), |_| read(&many), |_| read(&few));
    let new = |house: &TestHost, number: usize| known(house, 100_000_000 + number, 100_000_001 + number);
    let (mut one, mut two) = (0, 0);
    let find = compare(
        run.pace(100, 50),
        |_| {
            one += 1;
            new(&many, one);
        },
        |_| {
            two += 1;
            new(&few, two);
        },
    );
    vec![
        Figure::ratio(format!("growth: open+read+close, with 1,000 → {much} inodes"), open, FLAT)
            .detail(format!("{inodes} known at the end, {bytes:.0} bytes each")),
        Figure::ratio("growth: a name that is new", find, FLAT),
    ]
}
