//! `docs/many-machines.md` as it is written: every block, in order, in one shell.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::common::GUARD;
use acheron_nats::test_server::{free_port, server};

/// The shell blocks of the page, without their indentation.
fn blocks(page: &str) -> String {
    let (mut script, mut indent) = (String::new(), None);
    for line in page.lines() {
        let text = line.trim_start();
        match (indent, text) {
            (None, "```sh") => indent = Some(line.len() - text.len()),
            (Some(_), "```") => indent = None,
            (Some(spaces), _) => script.push_str(&format!("{}\n", line.get(spaces..).unwrap_or_default())),
            (None, _) => (),
        }
    }
    script
}

#[test]
fn the_recipe_for_three_hosts_works_as_it_is_written() {
    let page = include_str!("../../docs/many-machines.md");
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("bin")).unwrap();
    std::fs::create_dir(dir.path().join("work")).unwrap();
    symlink(env!("CARGO_BIN_EXE_acheron"), dir.path().join("bin/acheron")).unwrap();
    symlink(server(), dir.path().join("bin/nats-server")).unwrap();
    let (port, monitor) = (format!(":{}", free_port()), format!(":{}", free_port()));
    let script = blocks(page).replace(":4222", &port).replace(":8222", &monitor);
    assert!(script.matches(&port).count() >= 4, "every command names the server:\n{script}");
    // Whatever happens, nothing stays behind; what is gone already is no failure of the recipe.
    let clean = "trap 'set +e; for node in acheron styx lethe; do acheron unmount ns-$node 2> /dev/null; done; kill $server 2> /dev/null' EXIT";
    let path = format!("{}:{}", dir.path().join("bin").display(), std::env::var("PATH").unwrap());
    let output = Command::new("timeout")
        .args([
            "--kill-after=5",
            &(GUARD.as_secs() * 2).to_string(),
            "bash",
            "-euo",
            "pipefail",
            "-c",
            &format!("{clean}\n{script}"),
        ])
        .current_dir(dir.path().join("work"))
        .env("PATH", path)
        .env("XDG_STATE_HOME", dir.path().join("state"))
        .output()
        .unwrap();
    let (said, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complaints}");
    for expected in [
        "lethe can join",
        "survives a power failure: fine",
        "\"up\": true",
        "[true,true]",
        "operator: Are you there?",
        "Orpheus",
    ] {
        assert!(said.contains(expected), "{expected} in\n{said}\n{complaints}");
    }
    let names: Vec<&str> = said.lines().filter(|line| ["acheron", "lethe", "local", "styx"].contains(line)).collect();
    assert_eq!(names, ["acheron", "lethe", "local", "styx"], "{said}");
}
