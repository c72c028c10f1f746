//! Names and paths that callers write.

use std::cell::RefCell;

use crate::driver::{Kind, Target};
use crate::kind;
use acheron::events::Selector;
use acheron::policy::pattern::Pattern;
use acheron::services::memory::path::{self, Target as Memory};
use acheron::services::memory::words::{self, WordQuery};
use acheron::services::phases::history;
use acheron::services::symbols::symbol::check_id;
use acheron_base::mountinfo;
use acheron_store::Connection;
use acheron_vfs::normalize;

/// What is waited for.
pub fn selector() -> Target {
    const WORDS: &[&str] = &[
        "/agents/self",
        "/agents/charon",
        "/events/sources",
        "/time/after/",
        "/time/at/",
        "/user",
        ".json",
        "/jobs/by/",
        "/jobs/last",
        "/status.json",
        "/chat/control/input",
        "/projects/",
        "/../",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        let job = |word: &str| (word.len() < 6).then(|| "job-1".to_owned());
        match Selector::parse(&text, "charon", job) {
            Ok(selector) => {
                let path = selector.path("charon");
                assert!(!path.contains("/../") && path.starts_with('/'), "{path}");
                let again = Selector::parse(&path, "charon", |_| Some("job-1".to_owned()));
                assert_eq!(again.as_ref(), Ok(&selector), "{path}");
                kind(&format!("{selector:?}").chars().take(5).collect::<String>())
            }
            Err(error) => kind(&error.message),
        }
    }
    Target { name: "selector", words: WORDS, run }
}

/// Which memory is meant.
pub fn memory_path() -> Target {
    const WORDS: &[&str] =
        &["/agents/self/memory/items/", "/agents/styx/", "/versions/", "/content", "a", "7", "0", "note-1"];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        path::check(&path::generated(&text, 7)).unwrap();
        match Memory::read(&text, "charon") {
            Ok(target) => {
                path::check(&target.name).unwrap();
                assert_eq!(Memory::read(&target.to_string(), "charon").as_ref(), Ok(&target));
                1 + u64::from(target.version.is_some())
            }
            Err(error) => kind(&error.message),
        }
    }
    Target { name: "memory_path", words: WORDS, run }
}

/// Paths from anybody, and the patterns of permissions.
pub fn permission_path() -> Target {
    const WORDS: &[&str] = &["/**", "/*", "/agents/self", "/projects/here/fs", "**", "..", ".", "//", "*.json"];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        let (pattern, path) = text.split_once(' ').unwrap_or((&text, &text));
        let plain = normalize(path);
        if let Ok(plain) = &plain {
            assert!(plain.starts_with('/') && !plain.split('/').any(|name| matches!(name, "." | "..")), "{plain}");
            assert_eq!(normalize(plain).as_ref(), Ok(plain));
        }
        let names: Vec<&str> = plain.as_deref().unwrap_or("/").split('/').filter(|name| !name.is_empty()).collect();
        match Pattern::parse(pattern) {
            Ok(pattern) => {
                let pattern = pattern.owned_by("charon");
                let said = [pattern.matches(&names), pattern.leads_through(&names), pattern.covers(&names)];
                assert!(!said[2] || said[0], "what is covered matches");
                said.iter().fold(1, |kinds, it| kinds * 2 + u64::from(*it))
            }
            Err(why) => kind(&why),
        }
    }
    Target { name: "permission_path", words: WORDS, run }
}

thread_local! {
    static INDEX: RefCell<Connection> = RefCell::new({
        let conn = Connection::open_in_memory().unwrap();
        let made = "CREATE VIRTUAL TABLE w USING fts5 (t, tokenize = 'unicode61 remove_diacritics 2');
                    INSERT INTO w VALUES ('some words and 東京 京都');";
        conn.execute_batch(made).unwrap();
        conn
    });
}

/// What is typed into a search: never a fault of the index.
pub fn search_query() -> Target {
    const WORDS: &[&str] =
        &["\"two words\"", " OR ", " NOT ", "NEAR(", "*", "東京", "京", "^", ":", "{a b}:", "-", "t:"];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        let indexed = words::indexed(&text);
        assert!(!indexed.contains('\0'));
        match words::query(&text) {
            WordQuery::Blank => 1,
            WordQuery::Wordless => 2,
            WordQuery::Words { terms, needles } => {
                assert!(!needles.is_empty());
                let (all, any) = (terms.join(" AND "), terms.join(" OR "));
                let mut found = 3;
                // the index itself takes most of the time, so it is not asked each time
                if input.len().is_multiple_of(32) {
                    INDEX.with_borrow(|conn| {
                        let mut select = conn.prepare_cached("SELECT count(*) FROM w WHERE w MATCH ?1").unwrap();
                        for query in [&all, &any] {
                            found = found * 4 + select.query_row([query], |row| row.get::<_, u64>(0)).unwrap();
                        }
                    });
                }
                found * 64 + (terms.len() as u64 - 1) % 64
            }
        }
    }
    Target { name: "search_query", words: WORDS, run }
}

/// Names that callers choose and that become names of files.
pub fn session_id() -> Target {
    const WORDS: &[&str] = &["s1", "..", "/", ".", "-", "_", "SYM-1", "é", "session"];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        let mut kinds = 0;
        for (at, checked) in [history::check_session(&text), check_id(&text)].into_iter().enumerate() {
            kinds ^= match checked {
                Ok(()) if at == 0 => {
                    assert!(text.len() < 256 && !text.contains(['/', '\0', '\n']) && text != "..", "{text:?}");
                    1
                }
                Ok(()) => 2,
                Err(error) => kind(&error.message),
            };
        }
        kinds
    }
    Target { name: "session_id", words: WORDS, run }
}

/// What the kernel says is mounted; a mountpoint may have any name.
pub fn mount_table() -> Target {
    const WORDS: &[&str] =
        &["\\040", "\\012", "\\134", " - fuse.acheron acheron:1 rw", "rw,", "36 35 98:0 / ", "/mnt", "\\9"];
    fn run(input: &[u8]) -> Kind {
        let mounts = mountinfo::parse(input);
        assert!(mounts.len() <= input.split(|byte| *byte == b'\n').count());
        mounts.len() as u64
    }
    Target { name: "mount_table", words: WORDS, run }
}
