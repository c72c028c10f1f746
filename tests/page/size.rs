//! The page is small, and all of it comes from the program.

use std::io::Write;
use std::process::{Command, Stdio};

/// The bytes of a text that is compressed as a server would.
fn gzipped(bytes: &[u8]) -> usize {
    let mut child = Command::new("gzip").arg("-9c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.stdout.len()
}

fn files() -> Vec<(String, &'static [u8])> {
    let (mut found, mut open) = (Vec::new(), vec![&acheron::doors::web::PAGE]);
    while let Some(dir) = open.pop() {
        open.extend(dir.dirs());
        found.extend(dir.files().map(|file| (file.path().display().to_string(), file.contents())));
    }
    found.sort();
    found
}

#[test]
fn the_page_has_at_most_200_kb_compressed() {
    let files = files();
    let total: usize = files.iter().map(|(_, bytes)| gzipped(bytes)).sum();
    assert!(files.len() > 15 && total <= 200_000, "{} files, {total} bytes", files.len());
}

/// What is not named there is fetched one after the other.
#[test]
fn every_module_is_named_in_the_head_of_the_page() {
    let files = files();
    let head =
        files.iter().find(|(name, _)| name == "index.html").map(|(_, bytes)| String::from_utf8_lossy(bytes)).unwrap();
    for (name, _) in files.iter().filter(|(name, _)| name.ends_with(".js")) {
        assert!(head.contains(&format!("\"/web/{name}\"")), "index.html does not name {name}");
    }
}

#[test]
fn the_page_makes_no_elements_of_strings_and_asks_nobody_else() {
    for (name, bytes) in files() {
        let text = String::from_utf8_lossy(bytes);
        if name.starts_with("vendor/") || !(name.ends_with(".js") || name.ends_with(".html") || name.ends_with(".css"))
        {
            continue;
        }
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "dangerouslySet",
            "document.write",
            "eval(",
            "new Function",
        ] {
            assert!(!text.contains(word), "{name} has {word}");
        }
        for (at, _) in text.match_indices("://") {
            let around: String = text[..at].chars().rev().take(12).collect::<String>().chars().rev().collect();
            let pattern = around.ends_with("https?") || around.ends_with("http") && name == "markdown.js";
            let namespace = name.ends_with(".svg") || text[at..].starts_with("://www.w3.org");
            assert!(pattern || namespace, "{name} names another host near {around:?}");
        }
        assert!(!text.contains("<style") && !text.contains("onclick=\""), "{name} has something inline");
    }
}
