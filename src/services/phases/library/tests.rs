use super::*;

#[test]
fn the_five_phases_are_those_of_the_protocol() {
    let library = Library::built_in();
    let set = set(&library, "recursive").unwrap();
    let table: Vec<(&str, &str)> =
        set.phases.iter().map(|phase| (phase.file.as_str(), phase.phase_id.as_str())).collect();
    assert_eq!(
        table,
        [
            ("00-symbolize-input", "symbolize_input"),
            ("01-recurse-thought", "recurse_thought"),
            ("02-synthesize", "synthesize_symbols"),
            ("03-validate", "validate_symbols"),
            ("04-build-narrative", "build_output"),
        ]
    );
    assert!(names(&library).contains(&"recursive".to_owned()));
}

#[test]
fn every_phase_carries_the_beacon_and_names_only_phases_that_there_are() {
    let beacon: Vec<u32> = TRUST_BEACON.chars().map(|c| c as u32).collect();
    assert_eq!(beacon, [0x5B, 0x3A3, 0x54, 0x52, 0x2D, 0x27D0, 0x21CC, 0x1F714, 0x21CC, 0x27D0, 0x5D]);
    let library = Library::built_in();
    let set = set(&library, "recursive").unwrap();
    for phase in &set.phases {
        let text = own(&library, "recursive", &phase.file).unwrap();
        assert!(text.contains(TRUST_BEACON) && text.contains("⟐CMD"), "{}", phase.file);
        let routes = text.split("Valid routes: ").nth(1).unwrap_or_default();
        for route in routes.split(['.', ',']).map(str::trim).filter(|route| !route.is_empty()) {
            assert!(set.find(route).is_some(), "{}: {route}", phase.file);
        }
    }
    let whole = system(&library, "recursive", "00-symbolize-input").unwrap();
    assert_eq!(whole.len(), 4);
    assert!(whole[0].contains(TRUST_BEACON));
}

#[test]
fn the_commands_that_the_prompts_show_are_commands() {
    let library = Library::built_in();
    for phase in &set(&library, "recursive").unwrap().phases {
        let text = own(&library, "recursive", &phase.file).unwrap();
        for asked in super::super::command::marked(&text).commands {
            super::super::action::read(&asked.body).unwrap();
        }
    }
}

#[test]
fn a_set_that_is_none_is_refused() {
    for name in ["nowhere", "shared"] {
        let fault = set(&Library::built_in(), name).unwrap_err();
        assert!(fault.message.starts_with(&format!("there are no phases in the set `{name}`; sets are ")), "{fault}");
    }
    assert!(own(&Library::built_in(), "recursive", "99-none").is_err());
}
