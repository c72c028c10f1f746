//! The manual pages and what else comes out of the program for those who install it.

use std::path::Path;
use std::process::Command;

use crate::test_host::TestHost;

fn acheron(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_acheron")).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The commands, as `--help` lists them.
fn commands() -> Vec<String> {
    let help = acheron(&["--help"]);
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let words = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let words = words.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    let words: Vec<String> = words.filter(|word| word != "help").collect();
    assert!(words.contains(&"mount".to_owned()) && words.len() >= 11, "{words:?}");
    words
}

/// A heading as roff wants it.
fn quoted(section: &str) -> String {
    if section.contains(' ') { format!("\"{section}\"") } else { section.to_owned() }
}

/// A page without its escapes and fonts.
fn plain(page: &str) -> String {
    page.replace("\\-", "-").replace("\\fB", "").replace("\\fI", "").replace("\\fR", "")
}

#[test]
fn the_pages_name_every_command_and_every_service() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("man");
    let told = acheron(&["man", dir.to_str().unwrap()]);
    assert!(told.contains(" pages to ") && told.contains(dir.to_str().unwrap()), "{told}");
    let one = std::fs::read_to_string(dir.join("acheron.1")).unwrap();
    let printed = acheron(&["man"]);
    for command in commands() {
        assert!(printed.contains(&format!("acheron\\-{command}(1)")), "what is printed does not name {command}");
        assert!(one.contains(&format!("acheron\\-{command}(1)")), "acheron.1 does not name {command}");
        assert!(dir.join(format!("acheron-{command}.1")).is_file(), "no page of {command}");
    }

    for section in ["SYNOPSIS", "ENVIRONMENT", "EXIT STATUS", "SEE ALSO"] {
        assert!(one.contains(&format!("\n.SH {}\n", quoted(section))), "acheron.1 has no {section}");
    }
    assert!(!one.contains("EXTRA") && one.contains("acheron (4)"), "{one}");
    let mount = std::fs::read_to_string(dir.join("acheron-mount.1")).unwrap();
    assert!(plain(&mount).contains("[--state DIR]"), "{mount}");

    // Every key of a mountspec, at any depth.
    let five = std::fs::read_to_string(dir.join("acheron-mountspec.5")).unwrap();
    for key in ["layout", "agents", "budget", "read_only", "base_url", "agent_limits", "narrator"] {
        assert!(five.contains(&format!(".TP\n.B {key}")), "acheron-mountspec.5 lacks {key}");
    }

    let four = std::fs::read_to_string(dir.join("acheron.4")).unwrap();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("global-library/services")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let heading = format!("\n.SS {}\n", name.trim_end_matches(".md"));
        assert!(four.contains(&heading), "acheron.4 does not tell of {name}");
    }
    for part in ["FILES", "SERVICES", "ERRORS", "BUGS"] {
        assert!(four.contains(&format!("\n.SH {part}\n")), "acheron.4 has no {part}");
    }
    let listed = include_str!("../../docs/bugs.md").matches("\n- ").count();
    assert!(listed > 10, "docs/bugs.md lists {listed}");
    assert_eq!(four.split(".SH BUGS").nth(1).unwrap().matches("\n.IP").count(), listed, "acheron.4 lacks a bug");
}

#[test]
fn every_file_of_the_manual_is_in_the_tree() {
    let house = TestHost::new();
    // A job, by name, is there when the names that stand for one are looked for.
    house.says(r#"echo '{"op":"search","arguments":{"query":"x"},"correlation_id":"mine"}' > agents/self/search_code/control/invoke.json; cat agents/self/search_code/result.json"#);
    for (path, _) in acheron::cli::manual::FILES {
        let path = path.replace("<correlation_id>", "mine").replace("jobs/<job>", "jobs/last");
        let path = path.replace("<ms>", "1").replace("<project>", "here");
        assert!(house.root().join(&path).symlink_metadata().is_ok(), "{path} is not there");
    }
}

#[test]
fn every_shell_can_complete_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = acheron(&["completions", shell]);
        assert!(script.contains("ACHERON_COMPLETE"), "{shell}: {script}");
    }
    // The scripts ask the program for words.
    let mut asked = Command::new(env!("CARGO_BIN_EXE_acheron"));
    asked.args(["--", "acheron", ""]).env("ACHERON_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "1");
    let offered = String::from_utf8(asked.output().unwrap().stdout).unwrap();
    for command in commands() {
        let first = command.split(' ').next().unwrap().to_owned();
        assert!(offered.lines().any(|word| word == first), "{command} is not offered: {offered}");
    }
}

#[test]
fn the_unit_starts_the_program_with_words_that_it_knows() {
    let unit = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/acheron.service")).unwrap();
    let known = commands();
    let started: Vec<&str> = unit.lines().filter_map(|line| line.split_once("/bin/acheron ")).map(|it| it.1).collect();
    assert_eq!(started, ["mount %h/ns", "unmount %h/ns"]);
    assert!(started.iter().all(|words| known.iter().any(|command| words.starts_with(command.as_str()))));
}
