use std::cell::{Cell, RefCell};
use std::path::Path;

use proptest::prelude::*;

use super::search::{CodeMatch, search};
use super::*;
use crate::spec::{ProjectDir, ServedBy};
use acheron_base::host_dir::Source;

fn query(text: &str) -> CodeQuery {
    let text = text.to_owned();
    let (max_results, max_bytes) = (200, 1 << 20);
    CodeQuery { text, path: None, regex: false, case_sensitive: false, glob: None, context: 0, max_results, max_bytes }
}

fn put(dir: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    put(root, "src/main.rs", "fn main() {\n    let größe = 1; // TODO\n}\n");
    put(root, "src/lib.rs", "pub fn main_like() {}\r\n// todo: nothing\r\n");
    put(root, "README.md", "main page\n");
    put(root, "target/out.rs", "fn main() {}\n");
    put(root, "notes/keep.log", "main\n");
    put(root, "notes/drop.log", "main\n");
    put(root, ".hidden/x.rs", "fn main() {}\n");
    put(root, ".gitignore", "/target\n*.log\n!keep.log\n");
    put(root, "binary", b"fn main\0\x01\x02");
    dir
}

fn root(at: &str, dir: &Path) -> ProjectDir {
    let (project, at, source) = ("here".to_owned(), at.to_owned(), Source::resolve(dir).unwrap());
    let (source, id) = (source.path, Some(source.id));
    ProjectDir { project, at, source, id, read_only: true, served_by: Some(ServedBy::Kernel) }
}

fn roots(dir: &Path) -> Vec<ProjectDir> {
    vec![root("/", dir)]
}

const ALL: Rights<'static> = Rights { may_read: &|_| true, sees: &|_, _| true };

fn run(dir: &Path, query: &CodeQuery) -> Result<CodeMatches> {
    search(&roots(dir), query, &SearchControl { stopped: &|| false, rights: ALL, progress: &|_, _| {} })
}

fn lines(found: Result<CodeMatches>) -> Vec<String> {
    let shown = |it: &CodeMatch| {
        format!("{}:{}:{}:{}", it.path.trim_start_matches("/projects/here/fs/"), it.line, it.column, it.text)
    };
    match found {
        Ok(found) => found.matches.iter().map(shown).chain(found.truncated.then(|| "…".to_owned())).collect(),
        Err(err) => vec![format!("! {}: {err}", err.code.name())],
    }
}

#[test]
fn a_name_that_is_not_text_is_counted_as_skipped() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tree();
    for name in [&b"src/\xff.rs"[..], b"src/\xfe"] {
        std::fs::write(dir.path().join(std::ffi::OsStr::from_bytes(name)), "fn main() {}\n").unwrap();
    }
    let found = run(dir.path(), &query("main")).unwrap();
    assert_eq!((found.matches.len(), found.skipped), (4, 2));
}

#[test]
fn lines_are_found_in_order_without_what_is_ignored() {
    let dir = tree();
    let check = |change: &dyn Fn(&mut CodeQuery), expected: &[&str]| {
        let mut query = query("main");
        change(&mut query);
        assert_eq!(lines(run(dir.path(), &query)), expected, "{query:?}");
    };
    let all = [
        "README.md:1:1:main page",
        "notes/keep.log:1:1:main",
        "src/lib.rs:1:8:pub fn main_like() {}",
        "src/main.rs:1:4:fn main() {",
    ];
    check(&|_| {}, &all);
    check(&|query| query.text = "MAIN".into(), &all);
    check(&|query| (query.text, query.case_sensitive) = ("MAIN".into(), true), &[]);
    check(&|query| query.glob = Some("*.rs".into()), &all[2..]);
    check(&|query| query.glob = Some("!*.rs".into()), &all[..2]);
    check(&|query| query.glob = Some("src/*.rs".into()), &all[2..]);
    check(&|query| query.glob = Some("**/keep.*".into()), &all[1..2]);
    check(&|query| query.glob = Some("/*".into()), &all[..1]);
    check(&|query| query.path = Some("src".into()), &all[2..]);
    check(&|query| query.path = Some("/projects/here/fs/src/main.rs".into()), &all[3..]);
    check(&|query| query.path = Some("projects/here".into()), &all);
    check(&|query| query.max_results = 2, &[all[0], all[1], "…"]);
    check(&|query| query.max_results = 4, &all);
    check(&|query| query.text = "main() {".into(), &["src/main.rs:1:4:fn main() {"]);
    check(&|query| query.text = "größe".into(), &["src/main.rs:2:9:    let größe = 1; // TODO"]);
    check(
        &|query| query.text = "todo".into(),
        &["src/lib.rs:2:4:// todo: nothing", "src/main.rs:2:23:    let größe = 1; // TODO"],
    );
    check(&|query| (query.text, query.regex) = (r"^\w+\s\w+$".into(), true), &["README.md:1:1:main page"]);
    // What is named is searched, though a rule of the directory above leaves it out.
    check(&|query| query.path = Some("target".into()), &["target/out.rs:1:4:fn main() {}"]);
    check(&|query| query.path = Some("notes".into()), &["notes/keep.log:1:1:main"]);
    check(&|query| query.path = Some("notes/drop.log".into()), &["notes/drop.log:1:1:main"]);
}

#[test]
fn what_cannot_be_searched_is_refused_with_the_reason() {
    let dir = tree();
    let check = |change: &dyn Fn(&mut CodeQuery), expected: &str| {
        let mut query = query("main");
        change(&mut query);
        assert_eq!(lines(run(dir.path(), &query)), [expected], "{query:?}");
    };
    check(&|query| query.text = String::new(), "! invalid_payload: query must not be empty");
    check(
        &|query| query.text = "a\nb".into(),
        "! invalid_payload: query must be a single line: lines are searched one by one",
    );
    check(
        &|query| (query.text, query.regex) = ("(".into(), true),
        "! invalid_payload: query is not a regular expression: unclosed group; without \"regex\": true it is taken literally",
    );
    check(
        &|query| query.glob = Some("[".into()),
        "! invalid_payload: glob `[` is none: unclosed character class; missing ']'",
    );
    check(&|query| query.path = Some("absent".into()), "! not_found: there is no absent in this agent's projects");
    check(
        &|query| query.path = Some("/etc".into()),
        "! forbidden: /etc is not in this agent's projects; what can be searched is /projects/here/fs",
    );
    check(
        &|query| (query.text, query.regex) = ("(a{1000}){1000}".into(), true),
        "! invalid_payload: query is not a regular expression: compiled regex exceeds size limit of 10485760; without \"regex\": true it is taken literally",
    );
}

#[test]
fn a_file_that_turns_out_binary_has_no_matches() {
    let dir = tempfile::tempdir().unwrap();
    let late = [b"fn main\n".repeat(20), b"something else\n".repeat(20_000), b"\0".to_vec()].concat();
    put(dir.path(), "late", late);
    put(dir.path(), "text", "fn main\n");
    assert_eq!(lines(run(dir.path(), &query("main"))), ["text:1:4:fn main"]);
}

#[test]
fn each_match_has_the_lines_around_it() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "a", "1\n2 x\n3\n4 x\n5\n6\n7\n8 x\n");
    let around = |context, max_results| {
        let found = run(dir.path(), &CodeQuery { context, max_results, ..query("x") }).unwrap();
        let shown = |it: &CodeMatch| format!("[{}] {} [{}]", it.before.join(","), it.line, it.after.join(","));
        found.matches.iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(around(0, 9), ["[] 2 []", "[] 4 []", "[] 8 []"]);
    assert_eq!(around(1, 9), ["[1] 2 [3]", "[3] 4 [5]", "[7] 8 []"]);
    assert_eq!(around(2, 9), ["[1] 2 [3,4 x]", "[2 x,3] 4 [5,6]", "[6,7] 8 []"]);
    assert_eq!(around(3, 1), ["[1] 2 [3,4 x,5]"]);
}

#[test]
fn nothing_outside_is_read_and_nothing_waits() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("in");
    put(dir.path(), "secret/x", "main\n");
    put(&inside, "a", "main\n");
    std::os::unix::fs::symlink("../secret", inside.join("dir")).unwrap();
    std::os::unix::fs::symlink("../secret/x", inside.join("file")).unwrap();
    nix::unistd::mkfifo(&inside.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    nix::unistd::mkfifo(&inside.join(".gitignore"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(lines(run(&inside, &query("main"))), ["a:1:1:main"]);
    for path in ["dir/x", "file"] {
        let found = run(&inside, &CodeQuery { path: Some(path.into()), ..query("main") });
        assert_eq!(found.unwrap_err().code, acheron_base::Code::Forbidden, "{path}");
    }
}

#[test]
fn what_the_caller_may_not_read_is_not_searched() {
    let dir = tree();
    let may = |path: &str| !path.starts_with("/projects/here/fs/src");
    let watch = SearchControl {
        stopped: &|| false,
        rights: Rights { may_read: &may, sees: &|path, _| may(path) },
        progress: &|_, _| {},
    };
    let found = search(&roots(dir.path()), &query("main"), &watch);
    assert_eq!(lines(found), ["README.md:1:1:main page", "notes/keep.log:1:1:main"]);
    let named = search(&roots(dir.path()), &CodeQuery { path: Some("src".into()), ..query("main") }, &watch);
    assert_eq!(named.unwrap_err().code, acheron_base::Code::Forbidden);
}

#[test]
fn a_link_leads_past_no_rule_and_under_no_bind() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "base/open/page", "main\n");
    put(dir.path(), "base/secret/key", "main\n");
    put(dir.path(), "base/lib/under-the-bind", "main\n");
    put(dir.path(), "other/b", "main\n");
    for (name, to) in [
        ("to-open", "open"),
        ("to-secret", "secret"),
        ("to-key", "secret/key"),
        ("chain", "open/../to-secret"),
        ("to-lib", "lib"),
        ("to-under", "lib/under-the-bind"),
        ("through", "secret/../open"),
        ("to-none", "secret/none"),
    ] {
        std::os::unix::fs::symlink(to, dir.path().join("base").join(name)).unwrap();
    }
    let roots = [root("/", &dir.path().join("base")), root("/lib", &dir.path().join("other"))];
    let may = |path: &str| !path.starts_with("/projects/here/fs/secret");
    let watch = SearchControl {
        stopped: &|| false,
        rights: Rights { may_read: &may, sees: &|path, _| may(path) },
        progress: &|_, _| {},
    };
    for (path, expected) in [
        ("to-open", "open/page:1:1:main"),
        ("to-secret", "! forbidden: /projects/here/fs/secret may not be read"),
        ("to-secret/key", "! forbidden: /projects/here/fs/secret/key may not be read"),
        ("to-secret/none", "! forbidden: /projects/here/fs/secret/none may not be read"),
        ("to-key", "! forbidden: /projects/here/fs/secret/key may not be read"),
        ("to-none", "! forbidden: /projects/here/fs/secret/none may not be read"),
        ("chain", "! forbidden: /projects/here/fs/secret may not be read"),
        ("through", "! forbidden: /projects/here/fs/secret may not be read"),
        ("to-lib", "! not_found: there is no /projects/here/fs/to-lib in this agent's projects"),
        ("to-under", "! not_found: there is no /projects/here/fs/to-under in this agent's projects"),
    ] {
        let path = format!("/projects/here/fs/{path}");
        let found = search(&roots, &CodeQuery { path: Some(path.clone()), ..query("main") }, &watch);
        assert_eq!(lines(found), [expected], "{path}");
    }
    assert_eq!(lines(search(&roots, &query("main"), &watch)), ["open/page:1:1:main", "lib/b:1:1:main"]);
}

/// Somebody swaps a directory for a link while the search goes through it.
#[test]
fn a_link_that_is_put_there_during_the_walk_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "secret/x", "main: secret\n");
    put(dir.path(), "a/x", "main\n");
    put(dir.path(), "b", "main\n");
    let swapped = Cell::new(0);
    let may = |path: &str| {
        let (name, to) = match path.strip_prefix("/projects/here/fs/") {
            Some("a") => ("a", "secret"),
            Some("b") => ("b", "secret/x"),
            other => return other != Some("secret"),
        };
        // It was listed as what it is, and asked for: now it becomes something else.
        let at = dir.path().join(name);
        std::fs::rename(&at, dir.path().join(".away")).unwrap();
        std::os::unix::fs::symlink(to, at).unwrap();
        swapped.set(swapped.get() + 1);
        _ = std::fs::remove_dir_all(dir.path().join(".away"));
        _ = std::fs::remove_file(dir.path().join(".away"));
        true
    };
    let watch = SearchControl {
        stopped: &|| false,
        rights: Rights { may_read: &may, sees: &|_, _| true },
        progress: &|_, _| {},
    };
    assert_eq!(lines(search(&roots(dir.path()), &query("main"), &watch)), [""; 0]);
    assert_eq!(swapped.get(), 2);
}

#[test]
fn what_is_ignored_is_not_read_from_a_link_or_what_is_hidden() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "secret", "canary\n");
    put(dir.path(), "canary", "main\n");
    put(dir.path(), "sub/.gitignore", "hidden\n");
    put(dir.path(), "sub/hidden", "main\n");
    std::os::unix::fs::symlink("secret", dir.path().join(".gitignore")).unwrap();
    let sees = |path: &str, _: bool| path != "/projects/here/fs/sub/.gitignore";
    let watch =
        SearchControl { stopped: &|| false, rights: Rights { may_read: &|_| true, sees: &sees }, progress: &|_, _| {} };
    let found = search(&roots(dir.path()), &query("main"), &watch);
    assert_eq!(lines(found), ["canary:1:1:main", "sub/hidden:1:1:main"]);
}

#[test]
fn a_bind_inside_another_is_searched_once_and_under_its_own_name() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "base/a", "main\n");
    put(dir.path(), "base/lib/hidden-by-the-bind", "main\n");
    put(dir.path(), "other/b", "main\n");
    let roots = [root("/", &dir.path().join("base")), root("/lib", &dir.path().join("other"))];
    let found =
        search(&roots, &query("main"), &SearchControl { stopped: &|| false, rights: ALL, progress: &|_, _| {} });
    assert_eq!(lines(found), ["a:1:1:main", "lib/b:1:1:main"]);
}

#[test]
fn a_search_tells_how_far_it_is_and_stops_when_told() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..600 {
        put(dir.path(), &format!("{number:03}"), "main\n");
    }
    let told = RefCell::new(Vec::new());
    let watch = SearchControl {
        stopped: &|| false,
        rights: ALL,
        progress: &|files, found| told.borrow_mut().push((files, found)),
    };
    let found = search(&roots(dir.path()), &CodeQuery { max_results: 5000, ..query("main") }, &watch).unwrap();
    assert_eq!((found.matches.len(), found.files_searched), (600, 600));
    assert_eq!(*told.borrow(), [(1, 1), (257, 257), (513, 513)]);

    let asked = std::sync::atomic::AtomicU64::new(0);
    let stopped = || asked.fetch_add(1, Ordering::Relaxed) >= 300;
    let seen = Cell::new(0);
    let watch = SearchControl {
        stopped: &stopped,
        rights: Rights {
            may_read: &|_| {
                seen.set(seen.get() + 1);
                true
            },
            sees: &|_, _| true,
        },
        progress: &|_, _| {},
    };
    let error = search(&roots(dir.path()), &query("nothing"), &watch).unwrap_err();
    assert_eq!(error.code, acheron_base::Code::Cancelled);
    assert!(seen.get() < 300, "stopped after {} files", seen.get());
}

#[test]
fn a_large_file_without_a_match_is_left_in_the_middle() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "big", "some line\n".repeat(400_000));
    let asked = std::sync::atomic::AtomicU64::new(0);
    let stopped = || asked.fetch_add(1, Ordering::Relaxed) >= 10;
    let watch = SearchControl { stopped: &stopped, rights: ALL, progress: &|_, _| {} };
    assert_eq!(search(&roots(dir.path()), &query("nothing"), &watch).unwrap_err().code, acheron_base::Code::Cancelled);
}

#[test]
fn long_lines_are_shown_around_the_match_and_many_make_no_flood() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "min.js", format!("{}needle{}", "é".repeat(100_000), "y".repeat(100_000)));
    let found = run(dir.path(), &query("needle")).unwrap();
    let line = &found.matches[0];
    assert_eq!(line.column, 100_001);
    assert!(line.text.len() < 1100 && line.text.contains("needle") && line.text.starts_with('…'), "{}", line.text);
    put(dir.path(), "many", format!("{} needle\n", "z".repeat(900)).repeat(20_000));
    let many = run(dir.path(), &CodeQuery { max_results: 5000, context: 50, ..query("needle") }).unwrap();
    assert!(many.truncated && many.matches.len() < 200, "{}", many.matches.len());
}

#[test]
fn an_answer_stays_within_its_bytes_and_says_how_many_more_there_are() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["a", "b", "c"] {
        put(dir.path(), file, "a line with a needle in it\n".repeat(100));
    }
    let whole = run(dir.path(), &CodeQuery { max_results: 5000, ..query("needle") }).unwrap();
    assert_eq!((whole.matches.len(), whole.more, whole.truncated), (300, 0, false));
    for (max_results, max_bytes, context) in [(5000, 8192, 0), (5000, 8192, 3), (10, 8192, 0), (5000, 256, 0)] {
        let some = run(dir.path(), &CodeQuery { max_results, max_bytes, context, ..query("needle") }).unwrap();
        assert!(some.truncated && !some.matches.is_empty() && some.matches.len() <= max_results);
        assert_eq!(some.matches.len() as u64 + some.more, 300, "{max_results} {max_bytes} {context}");
        let size = serde_json::to_string(&some.matches).unwrap().len();
        assert!(size <= max_bytes + max_bytes / 4, "{size} bytes instead of {max_bytes}");
        let lines: Vec<_> = some.matches.iter().map(|it| (it.path.as_str(), it.line)).collect();
        let first: Vec<_> = whole.matches.iter().take(lines.len()).map(|it| (it.path.as_str(), it.line)).collect();
        assert_eq!(lines, first, "the answer is the beginning");
    }
}

#[test]
fn what_the_arguments_alone_tell_is_told_at_once() {
    let bad = |change: CodeQuery| super::search::check(&change).unwrap_err().message;
    assert!(
        bad(CodeQuery { regex: true, ..query("(") }).starts_with("query is not a regular expression: unclosed group")
    );
    assert_eq!(bad(query("")), "query must not be empty");
    assert!(bad(CodeQuery { glob: Some("[".into()), ..query("x") }).starts_with("glob"));
    super::search::check(&CodeQuery { regex: true, ..query("a+") }).unwrap();
}

#[test]
fn the_contract_is_whole() {
    let contract = crate::contract::Contract::of::<Command, CodeMatches>(
        SearchCode::NAME,
        SearchCode::ABOUT,
        SearchCode::operations(),
    );
    let contract = contract.unwrap();
    let refused = |value| contract.check("search", &value).unwrap_err().message;
    assert_eq!(refused(json!({"query": "x", "max_results": 0})), "search: max_results: must be at least 1, not 0");
    assert_eq!(refused(json!({"query": "x", "context": 51})), "search: context: must be at most 50, not 51");
    assert_eq!(
        refused(json!({"query": "x", "case_senistive": true})),
        "search: unknown key `case_senistive`; did you mean case_sensitive?"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every line that holds the text is found, and no other.
    #[test]
    fn a_literal_is_found_wherever_it_stands(text in "[ab.*(é\n]{0,60}", word in "[ab.*(é]{1,2}") {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "file", &text);
        let found = run(dir.path(), &CodeQuery { case_sensitive: true, ..query(&word) }).unwrap();
        let expected: Vec<u64> = text.lines().enumerate().filter(|(_, line)| line.contains(&word)).map(|(at, _)| at as u64 + 1).collect();
        prop_assert_eq!(found.matches.iter().map(|it| it.line).collect::<Vec<_>>(), expected);
        for it in &found.matches {
            let column = it.text.chars().take(it.column as usize - 1).collect::<String>().len();
            prop_assert_eq!(it.text.find(&word), Some(column));
        }
    }
}
