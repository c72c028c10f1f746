//! The documentation agrees with the repository: every file, test, crate and figure that a page names exists.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;

use crate::common::{documents, sources};
use crate::test_host::TestHost;

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn document(name: &str) -> String {
    std::fs::read_to_string(top().join(name)).unwrap()
}

/// The part of a page under a heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let rest = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}")).1;
    let level = heading.split(' ').next().unwrap();
    rest.split(&format!("\n{level} ")).next().unwrap()
}

/// The cells of the tables in a text, row by row, without heads.
fn rows(text: &str) -> Vec<Vec<String>> {
    let lines: Vec<&str> = text.lines().collect();
    let body = |(at, line): &(usize, &&str)| {
        line.starts_with("| ") && !lines.get(at + 1).is_some_and(|next| next.starts_with("|---"))
    };
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    lines.iter().enumerate().filter(body).map(|(_, line)| cells(line)).collect()
}

/// The words in backquotes.
fn quoted(text: &str) -> Vec<String> {
    Regex::new("`([^`]+)`").unwrap().captures_iter(text).map(|found| found[1].to_owned()).collect()
}

#[test]
fn the_front_page_is_short_and_leads_to_every_page() {
    let readme = document("README.md");
    assert!(readme.lines().count() <= 180, "README.md has {} lines", readme.lines().count());
    for (name, _) in documents() {
        assert!(name == "README.md" || readme.contains(&format!("]({name})")), "README.md does not link to {name}");
    }
}

#[test]
fn every_link_leads_to_a_file() {
    let link = Regex::new(r"\]\(([^)#\s]+)(#[^)]*)?\)").unwrap();
    let mut known = 0;
    for (name, text) in documents() {
        for found in link.captures_iter(&text).filter(|found| !found[1].contains("://")) {
            let target = top().join(&name).parent().unwrap().join(&found[1]);
            assert!(target.exists(), "{name}: {} leads nowhere", &found[1]);
            known += 1;
        }
    }
    assert!(known > 15, "only {known} links were found");
}

/// Such names are meant from the top of the repository, wherever they stand.
#[test]
fn every_file_of_the_repository_that_is_named_exists() {
    let path = Regex::new(r"(?:^|[^\w/.-])((?:src|crates|tests|benches|scripts|docs)/[\w./-]*\w)").unwrap();
    let mut known = 0;
    let comments = |(file, text): (std::path::PathBuf, String)| {
        let said = text.lines().filter(|line| line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        (file.display().to_string(), said)
    };
    for (name, text) in documents().into_iter().chain(sources().into_iter().map(comments)) {
        for found in path.captures_iter(&text) {
            assert!(top().join(&found[1]).exists(), "{name} names {}, which is not there", &found[1]);
            known += 1;
        }
    }
    assert!(known > 100, "only {known} files were found");
}

/// A table or a section that somebody outside cannot open explains nothing.
#[test]
fn nothing_refers_to_a_page_outside_the_repository() {
    let foreign = Regex::new(r"DESIGN(\.md)?\b|HOUSE\.md|NAMES\.md|\breference/|§").unwrap();
    for (file, text) in sources() {
        for line in text.lines() {
            assert!(!foreign.is_match(line), "{}: {line}", file.display());
        }
    }
    for (name, text) in documents() {
        assert!(!foreign.is_match(&text), "{name}: {:?}", foreign.find(&text));
    }
}

#[test]
fn the_map_has_every_crate_and_every_module_in_order_with_the_crates_it_uses() {
    let page = document("docs/architecture.md");
    let crates = rows(section(&page, "### Crates"));
    let named: BTreeSet<String> = crates.iter().map(|row| quoted(&row[0]).remove(0)).collect();
    let there = std::fs::read_dir(top().join("crates")).unwrap().map(|entry| entry.unwrap().file_name());
    let there: BTreeSet<String> = there.map(|name| format!("crates/{}", name.into_string().unwrap())).collect();
    assert_eq!(named, there);

    let modules = rows(section(&page, "### Modules of `src/`"));
    let named: Vec<String> = modules.iter().map(|row| quoted(&row[0]).remove(0)).collect();
    let declared = Regex::new(r"(?m)^pub mod (\w+);").unwrap();
    let declared = declared.captures_iter(include_str!("../../src/lib.rs")).map(|found| format!("src/{}", &found[1]));
    assert_eq!(named, declared.collect::<Vec<_>>());

    let used = Regex::new(r"\bacheron_(\w+?)(::|\b)").unwrap();
    let (sources, short) = (sources(), |name: &str| name.rsplit('/').next().unwrap().to_owned());
    for (row, name) in crates.iter().chain(&modules).map(|row| (row, quoted(&row[0]).remove(0))) {
        let allowed = quoted(row.last().unwrap());
        for (file, text) in sources.iter().filter(|(file, _)| file.starts_with(&name)) {
            // A comment may point to a crate that uses this one.
            let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            for found in
                used.captures_iter(&code.join("\n")).filter(|found| there.contains(&format!("crates/{}", &found[1])))
            {
                let other = found[1].to_owned();
                let own = short(&name) == other && name.starts_with("crates/");
                assert!(own || allowed.contains(&other), "{} uses {other}; the map does not say so", file.display());
            }
        }
    }
}

/// Whether a test of that name is in that file.
fn is_test(file: &str, name: &str) -> bool {
    let text = std::fs::read_to_string(top().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    Regex::new(&format!(r"#\[(tokio::)?test[^\]]*\](\s*#\[[^\]]*\])*\s*(async )?fn {name}\(")).unwrap().is_match(&text)
}

#[test]
fn every_invariant_and_every_promise_names_a_test_that_exists() {
    let (map, promises) = (document("docs/architecture.md"), document("docs/stability.md"));
    let all = [rows(section(&map, "## Invariants")), rows(section(&promises, "## What it survives"))].concat();
    assert!(all.len() > 25, "only {} were found", all.len());
    each_names_a_test(all);
}

#[test]
fn everything_that_is_kept_names_a_test_of_how_long() {
    let page = document("docs/operations.md");
    let kept = rows(section(&page, "## What is kept"));
    assert!(kept.len() >= 15, "only {} were found", kept.len());
    each_names_a_test(kept);
}

/// Each attack of the table names a test that tries it again, and each file with attacks is in the table.
#[test]
fn every_attack_names_a_test_that_exists() {
    let walls = document("docs/security.md");
    let attacks = rows(section(&walls, "## Attacks"));
    assert!(attacks.len() > 45, "only {} were found", attacks.len());
    for file in std::fs::read_dir(top().join("tests/sandbox")).unwrap() {
        let name = format!("tests/sandbox/{}", file.unwrap().file_name().to_string_lossy());
        let about_use = ["main", "runs", "sessions"].iter().any(|it| name.ends_with(&format!("/{it}.rs")));
        assert!(about_use || walls.contains(&name), "no attack of {name} is in the table");
    }
    each_names_a_test(attacks);
}

/// The last cell of a row names files, each followed by its tests.
fn each_names_a_test(all: Vec<Vec<String>>) {
    for row in all {
        let mut file = None;
        let mut tests = 0;
        for word in quoted(row.last().unwrap()) {
            match word.ends_with(".rs") {
                true => file = Some(word),
                false => {
                    let file = file.as_deref().unwrap_or_else(|| panic!("no file for {word}"));
                    assert!(is_test(file, &word), "{file} has no test {word}");
                    tests += 1;
                }
            }
        }
        assert!(tests > 0, "no test holds: {}", row[0]);
    }
}

#[test]
fn the_drawn_tree_is_the_real_one() {
    let house = TestHost::new();
    let readme = document("README.md");
    let drawn = readme.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let mut path: Vec<String> = Vec::new();
    let mut known = 0;
    for line in drawn.lines().skip(1) {
        let (branch, rest) = line.split_once("── ").unwrap_or_else(|| panic!("{line}"));
        path.truncate(branch.chars().count() / 4);
        let name = rest.split("  ").next().unwrap();
        let (name, target) = name.split_once(" -> ").map_or((name, None), |(name, target)| (name, Some(target)));
        path.push(name.trim_end_matches('/').to_owned());
        let at = house.root().join(path.join("/"));
        assert!(at.symlink_metadata().is_ok(), "{line}");
        assert_eq!(at.is_dir() && target.is_none(), name.ends_with('/'), "{line}");
        assert_eq!(std::fs::read_link(&at).ok().as_deref(), target.map(Path::new), "{line}");
        known += 1;
    }
    assert!(known > 20, "only {known} names are drawn");
}

#[test]
fn the_figures_on_the_front_page_are_those_of_the_benchmarks() {
    let (readme, page) = (document("README.md"), document("docs/benchmarks.md"));
    let measured = rows(section(&page, "## Results"));
    let shown = rows(section(&readme, "## Performance"));
    assert_eq!(shown.len(), 5);
    for row in shown {
        assert!(measured.iter().any(|whole| whole.starts_with(&row)), "{row:?} is not in docs/benchmarks.md");
    }
}

#[test]
fn the_service_of_the_guide_for_contributors_is_one() {
    let guide = document("CONTRIBUTING.md");
    let shown = guide.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let (_, tested) = include_str!("example_service.rs").split_once("\n\n").unwrap();
    assert_eq!(shown, tested.replace("acheron::", "crate::"), "CONTRIBUTING.md and example_service.rs differ");

    let served = acheron::service::typed(crate::example_service::Parrot).unwrap();
    let page = String::from_utf8_lossy(&served.contract().pages().readme);
    for generated in ["# parrot", "Repeats what it is told.", "## echo", "The text to repeat.", "land ahoy"] {
        assert!(page.contains(generated), "{generated}: {page}");
    }
}

/// Quotations of our own code follow the name of their file.
#[test]
fn the_examples_of_style_are_our_own_code() {
    let guide = document("CONTRIBUTING.md");
    let quotation = Regex::new(r"(?s)\(`([\w/.]+\.rs)`\):\n\n```rust\n(.*?)```").unwrap();
    let found: Vec<_> = quotation.captures_iter(&guide).collect();
    assert_eq!(found.len(), 2, "two examples of ours");
    for example in found {
        assert!(document(&example[1]).contains(&example[2]), "{} does not contain\n{}", &example[1], &example[2]);
    }
}
