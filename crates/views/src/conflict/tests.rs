use super::*;
use crate::test_view::TestView;

#[test]
fn a_path_that_both_sides_changed_is_a_conflict_and_no_other() {
    let view = TestView::of("mkdir -p d e; for f in a b c gone both d/x e/y m; do echo $f > $f; done");
    let mut manifest = view.manifest();
    view.run("echo 1 > a; echo 1 > b; rm c gone; echo same > both; echo n > new; echo n2 > new2; rm -r d e; mv m m2");
    for change in view.changes().changes {
        assert_eq!(of(&view.layers(), &manifest, &change).unwrap(), None, "{}", change.path);
        manifest.remember_bytes(&view.base, &change.path.0).unwrap();
    }
    view.in_base("echo 2 > a; echo b > t; mv t b; echo 2 > c; rm gone; echo same > both; echo theirs > new; echo more > d/more; echo mm > m");
    let mut told = Vec::new();
    for change in view.changes().changes {
        let found = of(&view.layers(), &manifest, &change).unwrap();
        told.push(format!(
            "{} {}",
            change.path,
            found.map_or("-".to_owned(), |found| format!("{}: {}", found.path, found.why))
        ));
    }
    let changed = "changed in the project since the view took it over";
    let made = "made in the project since the view took it over";
    let expected = [
        format!("c c: {changed}"),
        format!("d d/more: {made}"),
        "e -".to_owned(),
        format!("m m: {changed}"),
        format!("a a: {changed}"),
        "b -".to_owned(),
        "m2 -".to_owned(),
        format!("new new: {made}"),
        "new2 -".to_owned(),
    ];
    assert_eq!(told, expected, "b was written again with the same bytes; both and gone are no changes");
}
