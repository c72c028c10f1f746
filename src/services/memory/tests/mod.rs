//! Memory against a real database, without a tree.

mod evaluation;
mod facts;
mod sessions;

use serde_json::json;

use super::content::{Content, ContentChange};
use super::path::Target;
use super::rows;
use super::search::MemorySearch;
use super::tx::{MemoryReader, MemoryTx, NewMemory, StoredMemory};
use crate::state::TestStore;
use acheron_base::{Code, Result};

fn target(path: &str) -> Target {
    Target::read(path, "charon").unwrap()
}

fn write<T: Send + 'static>(
    store: &TestStore,
    work: impl FnOnce(&MemoryTx<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    write_as(store, "charon", work)
}

fn write_as<T: Send + 'static>(
    store: &TestStore,
    agent: &'static str,
    work: impl FnOnce(&MemoryTx<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    store.write_blocking(move |tx| work(&MemoryTx::take(tx, agent, 1000)?))
}

fn read<T>(store: &TestStore, work: impl FnOnce(&MemoryReader<'_>) -> Result<T>) -> Result<T> {
    store.look(|conn| work(&MemoryReader::read(conn, "charon")?))
}

fn note(name: &str, text: &str) -> NewMemory {
    NewMemory { content: Content::Text(text.into()), ..NewMemory::note(name) }
}

fn create(store: &TestStore, new: NewMemory) -> StoredMemory {
    write(store, move |tx| tx.create(new)).unwrap()
}

fn text(store: &TestStore, path: &str) -> String {
    read(store, |reader| Ok(reader.find(&target(path))?.version.content.text())).unwrap()
}

fn active(store: &TestStore) -> Vec<String> {
    read(store, |reader| reader.active()).unwrap().into_iter().map(|memory| memory.head.name).collect()
}

fn found(store: &TestStore, search: MemorySearch) -> Vec<String> {
    let search = MemorySearch { limit: if search.limit == 0 { 25 } else { search.limit }, ..search };
    let (hits, _) = read(store, |reader| reader.search(&search)).unwrap();
    hits.into_iter().map(|hit| format!("{}@{}", hit.memory.head.name, hit.memory.version.version)).collect()
}

fn words(query: &str) -> MemorySearch {
    MemorySearch { query: query.into(), ..MemorySearch::default() }
}

#[test]
fn every_change_is_a_version_and_the_old_ones_stay() {
    let store = TestStore::new();
    assert_eq!(create(&store, note("plan", "first")).version.version, 1);
    let change = ContentChange::Append(json!(" and second"));
    assert_eq!(write(&store, |tx| tx.mutate(&target("plan"), None, change)).unwrap().version.version, 2);
    assert_eq!(write(&store, |tx| tx.write("plan", b"third\n")).unwrap().version.version, 3);
    let store = store.again();
    let seen: Vec<_> = ["plan", "plan/versions/1", "plan/versions/2"].map(|path| text(&store, path)).into();
    assert_eq!(seen, ["third\n", "first", "first and second"]);
    let versions = read(&store, |reader| reader.versions(&target("plan"), 2)).unwrap().1;
    assert_eq!(versions.iter().map(|version| version.version).collect::<Vec<_>>(), [3, 2]);
    let missing = read(&store, |reader| reader.find(&target("plan/versions/9"))).unwrap_err();
    assert_eq!((missing.code, missing.message.contains("latest is 3")), (Code::NotFound, true));
}

#[test]
fn a_stale_change_is_a_conflict_that_names_the_current_version() {
    let store = TestStore::new();
    create(&store, note("plan", "one"));
    let change = |path: &'static str, if_version: Option<u64>| {
        write(&store, move |tx| tx.mutate(&target(path), if_version, ContentChange::Replace(json!("new"))))
    };
    assert_eq!(change("plan", Some(1)).unwrap().version.version, 2);
    let stale = change("plan", Some(1)).unwrap_err();
    assert_eq!((stale.code, stale.message.contains("that is version 2")), (Code::Conflict, true));
    assert_eq!(change("plan/versions/1", None).unwrap_err().code, Code::Conflict);
    assert_eq!(change("plan/versions/2", Some(3)).unwrap_err().code, Code::Conflict);
    assert_eq!(change("plan/versions/2", None).unwrap().version.version, 3);
}

#[test]
fn names_are_taken_once_or_made_up() {
    let store = TestStore::new();
    create(&store, note("plan", ""));
    let taken = write(&store, |tx| tx.create(note("plan", ""))).unwrap_err();
    assert_eq!(taken.code, Code::AlreadyExists);
    let made =
        |kind: &str| create(&store, NewMemory { name: None, kind: kind.into(), ..NewMemory::note("") }).head.name;
    assert_eq!([made("note"), made("Open Question")], ["note-2", "open-question-3"]);
    create(&store, note("note-5", ""));
    assert_eq!(made("note"), "note-6");
    for (name, kind, tags) in [("Plan", "note", vec![]), ("p", " ", vec![]), ("p", "note", vec!["\n"])] {
        let tags = tags.into_iter().map(str::to_owned).collect();
        let new = NewMemory { name: Some(name.into()), kind: kind.into(), tags, ..NewMemory::note("") };
        assert_eq!(write(&store, |tx| tx.create(new)).unwrap_err().code, Code::InvalidPayload, "{name} {kind}");
    }
}

#[test]
fn protection_holds() {
    let store = TestStore::new();
    create(&store, NewMemory { write_protected: true, unevictable: true, ..note("law", "x") });
    create(&store, NewMemory { unevictable: true, ..note("core", "x") });
    let code = |outcome: Result<()>| outcome.unwrap_err().code;
    let law = || target("law");
    let change = ContentChange::Replace(json!("y"));
    assert_eq!(code(write(&store, move |tx| tx.mutate(&law(), None, change).map(drop))), Code::Forbidden);
    assert_eq!(code(write(&store, |tx| tx.write("law", b"y").map(drop))), Code::Forbidden);
    assert_eq!(code(write(&store, |tx| tx.delete(&target("law"), None).map(drop))), Code::Forbidden);
    assert_eq!(code(write(&store, |tx| tx.restore(&target("law"), 1).map(drop))), Code::Forbidden);
    assert_eq!(code(write(&store, |tx| tx.evict(&target("law"), None).map(drop))), Code::Forbidden);
    assert_eq!(code(write(&store, |tx| tx.delete(&target("core"), None).map(drop))), Code::Forbidden);
    assert_eq!(text(&store, "law"), "x");
}

#[test]
fn a_deletion_can_be_undone() {
    let store = TestStore::new();
    create(&store, note("plan", "precious"));
    let gone = write(&store, |tx| tx.delete(&target("plan"), None)).unwrap();
    assert_eq!((gone.version.version, gone.version.deleted), (2, true));
    let missing = read(&store, |reader| reader.find(&target("plan"))).unwrap_err();
    assert_eq!((missing.code, missing.message.contains("restore")), (Code::NotFound, true));
    assert_eq!(text(&store, "plan/versions/1"), "precious");
    assert_eq!(active(&store), Vec::<String>::new());
    assert_eq!(found(&store, words("precious")), Vec::<String>::new());
    let refused = write(&store, |tx| tx.restore(&target("plan"), 2)).unwrap_err();
    assert_eq!(refused.code, Code::InvalidPayload);
    assert_eq!(write(&store, |tx| tx.restore(&target("plan"), 1)).unwrap().version.version, 3);
    assert_eq!((text(&store, "plan"), found(&store, words("precious"))), ("precious".into(), vec!["plan@3".into()]));
}

#[test]
fn a_deleted_name_may_be_taken_again_and_its_versions_go_on() {
    let store = TestStore::new();
    create(&store, NewMemory { unevictable: false, ..note("plan", "one") });
    write(&store, |tx| tx.delete(&target("plan"), Some(1))).unwrap();
    let again = create(&store, NewMemory { unevictable: true, ..note("plan", "two") });
    assert_eq!((again.version.version, again.head.unevictable), (3, true));
    assert_eq!(text(&store, "plan/versions/1"), "one");
}

#[test]
fn loading_makes_active_and_evicting_leaves_a_line() {
    let store = TestStore::new();
    create(&store, note("a", "alpha\nbeta"));
    create(&store, note("b", "gamma"));
    let (memory, was) = write(&store, |tx| tx.evict(&target("a"), None)).unwrap();
    assert_eq!((memory.head.tombstone.as_deref(), was), (Some("note, 5 tokens: alpha"), true));
    assert!(!write(&store, |tx| tx.evict(&target("a"), None)).unwrap().1);
    write(&store, |tx| tx.evict(&target("b"), Some("about\ngamma"))).unwrap();
    let lines: Vec<_> =
        read(&store, |reader| reader.left(10)).unwrap().into_iter().map(|left| left.tombstone).collect();
    assert_eq!(lines, ["note, 3 tokens: about", "note, 5 tokens: alpha"]);
    assert_eq!(write(&store, |tx| tx.load(&target("a"))).unwrap().version.content.text(), "alpha\nbeta");
    assert_eq!(active(&store), ["a"]);
    assert_eq!(read(&store, |reader| reader.left(10)).unwrap().len(), 1);
}

#[test]
fn an_old_version_is_looked_at_without_becoming_active() {
    let store = TestStore::new();
    create(&store, note("a", "old"));
    write(&store, |tx| tx.write("a", b"new")).unwrap();
    write(&store, |tx| tx.evict(&target("a"), None)).unwrap();
    assert_eq!(write(&store, |tx| tx.load(&target("a/versions/1"))).unwrap().version.content.text(), "old");
    assert_eq!(active(&store), Vec::<String>::new());
    write(&store, |tx| tx.load(&target("a/versions/2"))).unwrap();
    assert_eq!(active(&store), ["a"]);
}

#[test]
fn a_change_keeps_an_evicted_memory_evicted() {
    let store = TestStore::new();
    create(&store, note("a", "x"));
    write(&store, |tx| tx.evict(&target("a"), None)).unwrap();
    write(&store, |tx| tx.write("a", b"y")).unwrap();
    assert_eq!(active(&store), Vec::<String>::new());
}

#[test]
fn order_pins_and_flags_survive_a_restart() {
    let store = TestStore::new();
    for name in ["a", "b", "c", "d"] {
        create(&store, note(name, "some words that cost tokens"));
    }
    write(&store, |tx| tx.pin(&target("a"))).unwrap();
    write(&store, |tx| tx.load(&target("b"))).unwrap();
    assert_eq!(write(&store, |tx| tx.evict(&target("a"), None)).unwrap_err().code, Code::Forbidden);
    let store = store.again();
    assert_eq!(active(&store), ["c", "d", "a", "b"]);
    let each = read(&store, |reader| Ok(reader.find(&target("a"))?.version.tokens)).unwrap();
    let left = write(&store, move |tx| tx.keep_within(each * 2)).unwrap();
    assert_eq!(left.iter().map(|left| left.name.as_str()).collect::<Vec<_>>(), ["c", "d"]);
    write(&store, |tx| tx.unpin(&target("a"))).unwrap();
    let left = write(&store, move |tx| tx.keep_within(each)).unwrap();
    assert_eq!((left[0].name.as_str(), active(&store)), ("a", vec!["b".to_owned()]));
}

#[test]
fn search_ranks_filters_and_pages() {
    let store = TestStore::new();
    let tagged = |name: &str, text: &str, kind: &str, tags: &[&str]| NewMemory {
        kind: kind.into(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..note(name, text)
    };
    create(&store, tagged("db-choice", "we chose sqlite for the state", "decision", &["state", "db"]));
    create(
        &store,
        tagged(
            "diary",
            "a long text which says database once, and sqlite once, and much else besides",
            "note",
            &["db"],
        ),
    );
    create(&store, tagged("other", "nothing of interest", "note", &[]));
    assert_eq!(found(&store, words("sqlite")), ["db-choice@1", "diary@1"]);
    assert_eq!(found(&store, words("SQLite besides")), ["diary@1"], "all words");
    assert_eq!(found(&store, words("sqlite unheard")).len(), 2, "any word, when none has all");
    assert_eq!(found(&store, words("choice")), ["db-choice@1"], "names count");
    assert_eq!(found(&store, MemorySearch { kind: Some("note".into()), ..words("sqlite") }), ["diary@1"]);
    let db = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    assert_eq!(found(&store, MemorySearch { tags: db(&["db", "state"]), ..words("sqlite") }), ["db-choice@1"]);
    assert_eq!(found(&store, MemorySearch { since_ms: Some(1001), ..words("sqlite") }), Vec::<String>::new());
    assert_eq!(found(&store, words("")), ["other@1", "diary@1", "db-choice@1"], "newest first");
    assert_eq!(found(&store, words("?!")), Vec::<String>::new());
    let first = MemorySearch { limit: 1, ..words("sqlite") };
    let (hits, cursor) = read(&store, |reader| reader.search(&first)).unwrap();
    assert!(hits[0].score > 0.0 && hits[0].snippet == "we chose sqlite for the state");
    let second = MemorySearch { cursor, ..first.clone() };
    let (hits, cursor) = read(&store, |reader| reader.search(&second)).unwrap();
    assert_eq!((hits[0].memory.head.name.as_str(), cursor), ("diary", None));
    let foreign = MemorySearch { cursor: Some("99".into()), ..first };
    assert_eq!(read(&store, |reader| reader.search(&foreign)).unwrap_err().code, Code::InvalidPayload);
}

#[test]
fn when_any_word_will_do_a_word_of_nearly_every_memory_does_not_count() {
    let store = TestStore::new();
    for n in 0..60 {
        create(&store, note(&format!("note-{n}"), "the common river"));
    }
    create(&store, note("one", "a heron"));
    assert_eq!(found(&store, words("river heron")), ["one@1"], "the rare word");
    assert_eq!(found(&store, words("river unheard")).len(), 25, "the only word that is known");
    assert_eq!(found(&store, words("common river unheard")).len(), 25, "words as common as each other");
    let notes = MemorySearch { kind: Some("note".into()), ..words("river heron") };
    assert_eq!(found(&store, notes).len(), 25, "with a filter every word counts");
}

#[test]
fn only_history_shows_old_versions() {
    let store = TestStore::new();
    create(&store, note("a", "ancient wisdom"));
    write(&store, |tx| tx.write("a", b"modern wisdom")).unwrap();
    assert_eq!(found(&store, words("ancient")), Vec::<String>::new());
    let history = |query: &str| MemorySearch { history: true, ..words(query) };
    assert_eq!(found(&store, history("ancient")), ["a@1"]);
    let mut both = found(&store, MemorySearch { kind: Some("note".into()), ..history("wisdom") });
    both.sort();
    assert_eq!(both, ["a@1", "a@2"]);
}

#[test]
fn words_of_two_characters_are_found() {
    let store = TestStore::new();
    create(&store, note("a", "東京都に住む人"));
    create(&store, note("b", "我们决定使用数据库"));
    assert_eq!(found(&store, words("東京")), ["a@1"]);
    assert_eq!(found(&store, words("决定")), ["b@1"]);
}

#[test]
fn nobody_sees_the_memory_of_another() {
    let store = TestStore::new();
    create(&store, note("plan", "secret word"));
    write_as(&store, "styx", |tx| tx.create(note("plan", "another word"))).unwrap();
    let seen = |agent: &str| {
        store.look(|conn| {
            let reader = MemoryReader::read(conn, agent)?;
            let (hits, _) = reader.search(&MemorySearch { limit: 10, ..words("word") })?;
            let texts: Vec<_> = hits.into_iter().map(|hit| hit.memory.version.content.text()).collect();
            Ok((texts, reader.active()?.len(), rows::entries(conn, reader.agent)?.len()))
        })
    };
    assert_eq!(seen("charon").unwrap(), (vec!["secret word".to_owned()], 1, 1));
    assert_eq!(seen("styx").unwrap(), (vec!["another word".to_owned()], 1, 1));
    assert_eq!(seen("lethe").unwrap(), (vec![], 0, 0));
}

#[test]
fn a_summary_is_linked_to_what_it_sums_up() {
    let store = TestStore::new();
    let sources = vec![target("a/versions/1").to_string()];
    let linked = sources.clone();
    let first = write(&store, move |tx| tx.sum_up(Some("sum".into()), "short".into(), linked)).unwrap();
    assert_eq!((first.version.kind.as_str(), first.version.sources), ("summary", sources));
    let second = write(&store, |tx| tx.sum_up(Some("sum".into()), "shorter".into(), vec![])).unwrap();
    assert_eq!((second.version.version, second.version.sources.len()), (2, 0));
    let made = write(&store, |tx| tx.sum_up(None, "x".into(), vec![])).unwrap();
    assert_eq!(made.head.name, "summary-2");
}

#[test]
fn a_memory_is_found_by_other_endings_and_one_with_old_words_is_indexed_again() {
    let store = TestStore::new();
    create(&store, note("ferry-repairs", "He repaired the HashMap of tolls"));
    for query in ["repairing", "toll", "hashmap", "map", "repair"] {
        assert_eq!(found(&store, words(query)), ["ferry-repairs@1"], "{query}");
    }
    // As a version before had it: the words as they stand, and the mark of no version.
    let before = "DELETE FROM memory_now; DELETE FROM memory_ever; UPDATE memory_agents SET words = 0";
    store.write_blocking(move |tx| Ok(tx.execute_batch(before)?)).unwrap();
    assert!(found(&store, words("toll")).is_empty());
    assert!(store.look(|conn| rows::has_old_words(conn, "charon")).unwrap());
    store.write_blocking(|tx| rows::index_again(tx, "charon")).unwrap();
    assert_eq!(found(&store, words("toll")), ["ferry-repairs@1"]);
    assert_eq!(found(&store, MemorySearch { history: true, ..words("tolls") }), ["ferry-repairs@1"]);
    assert!(!store.look(|conn| rows::has_old_words(conn, "charon")).unwrap());
}
