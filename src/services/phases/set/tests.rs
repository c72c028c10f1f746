use super::*;

pub fn source(stem: &str, id: &str, aliases: &[&str], max_visits: Option<u32>) -> PhaseSource {
    PhaseSource {
        stem: stem.to_owned(),
        phase_id: (!id.is_empty()).then(|| id.to_owned()),
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        max_visits,
        ..PhaseSource::default()
    }
}

fn five() -> PhaseSet {
    let sources = vec![
        source("04-build-narrative", "build_output", &[], None),
        source("00-symbolize-input", "", &[], None),
        source("03-validate", "validate_symbols", &[], None),
        source("01-recurse-thought", "", &[], None),
        source("02-synthesize", "synthesize_symbols", &[], None),
    ];
    PhaseSet::new("recursive", sources).unwrap()
}

#[test]
fn phases_stand_in_the_order_of_their_files() {
    let ids: Vec<String> = five().phases.into_iter().map(|phase| phase.phase_id).collect();
    assert_eq!(ids, ["symbolize_input", "recurse_thought", "synthesize_symbols", "validate_symbols", "build_output"]);
}

#[test]
fn a_phase_answers_to_all_its_names() {
    for (name, place) in [
        ("recurse_thought", Some(1)),
        ("01-recurse-thought", Some(1)),
        ("recurse-thought", Some(1)),
        ("Recurse_Thought", Some(1)),
        (" recurse thought ", Some(1)),
        ("validate", Some(3)),
        ("validate_symbols", Some(3)),
        ("build_output", Some(4)),
        ("build_narrative", Some(4)),
        ("build-narrative", Some(4)),
        ("synthesize", Some(2)),
        ("nowhere", None),
        ("", None),
        ("01", None),
    ] {
        assert_eq!(five().find(name), place, "{name}");
    }
}

#[test]
fn two_phases_of_one_name_are_refused_and_both_named() {
    let clash = PhaseSet::new("s", vec![source("00-a", "", &[], None), source("01-b", "", &["A"], None)]);
    assert_eq!(clash.unwrap_err().message, "phases 00-a and 01-b of set s are both called `a`");
    let clash = PhaseSet::new("s", vec![source("00-a-b", "", &[], None), source("01-a_b", "", &[], None)]);
    assert!(clash.is_err());
}

#[test]
fn a_file_that_is_only_a_number_keeps_its_name() {
    let set = PhaseSet::new("s", vec![source("7", "", &[], None)]).unwrap();
    assert_eq!((set.phases[0].phase_id.as_str(), set.find("7")), ("7", Some(0)));
}

#[test]
fn a_name_that_no_model_would_write_is_a_fault() {
    let set =
        PhaseSet::new("odd", vec![source("00-a", "[a", &[], None), source("01-b", "b", &["c. d"], None)]).unwrap();
    assert_eq!(set.phases.len(), 1);
    assert_eq!(set.faults[0].file, "00-a");
    assert!(set.faults[0].message.starts_with("`[a` is not the name of a phase"), "{:?}", set.faults);
}
