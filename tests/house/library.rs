//! The library and the documentation are true: every shell block in them runs, every session prints what it shows.

use std::path::Path;

use crate::common::{documents, session};
use crate::test_host::TestHost;

/// The blocks of a page that are marked so.
fn blocks<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    text.split(&format!("```{mark}\n")).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[track_caller]
fn runs(house: &TestHost, name: &str, text: &str) {
    let program = Path::new(env!("CARGO_BIN_EXE_acheron")).parent().unwrap().display();
    for block in blocks(text, "sh") {
        let said = session(&house.root(), &format!("PATH='{program}':$PATH\n{block}"));
        assert!(!said.lines().any(|line| line.starts_with("! ")), "{name}: {block}\n{said}");
    }
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn topics() -> Vec<(String, String)> {
    let mut found: Vec<_> = std::fs::read_dir(top().join("global-library/topics"))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    found.sort();
    found
}

/// A page whose blocks belong together, in a directory of their own: `many_machines` runs them all.
const ONE_RECIPE: &str = "docs/many-machines.md";

#[test]
fn every_block_of_the_documentation_runs() {
    let (recipes, pages): (Vec<_>, Vec<_>) = documents().into_iter().partition(|(name, _)| name == ONE_RECIPE);
    assert_eq!(recipes.len(), 1, "{ONE_RECIPE} is not there");
    let mut known = 0;
    for (name, text) in pages {
        let count = blocks(&text, "sh").len();
        if count > 0 {
            runs(&TestHost::new(), &name, &text);
        }
        known += count;
    }
    assert!(known >= 7, "only {known} blocks were found");
}

/// Typed lines begin with `$`; all output stands below them. The sessions of one page share one mount.
#[test]
fn every_session_of_the_documentation_goes_as_it_says() {
    let line = regex::Regex::new(r"bash: line \d+: ").unwrap();
    let mut known = 0;
    for (name, text) in documents() {
        let sessions = blocks(&text, "console");
        if sessions.is_empty() {
            continue;
        }
        known += sessions.len();
        let house = TestHost::new();
        for session in sessions {
            let (typed, told): (Vec<&str>, Vec<&str>) =
                session.lines().filter(|line| !line.is_empty()).partition(|line| line.starts_with("$ "));
            let script: Vec<&str> = typed.iter().map(|line| &line[2..]).collect();
            let said = house.says(&format!("exec 2>&1\n{}\nwait", script.join("\n")));
            let said = line.replace_all(&said, "bash: ");
            let said: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
            assert_eq!(said.join("\n"), told.join("\n"), "{name}: {session}");
        }
    }
    assert!(known >= 5, "only {known} sessions were found");
}

#[test]
fn the_trust_beacon_is_written_with_the_same_code_points_everywhere() {
    let beacon = "[\u{3a3}TR-\u{27d0}\u{21cc}\u{1f714}\u{21cc}\u{27d0}]";
    for page in
        ["docs/tour/phases.md", "global-library/topics/phases-and-symbols.md", "global-library/services/phases.md"]
    {
        let text = std::fs::read_to_string(top().join(page)).unwrap();
        let said = text.split("rust beacon: ").nth(1).unwrap_or_else(|| panic!("{page} has no beacon"));
        let said = said.lines().next().unwrap_or_default().trim_matches('`');
        assert_eq!(said, beacon, "{page}");
    }
}

#[test]
fn every_block_of_every_topic_runs() {
    for (name, text) in topics() {
        runs(&TestHost::new(), &name, &text);
    }
}

#[test]
fn a_topic_fits_into_a_small_context_and_the_index_names_it() {
    let index = std::fs::read_to_string(top().join("global-library/Index.md")).unwrap();
    for (name, text) in topics() {
        assert!(text.lines().count() <= 120, "{name} is too long");
        assert!(index.contains(&format!("topics/{name}")), "the index does not name {name}");
    }
    let named = index.matches("`topics/").count();
    assert_eq!(named, topics().len(), "the index names a topic twice, or one that is not there");
}

#[test]
fn the_tree_serves_the_library() {
    let house = TestHost::new();
    let served = house.root().join("global/library/topics");
    for (name, text) in topics() {
        assert_eq!(std::fs::read_to_string(served.join(&name)).unwrap(), text, "{name}");
    }
}

#[test]
fn an_edit_reaches_who_has_the_page_open() {
    use std::io::{Read, Seek};

    let house = TestHost::prepared(acheron::spec::DEFAULT, |here| {
        std::fs::create_dir_all(here.join("global-library/topics")).unwrap();
        std::fs::write(here.join("global-library/Index.md"), "first\n").unwrap();
    });
    let page = house.root().join("global/library/Index.md");
    let mut open = std::fs::File::open(&page).unwrap();
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "first\n");
    std::fs::write(house.here().join("global-library/Index.md"), "the second is longer\n").unwrap();
    crate::common::until("the page is new", || std::fs::read_to_string(&page).unwrap() == "the second is longer\n");
    text.clear();
    open.rewind().unwrap();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "the second is longer\n");
    assert_eq!(std::fs::metadata(&page).unwrap().len(), 21);
    std::fs::write(house.here().join("global-library/topics/new.md"), "new\n").unwrap();
    crate::common::until("the new page is there", || house.root().join("global/library/topics/new.md").is_file());
    std::fs::remove_file(house.here().join("global-library/topics/new.md")).unwrap();
    crate::common::until("the page is gone", || !house.root().join("global/library/topics/new.md").exists());
}
