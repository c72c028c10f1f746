use proptest::prelude::*;

use super::*;

#[test]
fn front_matter_gives_its_names_and_the_rest_is_the_text() {
    let file = "---\nphase_id: recurse_thought\naliases:\n  - one\n  - 'two'\nmax_visits: 3\ncommands: []\nroutes:\n- a\n\
        dialect: recall\n---\nbody\n";
    let front = Front {
        phase_id: Some("recurse_thought".to_owned()),
        aliases: vec!["one".to_owned(), "two".to_owned()],
        max_visits: Some(3),
        commands: Some(vec![]),
        routes: Some(vec!["a".to_owned()]),
        dialect: Dialect::Recall,
    };
    assert_eq!(split(file), Ok((front, "body\n", 11)));
    assert_eq!(split("---\naliases: [a, \"b\"]\n---\n").unwrap().0.aliases, ["a", "b"]);
    assert_eq!(split("no front\n---\n"), Ok((Front::default(), "no front\n---\n", 0)));
}

#[test]
fn what_it_does_not_know_is_refused_with_its_line() {
    let rows = [
        (
            "---\nphase: x\n---\n",
            2,
            "front matter has no `phase`; it knows phase_id, aliases, max_visits, commands, routes, dialect",
        ),
        ("---\nroutes: a\n---\n", 2, "routes are written [a, b], or one per line after '- '"),
        ("---\n\nmax_visits: 0\n---\n", 3, "max_visits is a whole number above 0, not `0`"),
        ("---\ndialect: jinja\n---\n", 2, "dialect is plain or recall, not `jinja`"),
        ("---\nphase_id: a\nphase_id: b\n---\n", 3, "`phase_id` is given twice"),
        ("---\nwords\n---\n", 2, "front matter is written as 'name: value'"),
        ("---\nphase_id: a\n", 1, "front matter is never closed by a line of ---"),
    ];
    for (file, line, message) in rows {
        assert_eq!(split(file).unwrap_err(), Wrong { line, column: 1, message: message.to_owned() });
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(---\n)?[a-z:\\-\\[\\]' \n]{0,60}(---\n)?") {
        let _ = split(&text);
    }
}
