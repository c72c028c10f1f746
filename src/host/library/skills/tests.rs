use super::*;

#[test]
fn front_matter_is_yaml_and_other_keys_do_not_matter() {
    for (text, description) in [
        ("---\nname: river\ndescription: Cross it.\n---\nbody", "Cross it."),
        ("---\r\nname: \"river\"\r\ndescription: 'It''s: wide'\r\n---\r\n", "It's: wide"),
        (
            "---\nname: river\nmetadata:\n  name: other\n  tags: [a, b]\ndescription: >\n  Use it\n  when wet.\nallowed-tools: Bash Read\n---\n",
            "Use it when wet.",
        ),
        ("---\ndescription: |\n  one\n  two\nname: river\n---\n", "one two"),
    ] {
        let front = front_of(text).unwrap();
        assert_eq!((front.name.as_str(), front.description.as_str()), ("river", description));
    }
    let long = format!("---\nname: river\ndescription: {}\n---\n", "x".repeat(5000));
    assert_eq!(front_of(&long).unwrap().description.chars().count(), DESCRIPTION + 1);
}

#[test]
fn what_is_no_skill_says_why() {
    let laughs = (0..60).map(|n| format!("a{n}: &a{n} [*a{}, *a{}]\n", n - 1, n - 1)).collect::<String>();
    for (text, said) in [
        ("# Title", "does not begin with front matter"),
        ("---\nname: river\n---\n", "no `description`"),
        ("---\nname: River\ndescription: x\n---\n", "`name` in the front matter"),
        ("---\nname: a--b\ndescription: x\n---\n", "`name` in the front matter"),
        ("---\nname: [river]\ndescription: x\n---\n", "`name` in the front matter"),
        ("---\nname: \"river\ndescription: x\n---\n", "no YAML"),
        (&format!("---\n{}\n---\n", "x: y\n".repeat(20_000)), "more than 65536 bytes"),
        (&format!("---\n{laughs}---\n"), "the front matter"),
    ] {
        let error = front_of(text).unwrap_err().message;
        assert!(error.contains(said), "{text:.60}: {error}");
    }
}

#[test]
fn skills_are_listed_by_one_line_and_faults_by_their_reason() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("one/river/SKILL.md", "---\nname: river\ndescription: Cross it.\n---\nSee references/boat.md\n");
    write("one/river/references/boat.md", "A boat.\n");
    write("one/bad/SKILL.md", "no front matter");
    write("one/other/SKILL.md", "---\nname: another\ndescription: x\n---\n");
    write("one/notes/x.md", "no skill");
    write("two/river/SKILL.md", "---\nname: river\ndescription: Again.\n---\n");
    let pages = pages(&[dir.path().join("one"), dir.path().join("two"), dir.path().join("none")]);
    let names: Vec<&str> = pages.iter().map(|page| page.path.as_str()).collect();
    assert_eq!(names, ["skills/river/SKILL.md", "skills/river/references/boat.md", "skills/README.md"]);
    let index = &pages[2].text;
    assert!(index.contains("- `river`: Cross it.\n"), "{index}");
    for fault in
        ["- bad: SKILL.md does not begin", "- other: its name is `another`", "- river: a directory before", "/none: "]
    {
        assert!(index.contains(fault), "{fault}: {index}");
    }
}
