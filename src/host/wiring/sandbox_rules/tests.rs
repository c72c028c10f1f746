use super::*;
use crate::policy::Action::{Read, Write};
use crate::policy::Rule;

fn said(binds: &[(&str, bool)], rules: &[Rule]) -> String {
    let policy = Policy::default().agent("ada", &["p".to_owned()], rules).unwrap();
    let project = |(at, read_only): &(&str, bool)| {
        let (project, at, source) = ("p".to_owned(), (*at).to_owned(), PathBuf::from("/srv"));
        ProjectDir { project, at, source, id: None, read_only: *read_only, served_by: Some(ServedBy::Kernel) }
    };
    match kept(&policy, "ada", binds.iter().map(project).collect()) {
        Err(error) => error.message.chars().take(40).collect(),
        Ok((projects, guards)) => {
            let mode = |read_only| if read_only { "ro" } else { "rw" };
            let shown = projects.iter().map(|it| format!("{} {}", it.at, mode(it.read_only)));
            let below = |path: &Path| path.strip_prefix("/projects/p/fs").unwrap().display().to_string();
            let parts = guards.iter().map(|it| format!("{} {:?}", below(&it.path), it.show));
            shown.chain(parts).collect::<Vec<_>>().join(", ")
        }
    }
}

#[test]
fn rules_are_kept_by_binds_and_parts() {
    let deny = |path: &str| Rule::deny(&[Read, Write], path);
    let fixed = |path: &str| Rule::deny(&[Write], path);
    let allow = |path: &str| Rule::allow(&[Read, Write], path);
    for (binds, rules, expected) in [
        (&[("/", false)][..], vec![], "/ rw"),
        (&[("/", false)], vec![fixed("/projects/p/**")], "/ ro"),
        (&[("/", false)], vec![deny("/projects/p/fs/**")], ""),
        (&[("/", true)], vec![fixed("/projects/p/fs/a/**")], "/ ro"),
        (&[("/", false)], vec![fixed("/projects/p/fs/a/**")], "/ rw, a ReadOnly"),
        (&[("/", true)], vec![deny("/projects/p/fs/a/b/**")], "/ ro, a/b Hidden"),
        (&[("/", false)], vec![fixed("/projects/p/**"), allow("/projects/p/fs/o/**")], "/ ro, o Open"),
        (&[("/", false), ("/d", false)], vec![deny("/projects/p/fs/d/**")], "/ rw, d Hidden"),
        (&[("/", false), ("/d", false)], vec![fixed("/projects/p/fs/d/**")], "/ rw, /d ro"),
        (&[("/d", false)], vec![deny("/projects/p/fs/x/**")], "/d rw"),
        (
            &[("/", true)],
            vec![deny("/projects/p/fs/a/**"), allow("/projects/p/fs/a/b/**")],
            "programs cannot be run: the rule on /pro",
        ),
        (&[("/", true)], vec![deny("/projects/p/fs/*.pem")], "programs cannot be run: the rule on /pro"),
    ] {
        assert_eq!(said(binds, &rules), expected, "{binds:?} {rules:?}");
    }
}
