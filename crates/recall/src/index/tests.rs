use super::*;

/// An index of pages given as path and text.
pub fn of(pages: &[(&str, &str)]) -> Index {
    let mut index = Index::default();
    for (path, text) in pages {
        index.put(Page::of(path, text, text.len() as u64, 0));
    }
    index
}

#[test]
fn a_page_that_goes_leaves_nothing_behind() {
    let mut index = of(&[("index.md", "[[Foo]]"), ("semantic/Foo.md", "# The foo\na word [[index]]")]);
    assert!(index.has_memory());
    assert!(index.remove("semantic/Foo.md") && index.remove("index.md"));
    assert!(!index.has_memory() && index.titles.0.is_empty() && index.names.0.is_empty());
    assert!(index.mentions.0.is_empty() && index.words == 0 && index.unread == 0);
    assert!(index.is_dir("semantic"));
}

#[test]
fn names_are_those_of_one_directory() {
    let mut index = of(&[("index.md", ""), ("a/x.md", ""), ("a/b/y.md", ""), ("a-c.md", ""), ("a0.md", "")]);
    assert_eq!(index.names(""), (vec!["a".into()], vec!["a-c.md".into(), "a0.md".into(), "index.md".into()]));
    assert_eq!(index.names("a"), (vec!["b".into()], vec!["x.md".into()]));
    index.remove_below("a");
    assert_eq!(index.names("").0, Vec::<String>::new());
    assert_eq!(index.pages().count(), 3);
}

#[test]
fn what_is_no_node_does_not_count_as_memory() {
    let index =
        of(&[("index.md", ""), ("meta/system.md", ""), ("sleep/1/job.md", ""), ("episodic-raw/1/a/1-user.md", "")]);
    assert!(!index.has_memory());
}
