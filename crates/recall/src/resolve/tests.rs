use proptest::prelude::*;

use super::*;
use crate::index::tests::of;

fn wiki() -> Index {
    of(&[
        ("index.md", ""),
        ("semantic/Foo.md", "# Foo\n## Part\n"),
        ("semantic/v1.md", ""),
        ("semantic/v1.2.md", ""),
        ("semantic/Bar.md", ""),
        ("episodic/Bar.md", ""),
        ("semantic/Twin.md", ""),
        ("semantic/TWIN.md", ""),
        ("semantic/Cafe\u{301}.md", ""),
        ("semantic/C#.md", ""),
        ("semantic/sleep/REM.md", ""),
        ("semantic/Root.md", ""),
        ("Root.md", ""),
        ("sleep/1/job.md", ""),
        ("episodic-raw/20260101/a/1-user.md", ""),
        ("meta/system-runtime.md", ""),
    ])
}

fn told(spoken: &str, access: Access) -> String {
    match wiki().resolve(spoken, access) {
        Ok(Found { page, heading: None }) => page.path.to_string(),
        Ok(Found { page, heading: Some(heading) }) => format!("{} at {heading}", page.path),
        Err(Miss::Ambiguous(paths)) => format!("ambiguous: {}", paths.join(", ")),
        Err(miss) => miss.code().to_owned(),
    }
}

#[test]
fn a_name_leads_to_its_page() {
    for (spoken, wanted) in [
        ("Foo", "semantic/Foo.md"),
        (" Foo ", "semantic/Foo.md"),
        ("foo", "semantic/Foo.md"), // 29
        ("Index", "index.md"),
        ("Foo.md", "semantic/Foo.md"),
        ("semantic/Foo", "semantic/Foo.md"),
        ("./semantic/Foo", "semantic/Foo.md"),
        ("semantic/Foo.md", "semantic/Foo.md"),
        ("Semantic/foo", "semantic/Foo.md"),
        ("[[Foo]]", "semantic/Foo.md"),
        ("Foo|alias", "semantic/Foo.md"), // 35
        ("[[Foo#Part|alias]]", "semantic/Foo.md at Part"),
        ("Foo#Part", "semantic/Foo.md at Part"),
        ("semantic/Foo#Part", "semantic/Foo.md at Part"),
        ("C#", "semantic/C#.md"),
        ("C##Part", "not_found"),
        ("v1.2", "semantic/v1.2.md"), // 30
        ("semantic/v1.2", "semantic/v1.2.md"),
        ("v1", "semantic/v1.md"),
        ("Bar", "ambiguous: episodic/Bar.md, semantic/Bar.md"),
        ("Bar.md", "ambiguous: episodic/Bar.md, semantic/Bar.md"),
        ("semantic/Bar", "semantic/Bar.md"),
        ("Root.md", "Root.md"),
        ("Root", "ambiguous: Root.md, semantic/Root.md"),
        ("Twin", "semantic/Twin.md"),
        ("twin", "ambiguous: semantic/TWIN.md, semantic/Twin.md"),
        ("Caf\u{e9}", "semantic/Cafe\u{301}.md"), // 36
        ("REM", "semantic/sleep/REM.md"),
        ("/semantic/Foo", "denied"), // 31
        ("../secret", "denied"),
        ("semantic/../../secret", "denied"),
        ("semantic/../semantic/Foo", "denied"),
        ("/etc/passwd", "denied"),
        ("a\0b", "denied"),
        ("a\0/b", "denied"),
        ("job", "not_found"), // 32
        ("1-user", "not_found"),
        ("sleep/1/job.md", "denied"),
        ("episodic-raw/20260101/a/1-user", "denied"),
        ("system-runtime", "not_found"),
        ("meta/system-runtime", "meta/system-runtime.md"),
        ("", "empty"),
        ("[[]]", "empty"),
        ("/", "denied"),
        ("..", "denied"),
        (".md", "not_found"),
        ("semantic/", "not_found"),
        ("nothing", "not_found"),
    ] {
        assert_eq!(told(spoken, Access::Nodes), wanted, "{spoken:?}");
    }
    assert_eq!(told("job", Access::Raw), "sleep/1/job.md");
    assert_eq!(told("episodic-raw/20260101/a/1-user", Access::Raw), "episodic-raw/20260101/a/1-user.md");
    assert_eq!(told("../job", Access::Raw), "denied");
}

proptest! {
    #[test]
    fn no_name_leads_out(spoken in "(\\.\\./|/|\\.|a|sleep/|Foo|\\.md|#|\\||\\[\\[|\\]\\]|\0| ){0,12}") {
        if let Ok(found) = wiki().resolve(&spoken, Access::Nodes) {
            prop_assert!(!found.page.class.excluded());
        }
        if let Ok(path) = path_of(&spoken) {
            prop_assert!(!path.starts_with('/') && path.split('/').all(|part| part != ".." && !part.is_empty()));
        }
    }
}
