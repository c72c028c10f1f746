//! States and mountspecs of earlier versions: each opens, and what was in it is there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::test_host::TestHost;
use acheron::spec::Spec;

fn fixtures(below: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(below);
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn a_state_of_every_earlier_schema_can_be_mounted_with_what_was_in_it() {
    let all = fixtures("state");
    assert!(all.len() >= 13, "{all:?}");
    for file in all {
        let schema: usize = file.to_str().unwrap().rsplit_once("schema-").unwrap().1[..2].parse().unwrap();
        let host = TestHost::prepared(r#"{"agents": {"charon": {}}}"#, |here| {
            let state = here.parent().unwrap().join("state");
            std::fs::create_dir(&state).unwrap();
            let unpacked = Command::new("gzip").arg("-dc").arg(&file).output().unwrap();
            std::fs::write(state.join("acheron.db"), unpacked.stdout).unwrap();
        });
        let job = host.says("jq -c '[.state, .service]' agents/charon/jobs/by/mine/status.json");
        assert_eq!(job, "[\"done\",\"memory\"]\n", "{schema}");
        let rang = host.says("jq -c 'select(.kind == \"signal\") | .payload.payload' agents/charon/events/log.ndjson");
        assert_eq!(rang, "\"rang\"\n", "{schema}");
        let denied = host.says("jq -r 'select(.kind == \"denied\") | .path' agents/charon/timeline.ndjson");
        assert_eq!(denied, "/agents/styx\n", "{schema}");
        if schema >= 2 {
            assert_eq!(host.says("cat agents/charon/memory/items/river/content"), "wide and slow\\\n", "{schema}");
            let found = host.says(
                r#"exec 3<>agents/charon/memory/control/search.json; echo '{"query":"slow"}' >&3; jq -c '[.result.results[].memory_path], .error' <&3"#,
            );
            assert_eq!(found, "[\"/agents/self/memory/items/river\"]\nnull\n", "{schema}");
        }
        if schema >= 7 {
            assert_eq!(host.says("jq -c .spent.money agents/charon/chat/status.json"), "0.5\n", "{schema}");
        }
        assert_eq!(host.says("jq .ok meta/health.json"), "true\n", "{schema}");
    }
}

#[test]
fn mountspecs_of_earlier_versions_are_read() {
    for file in fixtures("mountspec") {
        let text = std::fs::read_to_string(&file).unwrap();
        let faults = Spec::check(&text).err().unwrap_or_default();
        assert!(faults.is_empty(), "{}: {faults:?}", file.display());
    }
}

#[test]
fn the_version_names_the_commit_and_the_schema_and_a_newer_state_is_refused() {
    let acheron = || Command::new(env!("CARGO_BIN_EXE_acheron"));
    let said = String::from_utf8(acheron().arg("--version").output().unwrap().stdout).unwrap();
    let form = regex::Regex::new(r"^acheron \d+\.\d+\.\d+ \(commit ([0-9a-f]{7,40}|unknown), schema \d+\)\n$").unwrap();
    assert!(form.is_match(&said), "{said}");
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("ns")).unwrap();
    acheron_store::Connection::open(dir.path().join("acheron.db"))
        .unwrap()
        .execute_batch("PRAGMA user_version = 999")
        .unwrap();
    let ran = acheron().arg("mount").arg(dir.path().join("ns")).arg("--state").arg(dir.path()).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        !ran.status.success() && told.contains("the database has schema version 999, and this acheron knows"),
        "{told}"
    );
}
