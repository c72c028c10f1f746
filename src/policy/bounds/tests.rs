use super::Action::{Read, Write};
use super::*;

fn said(own: &[Rule]) -> String {
    let policy = Policy::default().agent("ada", &["p".to_owned()], own).unwrap();
    match bounds(&policy, "ada", "/projects/p/fs") {
        Err(rule) => format!("not: {rule}"),
        Ok(bounds) => {
            let mode =
                |it: &SubtreeBound| format!("{}{}", if it.read { "r" } else { "-" }, if it.write { "w" } else { "-" });
            let said = bounds.iter().map(|it| format!("{}={}", it.path.replace("/projects/p/fs", "."), mode(it)));
            said.collect::<Vec<_>>().join(" ")
        }
    }
}

#[test]
fn rules_become_bounds_of_subtrees() {
    let deny = |path: &str| Rule::deny(&[Read, Write], path);
    let allow = |path: &str| Rule::allow(&[Read, Write], path);
    let fixed = |path: &str| Rule::deny(&[Write], path);
    for (rules, expected) in [
        (vec![], ".=rw"),
        (vec![allow("/projects/p/fs/**/*.md")], ".=rw"),
        (vec![deny("/agents/self/terminal/**")], ".=rw"),
        (vec![deny("/projects/q/**")], ".=rw"),
        (vec![fixed("/projects/p/**")], ".=r-"),
        (vec![fixed("/projects/**")], ".=r-"),
        (vec![deny("/projects/p/fs/secret/**")], ".=rw ./secret=--"),
        (vec![deny("/projects/*/fs/a/b/**"), fixed("/projects/p/fs/c")], ".=rw ./c=r- ./a/b=--"),
        (vec![fixed("/projects/p/**"), allow("/projects/p/fs/out/**")], ".=r- ./out=rw"),
        (vec![deny("/projects/p/fs/**/*.pem")], "not: /projects/p/fs/**/*.pem"),
        (vec![deny("/**/secret/**")], "not: /**/secret/**"),
        (vec![deny("/projects/p/fs/s*")], "not: /projects/p/fs/s*"),
    ] {
        assert_eq!(said(&rules), expected, "{rules:?}");
    }
}

#[test]
fn what_holds_something_denied_is_divided() {
    let own = [Rule::deny(&[Read], "/projects/p/fs/a/b/**")];
    let policy = Policy::default().agent("ada", &["p".to_owned()], &own).unwrap();
    let ada = Principal::Agent("ada".to_owned());
    for (path, expected) in [("a", true), ("a/b", false), ("c", false)] {
        assert_eq!(divided(&policy, &ada, &format!("/projects/p/fs/{path}")), expected, "{path}");
    }
    assert!(!divided(&policy, &Principal::Operator, "/projects/p/fs/a"));
}
