//! Who may know whom: reads the sources and fails on a stranger's name.

use std::path::{Path, PathBuf};

use crate::common::sources;

/// A crate and the only places that may name it.
const NAMED_IN: [(&str, &[&str]); 5] = [
    ("fuser::", &["src/fuse/"]),
    ("reqwest::", &["src/http.rs", "src/http/"]),
    ("rusqlite::", &["src/store/"]),
    ("clap::", &["src/cli.rs", "src/cli/"]),
    ("redis::", &["src/services/symbols/"]),
];

/// A module and what it must not use.
const KNOWS_NOT: [(&str, &[&str]); 6] = [
    ("src/vfs/", &["crate::service", "crate::services", "crate::fuse", "crate::agent", "crate::host", "crate::jobs"]),
    ("src/fuse/", &["crate::service", "crate::services", "crate::agent", "crate::host", "crate::jobs"]),
    ("src/jobs/", &["crate::services", "crate::fuse", "crate::agent", "crate::host", "crate::service"]),
    ("src/events/", &["crate::services", "crate::fuse", "crate::agent", "crate::host", "crate::service"]),
    ("src/store/", &["crate::services", "crate::fuse", "crate::agent", "crate::host", "crate::service"]),
    ("src/services/", &["crate::fuse", "crate::cli"]),
];

fn lies_in(file: &Path, places: &[&str]) -> bool {
    places.iter().any(|place| file.to_string_lossy().starts_with(place))
}

/// The code of a file, without comments: those may name anybody.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn all() -> Vec<(PathBuf, String)> {
    let files = sources();
    assert!(files.len() > 100, "the sources were not found");
    files
}

#[test]
fn a_library_is_named_in_one_module() {
    let words = NAMED_IN.map(|(name, _)| regex::Regex::new(&format!(r"\b{}", regex::escape(name))).unwrap());
    for (file, text) in all() {
        let code = code(&text);
        for ((name, places), word) in NAMED_IN.iter().zip(&words) {
            assert!(!word.is_match(&code) || lies_in(&file, places), "{} names {name}", file.display());
        }
    }
}

#[test]
fn a_layer_does_not_know_those_above_it() {
    for (file, text) in all() {
        for (place, strangers) in KNOWS_NOT {
            if lies_in(&file, &[place]) {
                for stranger in strangers {
                    let word = regex::Regex::new(&format!(r"{}\b", regex::escape(stranger))).unwrap();
                    assert!(!word.is_match(&code(&text)), "{} knows {stranger}", file.display());
                }
            }
        }
    }
}

/// What a service needs of the host comes with the agent's `World`.
#[test]
fn no_folder_of_a_service_knows_the_host() {
    let folder = |file: &Path| file.starts_with("src/services") && file.components().count() > 3;
    for (file, text) in all().into_iter().filter(|(file, _)| folder(file)) {
        assert!(!code(&text).contains("crate::host"), "{} knows the host", file.display());
    }
}

#[test]
fn no_left_over_is_left() {
    for (file, text) in all() {
        for word in ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!(")) {
            assert!(!code(&text).contains(&word), "{} has {word}", file.display());
        }
    }
}
