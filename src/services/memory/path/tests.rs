use proptest::prelude::*;

use super::*;
use acheron_base::Code;

#[test]
fn paths_are_read() {
    let table = [
        ("/agents/self/memory/items/plan", Ok(("plan", None))),
        ("agents/charon/memory/items/plan/", Ok(("plan", None))),
        ("/agents/self/memory/items/plan/content", Ok(("plan", None))),
        ("/agents/self/memory/items/plan/versions/12", Ok(("plan", Some(12)))),
        ("items/a.b_c-9", Ok(("a.b_c-9", None))),
        ("plan", Ok(("plan", None))),
        (" plan\n", Ok(("plan", None))),
        ("/agents/styx/memory/items/plan", Err(Code::Forbidden)),
        ("/agents/self/memory/items/plan/versions/0", Err(Code::InvalidPayload)),
        ("/agents/self/memory/items/plan/versions/-1", Err(Code::InvalidPayload)),
        ("/agents/self/memory/items/plan/versions/99999999999999999999", Err(Code::InvalidPayload)),
        ("/agents/self/memory/items/plan/meta.json", Err(Code::InvalidPayload)),
        ("/agents/self/memory/items", Err(Code::InvalidPayload)),
        ("/agents/self/memory/items/../plan", Err(Code::InvalidPayload)),
        ("", Err(Code::InvalidPayload)),
    ];
    for (path, expected) in table {
        let read = Target::read(path, "charon").map_err(|error| error.code);
        let expected = expected.map(|(name, version)| Target { name: name.into(), version });
        assert_eq!(read, expected, "{path:?}");
    }
}

#[test]
fn names_are_checked() {
    let long = "a".repeat(128);
    for name in ["a", "0", "a.b", "a-_.", long.as_str()] {
        assert!(check(name).is_ok(), "{name}");
    }
    let longer = "a".repeat(129);
    for name in ["", ".", "..", "-a", "_", "A", "a/b", "a b", "ä", "a\0", longer.as_str()] {
        assert!(check(name).is_err(), "{name:?}");
    }
}

#[test]
fn names_are_made_from_kinds() {
    for (kind, name) in [("note", "note-7"), ("Decision Log!", "decision-log-7"), ("決定", "memory-7")] {
        assert_eq!(generated(kind, 7), name);
        check(name).unwrap();
    }
}

proptest! {
    #[test]
    fn what_is_shown_is_read_back(name in "[a-z0-9][a-z0-9._-]{0,20}", version in proptest::option::of(1u64..1000)) {
        let target = Target { name, version };
        prop_assert_eq!(Target::read(&target.to_string(), "charon").unwrap(), target);
    }

    #[test]
    fn nothing_panics_and_what_passes_is_a_name(path in ".{0,60}") {
        if let Ok(target) = Target::read(&path, "charon") {
            prop_assert!(check(&target.name).is_ok());
        }
    }

    #[test]
    fn a_generated_name_is_a_name(kind in ".{0,80}", n: u64) {
        prop_assert!(check(&generated(&kind, n)).is_ok());
    }
}
