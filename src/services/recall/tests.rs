//! Whole turns on a folder, with a model that says what was written down for it.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::archive::archive;
use super::speak::Speak;
use super::state::{RecallParts, RecallState, TurnReport};
use super::watch::Wikis;
use super::wiki::Wiki;
use crate::services::prompts::Library;
use acheron_base::{Clock, Code, ConfinedDir, Error, Result, Room};
use acheron_recall::message::Role;
use acheron_recall::resolve::{Access, Miss};
use acheron_recall::turn::{Limits, Looked};

/// Says its lines, then the last one for ever; keeps what it was asked.
pub struct Scripted {
    lines: Vec<&'static str>,
    pub asked: Mutex<Vec<Vec<(Role, String)>>>,
}

#[async_trait]
impl Speak for Scripted {
    fn has_model(&self) -> Result<bool> {
        Ok(!self.lines.is_empty())
    }

    async fn speak(&self, said: &[(Role, String)]) -> Result<String> {
        let mut asked = self.asked.lock();
        asked.push(said.to_vec());
        let line = self.lines.get(asked.len() - 1).or(self.lines.last());
        line.map(|line| (*line).to_owned()).ok_or_else(|| Error::provider("nothing to say"))
    }
}

pub struct Fixture {
    pub dir: tempfile::TempDir,
    pub recall: Arc<RecallState>,
    pub model: Arc<Scripted>,
}

pub fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

impl Fixture {
    pub fn new(lines: &[&'static str], pages: &[(&str, &str)]) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in pages {
            put(&dir.path().join("store"), path, text);
        }
        put(dir.path(), "secret.md", "outside");
        let model = Arc::new(Scripted { lines: lines.to_vec(), asked: Mutex::default() });
        let (store, home) = (dir.path().join("store"), dir.path().join("home"));
        let recall = Arc::new(RecallState::new(RecallParts {
            agent: "charon".to_owned(),
            context: std::sync::Weak::new(),
            clock: Clock::at(1000),
            wikis: Arc::new(Wikis::default()),
            folder: store,
            index: dir.path().join("index.db"),
            open: Box::new(|folder| ConfinedDir::create(folder)),
            home,
            room: Arc::new(Room::new(dir.path(), |_, _| Ok(()))),
            quotas: Arc::default(),
            prompts: Arc::new(Library::built_in()),
            speak: model.clone(),
            limits: Limits::default(),
            window: Box::new(|| 32_768),
        }));
        Fixture { dir, recall, model }
    }

    async fn turn(&self, conversation: Option<&str>, message: &str) -> TurnReport {
        self.recall.turn(conversation.map(str::to_owned), message.to_owned(), |_| ()).await.unwrap()
    }

    fn roles(&self, id: &str) -> Vec<Role> {
        self.recall.talks().unwrap().messages(id).unwrap().iter().map(|name| name.role).collect()
    }

    fn look(&self, name: &str) -> Looked {
        self.recall.wiki().unwrap().look(name, Access::Nodes)
    }
}

pub const PAGES: [(&str, &str); 2] = [
    ("index.md", "---\ncreated: 2026-01-01\n---\nStart at [[River]]. {{IF_INCLUDE_RECALL}} __MEMORY_ROOT__"),
    ("semantic/River.md", "---\nupdated: 2026-01-02\n---\n# River\n\nWide and dark.\n"),
];

#[tokio::test]
async fn a_model_recalls_a_page_and_answers() {
    let fixture = Fixture::new(&["Let me see. <recall>river</recall>", "It is wide and dark."], &PAGES);
    let turned = fixture.turn(None, "How is the river?\n").await;
    assert_eq!((turned.outcome.text.as_str(), turned.outcome.end), ("It is wide and dark.", "done"));
    let said = fixture.recall.talks().unwrap().said(&turned.conversation).unwrap();
    let told: Vec<_> = said[1..].iter().map(|(role, text)| (role.name(), text.as_str())).collect();
    assert_eq!(
        told,
        [
            ("user", "How is the river?"),
            ("assistant", "Let me see. <recall>river</recall>"),
            ("user", "<memory name=\"River\">\n# River\n\nWide and dark.\n</memory>"),
            ("assistant", "It is wide and dark."),
        ]
    );
    let messages = fixture.recall.talks().unwrap().messages(&turned.conversation).unwrap();
    assert_eq!(messages.last().unwrap().file, turned.filename);
}

#[tokio::test]
async fn the_prompt_comes_once_and_first_and_is_never_expanded_again() {
    let fixture = Fixture::new(&["so"], &PAGES);
    let prompt = fixture.recall.prompt().unwrap(); // 2, 4
    assert!(prompt.contains("<recall>Title</recall>") && !prompt.contains("created:"), "{prompt}");
    assert!(prompt.ends_with("Start at [[River]]. {{IF_INCLUDE_RECALL}} __MEMORY_ROOT__"), "{prompt}");
    put(fixture.dir.path(), "home/conversations/old/7-user.md", "hi");
    put(fixture.dir.path(), "home/conversations/old/8-assistant.md", "yes");
    for _ in 0..2 {
        fixture.turn(Some("old"), "again").await; // 5, 6
    }
    use Role::{Assistant, System, User};
    assert_eq!(fixture.roles("old"), [System, User, Assistant, User, Assistant, User, Assistant]);
    assert_eq!(fixture.model.asked.lock()[0][0], (System, prompt));
}

#[test]
fn a_wiki_with_nothing_but_an_index_says_nothing_of_recalling() {
    let fixture = Fixture::new(&[], &[("index.md", "Nothing yet."), ("meta/prompt.md", ""), ("sleep/1/job.md", "")]);
    let prompt = fixture.recall.prompt().unwrap(); // 1
    assert!(!prompt.contains("<recall>") && !prompt.contains("\n\n\n"), "{prompt}");
    let fresh = Fixture::new(&[], &[]);
    assert!(fresh.recall.prompt().unwrap().contains("# Index"));
    let names = fresh.recall.wiki().unwrap().index().names("").0;
    assert_eq!(names, ["episodic", "episodic-raw", "meta", "semantic", "sleep"]);
}

#[test]
fn a_template_that_is_not_closed_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "runtime/default.md", "---\ndialect: recall\n---\nA\n{{IF_INCLUDE_RECALL}}\nB");
    let faults = Library::open(Some(dir.path())).faults(); // 7
    assert!(faults.iter().any(|fault| fault.to_string().contains("runtime/default.md:5")), "{faults:?}");
}

#[tokio::test]
async fn a_model_that_never_stops_is_stopped() {
    let fixture = Fixture::new(&["<recall>River</recall>"], &PAGES);
    let turned = fixture.turn(None, "go").await;
    assert_eq!((turned.outcome.end, turned.outcome.generations, turned.outcome.reads), ("limit", 8, 1)); // 19
    assert_eq!(turned.outcome.text, "");
    let again = fixture.turn(Some(&turned.conversation), "go").await; // 20
    assert_eq!(again.outcome.recalls[0].code, "served");
}

#[tokio::test]
async fn an_index_that_changed_is_shown_again_once() {
    let fixture = Fixture::new(&["<search>dark water</search>", "so"], &PAGES);
    let turned = fixture.turn(None, "go").await;
    let said = |fixture: &Fixture| fixture.recall.talks().unwrap().said(&turned.conversation).unwrap();
    assert!(
        said(&fixture)[3]
            .1
            .starts_with("<memory search=\"dark water\">\n- [[River]] (semantic/River.md): Wide and dark.")
    );
    let before = said(&fixture).len();
    fixture.recall.write_page("index.md", b"Now: [[River]] and [[Boat]]").unwrap();
    fixture.turn(Some(&turned.conversation), "again").await;
    let told = &said(&fixture)[before].1;
    assert!(
        told.starts_with("<cathedral>\nThe index of your memory has changed.") && told.contains("[[Boat]]"),
        "{told}"
    );
    assert_eq!(said(&fixture).len(), before + 3);
    fixture.turn(Some(&turned.conversation), "and again").await;
    assert_eq!(said(&fixture).len(), before + 5, "it is not told again");
}

#[tokio::test]
async fn what_changes_on_disk_is_what_is_recalled() {
    let fixture = Fixture::new(&["<recall>River</recall>", "so"], &PAGES);
    fixture.recall.wiki().unwrap();
    let path = fixture.dir.path().join("store/semantic/River.md");
    std::fs::write(&path, "narrow now").unwrap(); // 27
    let turned = fixture.turn(None, "go").await;
    assert_eq!(fixture.model.asked.lock()[1][3].1, "<memory name=\"River\">\nnarrow now\n</memory>");
    assert_eq!(turned.outcome.recalls[0].path.as_deref(), Some("semantic/River.md"));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(fixture.look("River"), Looked::Missed(Miss::NotFound));
}

#[test]
fn nothing_outside_is_read() {
    let fixture = Fixture::new(&[], &PAGES);
    let store = fixture.dir.path().join("store");
    std::os::unix::fs::symlink(fixture.dir.path().join("secret.md"), store.join("semantic/Out.md")).unwrap();
    std::os::unix::fs::symlink("River.md", store.join("semantic/In.md")).unwrap();
    std::os::unix::fs::symlink(fixture.dir.path(), store.join("up")).unwrap();
    std::fs::create_dir(store.join("Dir.md")).unwrap();
    std::fs::write(store.join("semantic/Binary.md"), b"\xff\xfe").unwrap();
    let code = |name: &str| match fixture.look(name) {
        Looked::Page { path, .. } => path,
        Looked::Missed(miss) => miss.code().to_owned(),
        Looked::Found(_) => "found".to_owned(),
    };
    for (name, wanted) in [
        ("../secret", "denied"), // 31
        ("semantic/../../secret.md", "denied"),
        ("semantic/Out", "denied"),
        ("semantic/In.md", "denied"),
        ("up/secret", "denied"),
        ("/etc/hostname", "denied"),
        ("Out", "not_found"),
        ("secret", "not_found"),
        ("Dir", "not_found"), // 34
        ("Dir.md", "not_found"),
        ("Binary", "unreadable"), // 15
        ("semantic/River", "semantic/River.md"),
    ] {
        assert_eq!(code(name), wanted, "{name}");
    }
    let wiki = fixture.recall.wiki().unwrap();
    for path in
        ["../x.md", "a/../../x.md", "/x.md", "semantic/Out.md", "up/x.md", "sleep/x.md", "x.txt", ".x.md", "a|b.md"]
    {
        assert!(wiki.write(path, b"x").is_err(), "{path}");
    }
    assert_eq!(std::fs::read_to_string(fixture.dir.path().join("secret.md")).unwrap(), "outside");
    assert_eq!(wiki.write("semantic/New.md", b"\xff").unwrap_err().code, Code::InvalidPayload);
    wiki.write("semantic/New.md", b"[[River]]").unwrap();
    let river = wiki.find("River", Access::Nodes).unwrap().page;
    assert_eq!(wiki.index().backlinks(&river), ["index.md", "semantic/New.md"]);
}

#[tokio::test]
async fn what_is_archived_is_what_was_said_byte_for_byte() {
    let fixture = Fixture::new(&["<recall>River</recall>", "so"], &PAGES);
    put(fixture.dir.path(), "home/conversations/old/1794787200000000007-user.md", "\u{feff}hi \r\n\n");
    fixture.turn(Some("old"), "and the river?").await;
    let (talks, wiki) = (fixture.recall.talks().unwrap(), fixture.recall.wiki().unwrap());
    let archived = archive(&talks.hold("old").unwrap(), wiki).unwrap(); // 44
    assert_eq!(archived.path, "episodic-raw/2026-11-16/old");
    assert_eq!((archived.messages, archived.added), (6, 6));
    let bytes = |dir: &str| {
        let all = std::fs::read_dir(fixture.dir.path().join(dir)).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> = all.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
        all.sort();
        all.iter().map(|path| (path.file_name().unwrap().to_owned(), std::fs::read(path).unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(bytes("store/episodic-raw/2026-11-16/old"), bytes("home/conversations/old"));
    fixture.turn(Some("old"), "thanks").await;
    let again = archive(&talks.hold("old").unwrap(), wiki).unwrap();
    assert_eq!((again.messages, again.added), (8, 2));
    // Transcripts are not recalled, and one that was changed is not written over.
    let name = format!("{}/1794787200000000007-user", again.path);
    assert!(matches!(fixture.look(&name), Looked::Missed(Miss::Denied(_))));
    put(fixture.dir.path(), &format!("store/{name}.md"), "changed");
    assert_eq!(archive(&talks.hold("old").unwrap(), wiki).map(drop).unwrap_err().code, Code::Conflict);
    assert_eq!(talks.hold("new").map(drop).unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_long_conversation_is_cut_to_the_window_and_says_so_when_it_cannot_be() {
    let mut fixture = Fixture::new(&["<recall>River</recall>", "so"], &PAGES);
    let long = "word ".repeat(300);
    for at in 1..9 {
        put(fixture.dir.path(), &format!("home/conversations/long/{at}-user.md"), &format!("{at} {long}"));
    }
    let recall = Arc::get_mut(&mut fixture.recall).unwrap();
    recall.parts.window = Box::new(|| 2000);
    fixture.turn(Some("long"), "and the river?").await;
    let asked = fixture.model.asked.lock().clone();
    let heads =
        |said: &[(Role, String)]| said[1..].iter().map(|it| it.1.chars().take(5).collect()).collect::<Vec<String>>();
    assert_eq!(asked[0][0].0, Role::System);
    assert_eq!(heads(&asked[0]), ["6 wor", "7 wor", "8 wor", "and t"]);
    assert_eq!(heads(&asked[1]), ["6 wor", "7 wor", "8 wor", "and t", "<reca", "<memo"]);
    let recall = Arc::get_mut(&mut fixture.recall).unwrap();
    recall.parts.window = Box::new(|| 64);
    let refused = fixture.recall.turn(Some("long".to_owned()), long, |_| ()).await.unwrap_err();
    assert_eq!(refused.code, Code::BudgetExceeded);
}

#[tokio::test]
async fn a_turn_that_fails_leaves_the_conversation_free() {
    let fixture = Fixture::new(&[], &PAGES);
    let id = fixture.recall.talks().unwrap().begin(Some("a")).unwrap();
    let failed = fixture.recall.turn(Some(id.clone()), "go".to_owned(), |_| ()).await;
    assert_eq!(failed.unwrap_err().code, Code::ProviderError);
    assert!(fixture.recall.running(&id).is_none());
    fixture.recall.talks().unwrap().hold(&id).unwrap();
    let empty = fixture.recall.turn(Some(id), " \n".to_owned(), |_| ()).await;
    assert_eq!(empty.unwrap_err().code, Code::InvalidPayload);
}

/// Waits for news from the disk; it comes by another thread.
fn until(what: &str, wiki: &Wiki, so: impl Fn(&Wiki) -> bool) {
    let began = std::time::Instant::now();
    while !so(wiki) {
        assert!(began.elapsed().as_secs() < 60, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Makes a file look as if it was written long ago: one that is new may change again within a tick of its clock.
fn age(path: &Path) {
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
}

#[test]
fn the_index_is_kept_between_starts_and_only_what_changed_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    for number in 0..200 {
        put(&store, &format!("semantic/P{number}.md"), &format!("# Page {number}\n\nword{number} [[P{}]]", number + 1));
        age(&store.join(format!("semantic/P{number}.md")));
    }
    put(&store, "index.md", "[[P0]]");
    age(&store.join("index.md"));
    let index = dir.path().join("index.db");
    let open = || {
        let wiki = Wiki::open(ConfinedDir::open(&store).unwrap(), &index, &Clock::real()).unwrap();
        assert_eq!(wiki.index().len(), 201, "names are known at once");
        wiki.progress.wait();
        wiki
    };
    let read = |wiki: &Wiki| wiki.progress.shown()["to_read"].as_u64().unwrap();
    let best = |wiki: &Wiki, query: &str| {
        wiki.search(query, Access::Nodes, 1).unwrap().first().map(|hit| hit.path.clone()).unwrap_or_default()
    };
    let wiki = open();
    assert_eq!((read(&wiki), best(&wiki, "word77").as_str()), (201, "semantic/P77.md"));
    drop(wiki);
    put(&store, "semantic/P5.md", "# Changed\n\nquite another text");
    std::fs::rename(store.join("semantic/P6.md"), store.join("semantic/Q6.md")).unwrap();
    let wiki = open();
    assert_eq!(read(&wiki), 2, "one that changed, one of a new name");
    assert_eq!((best(&wiki, "word77").as_str(), best(&wiki, "word5").as_str()), ("semantic/P77.md", ""));
    assert_eq!((best(&wiki, "word6").as_str(), best(&wiki, "another").as_str()), ("semantic/Q6.md", "semantic/P5.md"));
    let backlinks = wiki.index().backlinks(wiki.index().page("semantic/P78.md").unwrap());
    assert_eq!(backlinks, ["semantic/P77.md"]);
    drop(wiki);
    std::fs::write(&index, "no index").unwrap();
    // A log that is left would make it whole again.
    _ = std::fs::remove_file(dir.path().join("index.db-wal"));
    let wiki = open();
    assert_eq!((read(&wiki), best(&wiki, "word77").as_str()), (201, "semantic/P77.md"));
    wiki.remove("semantic/P77.md").unwrap();
    assert_eq!(best(&wiki, "word77"), "");
}

#[test]
fn edits_by_others_are_seen_and_a_folder_is_opened_once() {
    let dir = tempfile::tempdir().unwrap();
    let (wikis, store) = (Wikis::default(), dir.path().join("store"));
    let index = |name: &str| dir.path().join(format!("{name}.db"));
    let wiki = wikis.open(ConfinedDir::create(&store).unwrap(), &index("store"), &Clock::real()).unwrap();
    let again = wikis
        .open(ConfinedDir::create(dir.path().join("store/../store")).unwrap(), &index("store"), &Clock::real())
        .unwrap();
    assert!(Arc::ptr_eq(&wiki, &again));
    let other =
        wikis.open(ConfinedDir::create(dir.path().join("other")).unwrap(), &index("other"), &Clock::real()).unwrap();
    put(&store, "semantic/deep/er/New.md", "[[index]]");
    until("a new page", &wiki, |wiki| wiki.index().resolve("New", Access::Nodes).is_ok());
    std::fs::rename(store.join("semantic/deep"), store.join("semantic/moved")).unwrap();
    until("a moved folder", &wiki, |wiki| wiki.index().page("semantic/moved/er/New.md").is_some());
    until("the old name", &wiki, |wiki| wiki.index().page("semantic/deep/er/New.md").is_none());
    std::fs::remove_dir_all(store.join("semantic/moved")).unwrap();
    until("no page", &wiki, |wiki| !wiki.index().has_memory());
    assert!(!other.index().has_memory());
}
