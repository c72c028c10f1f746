//! Arbitrary bytes to every file that takes any: the host refuses, and stays.

use std::io::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::test_host::TestHost;

/// Every file below `dir` that can be written, links not followed.
fn writable(dir: &Path, found: &mut Vec<PathBuf>) {
    use std::os::unix::fs::PermissionsExt;

    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let meta = entry.path().symlink_metadata().unwrap();
        if meta.is_dir() && entry.file_name() != "fs" {
            writable(&entry.path(), found);
        } else if meta.is_file() && meta.permissions().mode() & 0o200 != 0 {
            found.push(entry.path());
        }
    }
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        "[\\{\\}\\[\\]\",:a-z0-9 \\\\\n]{0,120}".prop_map(String::into_bytes),
        "\\{\"op\":\"[a-z_]{0,12}\",\"arguments\":\\{\"[a-z_]{1,8}\":(null|1|\"\\PC{0,20}\"|\\[\\]|\\{\\})\\}\\}"
            .prop_map(String::into_bytes),
        (1usize..3000).prop_map(|depth| [b"{\"a\":".repeat(depth), b"1".to_vec(), b"}".repeat(depth)].concat()),
    ]
}

#[test]
fn any_bytes_to_any_control_file_are_taken_or_refused() {
    let house = TestHost::new();
    let mut files = Vec::new();
    writable(&house.root(), &mut files);
    assert!(files.len() > 40, "only {} files take commands", files.len());
    let mut runner = TestRunner::new(Config { cases: 12, failure_persistence: None, ..Config::default() });
    for file in files {
        runner
            .run(&payload(), |bytes| {
                if let Ok(mut open) = std::fs::OpenOptions::new().write(true).open(&file) {
                    _ = open.write_all(&bytes); // refused or not
                }
                Ok(())
            })
            .unwrap();
    }
    house.check("jq .ok meta/health.json", expect_test::expect![["true\n"]]);
}

#[test]
fn a_slow_writer_holds_nobody_up() {
    let house = TestHost::new();
    let mut controls = Vec::new();
    writable(&house.root().join("agents/self/"), &mut controls);
    controls.retain(|path| path.ends_with("control/invoke.json"));
    assert!(controls.len() > 8, "{controls:?}");
    let slow: Vec<_> = (0..50)
        .flat_map(|_| &controls)
        .map(|control| {
            let mut open = std::fs::OpenOptions::new().write(true).open(control).unwrap();
            open.write_all(b"{\"op\":").unwrap();
            open
        })
        .collect();
    house.check(
        r#"echo '{"query":"main"}' > agents/self/search_code/control/search.json; jq .ok agents/self/search_code/result.json"#,
        expect_test::expect![["true\n"]],
    );
    drop(slow);
    crate::common::until("what was never finished is a refusal", || {
        house.says("jq -r .error.message agents/self/search_code/status.json").contains("incomplete")
    });
}

#[test]
fn ten_thousand_open_handles_are_only_handles() {
    let house = TestHost::new();
    let page = house.root().join("README.md");
    let (_, most) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    let many = usize::try_from(most.min(10_500)).unwrap().saturating_sub(500);
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, most, most).unwrap();
    let open: Vec<_> = (0..many).map(|_| std::fs::File::open(&page).unwrap()).collect();
    house.check("head -1 README.md", expect_test::expect![["# Acheron\n"]]);
    drop(open);
    crate::common::until("they are closed", || house.says("jq .open_handles meta/metrics.json").trim() == "1");
}
