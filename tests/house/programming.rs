//! The programs on `topics/programming.md`, and `acheron wait`.

use std::process::Output;

use crate::common::{command, session};
use crate::test_host::TestHost;

const PAGE: &str = include_str!("../../global-library/topics/programming.md");

/// The block of this language on the page.
fn block(language: &str) -> &'static str {
    let begin = format!("```{language}\n");
    let (_, rest) = PAGE.split_once(begin.as_str()).unwrap();
    rest.split_once("```").unwrap().0
}

/// Runs a program in the tree, with this build of `acheron` on its path.
fn run(house: &TestHost, words: &[&str]) -> Output {
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_acheron")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    command(&house.root(), words).env("PATH", path).output().unwrap()
}

#[test]
fn the_programs_of_the_page_wait_for_their_event() {
    let house = TestHost::new();
    for (language, program) in [("python", ["python3", "-c"]), ("js", ["node", "-e"])] {
        let output = run(&house, &[program[0], program[1], block(language)]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("\"source_path\""), "{language}: {said}");
    }
}

/// With the `libc` that this build has.
#[test]
fn the_rust_program_of_the_page_waits_for_its_event() {
    let house = TestHost::new();
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("main.rs"), dir.path().join("main"));
    std::fs::write(&source, block("rust")).unwrap();
    let mut newest: Vec<_> = std::fs::read_dir(&deps).unwrap().map(|entry| entry.unwrap().path()).collect();
    newest.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("liblibc-") && name.ends_with(".rlib")
    });
    newest.sort_by_key(|path| std::fs::metadata(path).unwrap().modified().unwrap());
    let libc = format!("libc={}", newest.last().unwrap().display());
    let mut rustc = command(&house.root(), &["rustc", "--edition", "2024", "-L"]);
    let made = rustc.arg(&deps).arg("--extern").arg(libc).arg("-o").arg(&program).arg(&source).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let said = run(&house, &[program.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&said.stdout).contains("\"source_path\""), "{said:?}");
}

/// Where Go is installed: its module has to be fetched.
#[test]
fn the_go_program_of_the_page_waits_for_its_event() {
    if std::process::Command::new("go").arg("version").output().is_err() {
        return;
    }
    let (house, dir) = (TestHost::new(), tempfile::tempdir().unwrap());
    std::fs::write(dir.path().join("main.go"), block("go")).unwrap();
    let build = "go mod init page && go mod tidy && go build -o main .";
    let made = command(dir.path(), &["sh", "-c", build]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let said = run(&house, &[dir.path().join("main").to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&said.stdout).contains("\"source_path\""), "{said:?}");
}

#[test]
fn acheron_wait_ends_with_the_first_of_its_paths() {
    let house = TestHost::new();
    let output =
        run(&house, &["acheron", "wait", "agents/self/events/sources/time/after/20.json", "agents/self/memory"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with(house.root().to_str().unwrap()) && said.ends_with("20.json\n"), "{output:?}");

    let late = run(&house, &["acheron", "wait", "--timeout", "0.05", "agents/self/events/sources/user.json"]);
    assert_eq!((late.status.code(), late.stdout.as_slice()), (Some(124), &b""[..]), "{late:?}");

    let after = "acheron wait agents/self/events/sources/time/after/20.json > /dev/full";
    assert!(!run(&house, &["sh", "-c", after]).status.success(), "the event is lost");

    let wrong = run(&house, &["acheron", "wait", "/etc/passwd"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("/etc/passwd is in no mount"), "{wrong:?}");

    let made = session(
        &house.root(),
        &format!(
            "(sleep 0.3; echo '{{\"kind\":\"note\",\"name\":\"ford\",\"content\":\"x\"}}' > agents/self/memory/control/create.json) &
            {} wait agents/self/memory/items | sed 's|.*/agents|/agents|'",
            env!("CARGO_BIN_EXE_acheron")
        ),
    );
    assert_eq!(made, "/agents/charon/memory/items/ford\n");
}
