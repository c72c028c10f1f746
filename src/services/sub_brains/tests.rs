use super::*;
use crate::policy::Action;
use acheron_base::Code;

fn limits(rounds: u32) -> TurnLimits {
    TurnLimits { rounds, ..TurnLimits::default() }
}

#[test]
fn a_helper_has_its_parents_rights_or_less_and_the_smallest_budget() {
    let mut parent = Profile { depth: 1, ..Profile::default() };
    parent.spec.projects = vec!["here".into()];
    parent.spec.permissions = vec![Rule::deny(&[Action::Read], "/projects/here/fs/secret/**")];
    let deny = Rule::deny(&[Action::Invoke], "/agents/self/terminal/**");
    let brain = Brain { limits: Some(limits(10)), permissions: vec![deny.clone()], ..Brain::default() };
    let left = BudgetLimits { rounds: Some(7), tokens: Some(500), ..BudgetLimits::default() };
    let made = child("ada", &parent, &brain, Some(limits(9)), &left).unwrap();
    assert_eq!((made.spec.limits.rounds, made.spec.limits.tokens), (7, 500));
    assert_eq!((made.parent.as_deref(), made.depth), (Some("ada"), 2));
    assert_eq!(made.spec.permissions, [parent.spec.permissions[0].clone(), deny]);
    let nothing = BudgetLimits { tokens: Some(0), ..left };
    assert_eq!(child("ada", &parent, &brain, None, &nothing).unwrap_err().code, Code::BudgetExceeded);
}

#[test]
fn what_a_parent_may_not_do_in_its_own_subtree_its_helper_may_not_do_in_its_own() {
    for (path, expected) in [
        ("/agents/ada/terminal/**", "/agents/self/terminal/**"),
        ("/agents/ada", "/agents/self"),
        ("/agents/adam/terminal/**", "/agents/adam/terminal/**"),
        ("/agents/self/terminal/**", "/agents/self/terminal/**"),
        ("/projects/ada/fs/**", "/projects/ada/fs/**"),
    ] {
        assert_eq!(own(path, "ada"), expected);
    }
    let mut parent = Profile::default();
    parent.spec.permissions = vec![Rule::deny(&[Action::Invoke], "/agents/ada/terminal/**")];
    let left = limits_of(&parent.spec.limits);
    let made = child("ada", &parent, &Brain::default(), None, &left).unwrap();
    assert_eq!(made.spec.permissions, [Rule::deny(&[Action::Invoke], "/agents/self/terminal/**")]);
}

#[test]
fn a_helpers_name_is_an_id() {
    for (parent, brain) in [("ada", "scout"), (&*"a".repeat(64), &*"b".repeat(32))] {
        let name = name_of(parent, brain, "job-0192d0c0-0000-7000-8000-00000abcdef1");
        assert!(is_id(&name) && name.ends_with("1fedcba0"), "{name}");
    }
}

#[test]
fn a_helper_comes_before_those_below_it() {
    let of = |parent: &str| Profile { parent: Some(parent.to_owned()), ..Profile::default() };
    let all =
        [("a", "z"), ("b", "a"), ("c", "b"), ("d", "a"), ("e", "y")].map(|(id, parent)| (id.to_owned(), of(parent)));
    let all = BTreeMap::from(all);
    assert_eq!(descent(&all, "a"), ["a", "b", "d", "c"]);
    assert_eq!(descent(&all, "gone"), ["gone"]);
    // A ring, which no host makes, ends all the same.
    let ring = BTreeMap::from([("a", "b"), ("b", "a")].map(|(id, parent)| (id.to_owned(), of(parent))));
    assert_eq!(descent(&ring, "a"), ["a", "b"]);
}
