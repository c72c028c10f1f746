use super::*;
use crate::state::TestStore;

fn ended(at_ms: u64) -> TranscriptRecord {
    TranscriptRecord::Ended { at_ms, end: TurnEnd::Replied("ok".into()) }
}

#[test]
fn the_file_of_an_earlier_version_is_taken_over_without_its_torn_last_line() {
    let dir = tempfile::tempdir().unwrap();
    let dir = ConfinedDir::open(dir.path()).unwrap();
    let line = serde_json::to_string(&ended(1)).unwrap();
    dir.append("turns/job-1.ndjson", format!("{line}\n{{\"kind\":\"end").as_bytes()).unwrap();
    let store = TestStore::new();
    let turns = TurnStore::new(store.clone(), "ada");
    for _ in 0..2 {
        turns.take_files(&dir).unwrap();
        assert_eq!(turns.transcript("job-1").unwrap().records(), [ended(1)]);
        assert_eq!(turns.jobs().unwrap(), ["job-1"]);
    }
    assert!(dir.list("turns").unwrap().is_empty());
}

#[test]
fn a_transcript_is_the_same_after_a_restart() {
    let store = TestStore::new();
    let mut transcript = TurnStore::new(store.clone(), "ada").transcript("job-1").unwrap();
    drop(transcript.append(vec![ended(1), ended(2)]).unwrap()); // nobody waits for it, and it is stored
    transcript.append(vec![ended(3)]).unwrap().wait().unwrap();
    drop(transcript);
    let store = store.again();
    let turns = TurnStore::new(store.clone(), "ada");
    assert_eq!(turns.transcript("job-1").unwrap().records(), [ended(1), ended(2), ended(3)]);
    assert_eq!(turns.changed_ms("job-1").unwrap(), 3);
    assert!(TurnStore::new(store.clone(), "bea").transcript("job-1").unwrap().records().is_empty());
    turns.delete("job-1").unwrap();
    assert!(turns.jobs().unwrap().is_empty());
}

#[test]
fn every_cut_of_a_file_gives_its_whole_lines() {
    let text: Vec<u8> =
        (0..3).flat_map(|at| serde_json::to_vec(&ended(at)).unwrap().into_iter().chain([b'\n'])).collect();
    for cut in 0..=text.len() {
        let (records, whole) = read(&text[..cut]).unwrap();
        assert_eq!(whole, text[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        assert_eq!(records.len(), text[..cut].iter().filter(|byte| **byte == b'\n').count());
    }
}

#[test]
fn damage_in_the_middle_is_an_error() {
    let line = serde_json::to_string(&ended(1)).unwrap();
    assert!(read(format!("{line}\nrubbish\n{line}\n").as_bytes()).unwrap_err().starts_with("line 2"));
    assert_eq!(read(format!("{line}\nrubbish\n").as_bytes()).unwrap().0.len(), 1);
}
