use super::*;

#[test]
fn savers_are_recognised_and_people_are_not() {
    let of = |name: &str| drafts_of(name).any(|real| real == "content");
    for name in [
        ".content.swp",
        "content~",
        "#content#",
        "content.tmp",
        "content.tmp.4711.1763405000123",
        "content.0f3e9a77.tmp",
        "content.1763405000",
        ".content.aBcDeF",
        "content.AB3XYZ",
        ".content1234567",
        "content.vsctmp",
    ] {
        assert!(of(name), "{name}");
    }
    for name in [
        "content.txt",
        "content.bak",
        "content.old",
        "content.orig",
        "content1",
        "content.v2",
        "my.content",
        "content.backup",
        "content.new",
    ] {
        assert!(!of(name) && !is_made_up(name), "{name}");
    }
}

#[test]
fn made_up_names_are_recognised() {
    for name in [
        "sedAb3xYz",
        "4913",
        ".tmpXy12",
        "tmp.4f2a",
        "tmpfile",
        ".goutputstream-AB3XYZ",
        "1234567890.tmp",
        "aB3xYz9Q",
        "abcdEFGH",
        "0b5f7a3e-2d1c-4f5e-8a9b-0c1d2e3f4a5b",
    ] {
        assert!(is_made_up(name), "{name}");
    }
    for name in [
        "contents",
        "Contents",
        "content1",
        "CHANGES1",
        "Version2",
        "20261118",
        "tmp.json",
        "sed12",
        "notes",
        "craete.json",
        ".nfs0001",
        "",
    ] {
        assert!(!is_made_up(name), "{name}");
    }
}
