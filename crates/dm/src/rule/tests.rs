use proptest::prelude::*;

use super::*;

#[test]
fn effects_print_as_they_are_written() {
    let text = "Heat+1 (seen on the quay); clock tide+2; take @lamp; lose @rope; time 10; hp-2; status @ivo hidden; quest @bell done; put @ivo @yard; mood @ivo wary; hold lands+2";
    let shown: Vec<String> = effects(text).unwrap().iter().map(Effect::to_string).collect();
    assert_eq!(shown.join("; "), text);
}

#[test]
fn row_81_an_indicator_changes_for_a_reason_or_not_at_all() {
    assert!(effects("Heat+1").unwrap_err().message.contains("needs a reason"));
    assert!(effects("Heat+x (why)").is_err());
    assert!(effects("burn @Everything").is_err());
    assert!(effects("Heat-9223372036854775808 (why)").unwrap_err().message.contains("too much"));
}

#[test]
fn conditions_that_cannot_both_hold_exclude_each_other() {
    let excludes = |one: &str, two: &str| Condition::parse(one).unwrap().excludes(&Condition::parse(two).unwrap());
    for (one, two, wanted) in [
        ("quest @bell active", "quest @bell done", true),
        ("night & quest @bell done", "quest @bell active", true),
        ("quest @bell done", "quest @bell done", false),
        ("quest @bell active", "quest @lamp done", false),
        ("!quest @bell done", "quest @bell done", true),
        ("night", "!night", true),
    ] {
        assert_eq!((excludes(one, two), excludes(two, one)), (wanted, wanted), "{one} and {two}");
    }
}

#[test]
fn conditions_are_a_list_of_terms() {
    let found = Condition::parse("Rumor>=2 & @lamp & !clue @ring & quest @bell done & clock tide full").unwrap();
    assert_eq!(found.0.len(), 5);
    assert_eq!(found.0[0], Term::Level("Rumor".into(), Order::AtLeast, 2));
    assert!(Condition::parse("if it rains").is_err());
    assert!(Condition::parse(&format!("{}@lamp", "!".repeat(100_000))).unwrap_err().message.contains("denied twice"));
    assert_eq!(Condition::parse("-").unwrap(), Condition::default());
    assert_eq!(Condition::parse("night & seen @quay & day>=3").unwrap().0.len(), 3);
    assert!(effects("mood @ivo angry").unwrap_err().message.contains("friendly"));
}

proptest! {
    #[test]
    fn no_rule_breaks_the_reader(text in "[@a-z+() ;&<>=!0-9-]{0,40}\\PC{0,6}") {
        let _ = (Condition::parse(&text), effects(&text));
    }
}
