use super::*;

/// Two rounds, seven with those before it.
fn entry(job_id: &str, reply: Option<&str>) -> HistoryEntry {
    let (spent, total) = (Spent { rounds: 2, ..Spent::default() }, Spent { rounds: 7, ..Spent::default() });
    let (job_id, input, reply) = (job_id.to_owned(), "hi".to_owned(), reply.map(str::to_owned));
    HistoryEntry {
        seq: 0,
        ts_ms: 1,
        job_id,
        source: TurnSource::Chat,
        session: None,
        input,
        reply,
        error: None,
        spent,
        total,
        rewound: None,
    }
}

#[test]
fn totals_and_numbers_outlive_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let dir = Arc::new(ConfinedDir::open(dir.path()).unwrap());
    let history = History::open(dir.clone(), Clock::real()).unwrap();
    history.add(entry("job-1", Some("hello"))).unwrap();
    history.add(entry("job-2", None)).unwrap();
    dir.append(FILE, b"{\"seq\":").unwrap();
    let again = History::open(dir, Clock::real()).unwrap();
    again.add(entry("job-3", Some("bye"))).unwrap();
    let last = again.last().unwrap();
    assert_eq!((last.seq, last.total.rounds), (3, 7));
    assert_eq!(again.exchanges(None), [("hi".to_owned(), "hello".to_owned()), ("hi".to_owned(), "bye".to_owned())]);
    assert!(again.has("job-2") && !again.has("job-9"));
}

#[test]
fn old_turns_are_forgotten_by_whole_files_and_the_costs_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let dir = Arc::new(ConfinedDir::open(dir.path()).unwrap());
    let at = |ts_ms: u64| HistoryEntry { ts_ms, ..entry(&format!("job-{ts_ms}"), Some("x")) };
    let kept = |dir: &ConfinedDir| {
        let lines = |name: &str| dir.read_text(name).map_or(0, |text| text.lines().count());
        (lines(OLDER), lines(FILE))
    };
    let history = History::open(dir.clone(), Clock::real()).unwrap();
    for ts_ms in [10, 20] {
        history.add(at(ts_ms)).unwrap();
    }
    history.forget(5).unwrap();
    assert_eq!(kept(&dir), (0, 2), "nothing is that old");
    history.forget(15).unwrap();
    assert_eq!(kept(&dir), (2, 0), "a part is");
    let history = History::open(dir.clone(), Clock::real()).unwrap();
    history.forget(30).unwrap();
    assert_eq!(kept(&dir), (2, 0), "all of it is, but the last turn knows the costs");
    history.add(at(40)).unwrap();
    history.forget(30).unwrap();
    assert_eq!(kept(&dir), (0, 1));
    let again = History::open(dir, Clock::real()).unwrap().last().unwrap();
    assert_eq!((again.seq, again.total.rounds), (3, 7));
}

#[test]
fn what_an_earlier_version_charged_beside_the_history_is_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let dir = Arc::new(ConfinedDir::open(dir.path()).unwrap());
    let rounds = |history: &History| history.total().rounds;
    let history = History::open(dir.clone(), Clock::real()).unwrap();
    history.add(entry("job-1", None)).unwrap();
    let charged = serde_json::json!({"seq": 1, "total": Spent { rounds: 9, ..Spent::default() }});
    dir.write(CHARGED, charged.to_string().as_bytes()).unwrap();
    let again = History::open(dir.clone(), Clock::real()).unwrap();
    assert_eq!(rounds(&again), 9);
    again.add(entry("job-2", None)).unwrap();
    assert_eq!(rounds(&History::open(dir, Clock::real()).unwrap()), 7, "the next turn has counted it in");
}

#[test]
fn a_conversation_remembers_its_own_turns_and_no_other_pushes_them_out() {
    let dir = tempfile::tempdir().unwrap();
    let dir = Arc::new(ConfinedDir::open(dir.path()).unwrap());
    let history = History::open(dir.clone(), Clock::real()).unwrap();
    let session = ChatSession { id: "s".to_owned(), directory: None, place: None };
    let of = |name: &str, session: Option<&ChatSession>| HistoryEntry {
        session: session.cloned(),
        ..entry(name, Some(name))
    };
    history.add(of("main", None)).unwrap();
    for number in 0..RECENT + 3 {
        history.add(of(&format!("s{number}"), Some(&session))).unwrap();
    }
    for history in [history, History::open(dir, Clock::real()).unwrap()] {
        assert_eq!(history.exchanges(None), [("hi".to_owned(), "main".to_owned())]);
        let own = history.exchanges(Some(&session));
        assert_eq!((own.len(), own[0].1.as_str()), (RECENT, "s3"));
    }
}
