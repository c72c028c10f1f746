use super::*;

#[test]
fn only_the_first_folder_decides() {
    for (path, class) in [
        ("index.md", Class::Index),
        ("semantic/index.md", Class::Node),
        ("sleep/1/job.md", Class::Sleep),
        ("sleep.md", Class::Node),
        ("semantic/sleep/REM.md", Class::Node),
        ("episodic-raw/20260101/a/1-user.md", Class::Raw),
        ("meta/prompt.md", Class::Meta),
        ("Loose.md", Class::Node),
    ] {
        assert_eq!(Class::of(path), class, "{path}");
    }
}

#[test]
fn front_matter_ends_with_a_line_of_its_own() {
    for (text, wanted) in [
        ("---\ncreated: 1\n---\n# T\n", "# T\n"),
        ("---\nnote: a --- b\n---\nx", "x"),
        ("---\nnever closed\n", "---\nnever closed\n"),
        ("# T\n---\nx\n---\n", "# T\n---\nx\n---\n"),
        ("", ""),
    ] {
        assert_eq!(body(text), wanted, "{text:?}");
    }
}

#[test]
fn a_section_has_what_is_below_it() {
    let text = "# A\none\n## B\ntwo\n### C\nthree\n```\n## no\n```\n## D\nfour\n";
    assert_eq!(section(text, "b"), Some("## B\ntwo\n### C\nthree\n```\n## no\n```\n"));
    assert_eq!(section(text, "D"), Some("## D\nfour\n"));
    assert_eq!(section(text, "no"), None);
}
