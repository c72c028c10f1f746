//! A small set of the generated sessions (`benches/proof/recall/sessions.md`): memory finds what answers a question more often than
//! plain FTS5 does.

use std::sync::Arc;

use super::{MemoryReader, MemorySearch, note, words, write};
use crate::services::memory::questions::BackgroundCache;
use crate::services::memory::search::MemoryHit;
use crate::state::TestStore;
use acheron_base::words::{each_word, is_empty};
use acheron_recall::sample_sessions::{SessionSet, generate};
use acheron_store::Connection;

fn filled(set: &SessionSet) -> TestStore {
    let store = TestStore::new();
    let new: Vec<_> = set.sessions.iter().map(|session| note(&session.name, &session.text)).collect();
    write(&store, move |tx| new.into_iter().try_for_each(|new| tx.create(new).map(drop))).unwrap();
    store
}

fn plain(set: &SessionSet) -> Connection {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch("CREATE VIRTUAL TABLE sessions USING fts5 (text); BEGIN").unwrap();
    for (number, session) in set.sessions.iter().enumerate() {
        conn.execute("INSERT INTO sessions (rowid, text) VALUES (?1, ?2)", (number as i64, &session.text)).unwrap();
    }
    conn.execute_batch("COMMIT").unwrap();
    conn
}

fn by_fts(conn: &Connection, question: &str) -> Vec<usize> {
    let mut asked = Vec::new();
    each_word(question, |word| asked.extend((!is_empty(word)).then(|| format!("\"{word}\""))));
    let mut select =
        conn.prepare_cached("SELECT rowid FROM sessions WHERE sessions MATCH ?1 ORDER BY rank LIMIT 5").unwrap();
    let rows = select.query_map([asked.join(" OR ")], |row| row.get::<_, i64>(0)).unwrap();
    rows.map(|row| row.unwrap() as usize).collect()
}

fn found(store: &TestStore, cache: &Arc<BackgroundCache>, search: &MemorySearch) -> Vec<MemoryHit> {
    let background = Some(cache.clone());
    let hits = store.look(|conn| MemoryReader { background, ..MemoryReader::read(conn, "charon")? }.search(search));
    hits.unwrap().0
}

#[test]
fn a_session_is_found_by_a_question_in_other_words_more_often_than_by_plain_fts5() {
    let set = generate(7, 1200, 240);
    let again = generate(7, 1200, 240);
    assert!(set.sessions.iter().zip(&again.sessions).all(|(one, other)| one.text == other.text), "the same seed");
    let (store, conn) = (filled(&set), plain(&set));
    assert_eq!(set.questions.iter().filter(|question| question.before.is_some()).count(), 60, "changed facts");
    let cache = Arc::new(BackgroundCache::default());
    let (mut ours, mut bare, mut asked) = (0, 0, 0);
    for question in set.questions.iter().filter(|question| !question.is_for_tuning()) {
        let right = &set.sessions[question.right].name;
        let search = MemorySearch { limit: 5, ..words(&question.asked) };
        let hits = found(&store, &cache, &search);
        asked += 1;
        ours += usize::from(hits.iter().any(|hit| hit.memory.head.name == *right));
        bare += usize::from(by_fts(&conn, &question.asked).contains(&question.right));
    }
    let share = |count: usize| f64::from(u32::try_from(count).unwrap()) / f64::from(asked);
    assert!(share(ours) >= share(bare) + 0.05, "{ours} and {bare} of {asked}");
}
