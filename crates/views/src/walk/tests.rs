use crate::test_view::TestView;

const BASE: &str = "mkdir -p src/deep docs gone empty; echo 1 > src/a; echo 2 > src/b; echo 3 > src/deep/c; echo d > docs/d
    echo x > gone/x; echo y > gone/y; ln -s src/a link; echo same > same; echo t > tofile; mkdir todir; echo z > todir/z; chmod 644 src/a src/b same";

#[test]
fn every_kind_of_change_is_told_and_what_is_the_same_is_not() {
    let view = TestView::of(BASE);
    assert_eq!(view.told(), [""; 0]);
    view.run(
        "echo 11 > src/a; rm src/b; rm -r gone; echo n > new; mkdir -p nd/e; chmod 600 docs/d; touch -d 2001-01-01 same
         echo other > same; echo same > same; ln -sfn docs/d link; rm tofile; mkdir tofile; echo i > tofile/i
         rm -r todir; echo f > todir; mkdir empty/more",
    );
    let expected = [
        "removed gone with 2",
        "removed src/b",
        "removed todir with 1",
        "removed tofile",
        "changed docs/d 600",
        "added empty/more",
        "changed link",
        "added nd/e",
        "added new",
        "changed src/a",
        "added todir",
        "added tofile/i",
    ];
    assert_eq!(view.told(), expected);
}

#[test]
fn a_change_that_hides_behind_the_old_size_and_time_is_told() {
    let view = TestView::of("printf aaaa > f; touch -d 2020-01-01 f");
    view.run("printf bbbb > f; touch -d 2020-01-01 f");
    assert_eq!(view.told(), ["changed f"]);
    let (layers, mut compared) = (view.layers(), super::ComparedFiles::default());
    assert_eq!(super::changes(&layers, &mut compared).unwrap().changes.len(), 1);
    // What was compared is remembered by what no program can set.
    view.run("printf aaaa > f; touch -d 2020-01-01 f");
    assert_eq!(super::changes(&layers, &mut compared).unwrap().changes.len(), 0);
}

#[test]
fn renamed_directories_and_files_are_told_as_renamed() {
    let view = TestView::of(BASE);
    view.run("mv src code; echo more >> code/deep/c; rm code/b; mv docs/d docs/e; mv gone todir/");
    let expected =
        ["removed docs/d", "removed gone", "removed src", "removed src/b", "removed src/deep", "removed src/deep/c"];
    let told = view.told();
    let removed: Vec<&String> = told.iter().filter(|line| line.starts_with("removed")).collect();
    assert_eq!(removed, expected[1..].iter().collect::<Vec<_>>(), "{told:?}");
    let expected = [
        "renamed code/a from src/a",
        "added code/deep/c",
        "renamed docs/e from docs/d",
        "renamed todir/gone/x from gone/x",
        "renamed todir/gone/y from gone/y",
    ];
    assert_eq!(told[removed.len()..], expected);
}

#[test]
fn a_directory_that_was_made_again_shows_nothing_of_the_old_one() {
    let view = TestView::of(BASE);
    view.run("rm -r src; mkdir src; echo 1 > src/a; echo new > src/new; mkdir -p src/deep; echo 3 > src/deep/other");
    assert_eq!(
        view.told(),
        ["removed src/b", "renamed src/deep/other from src/deep/c", "added src/new"],
        "src/a has the same bytes; src/deep/other has those of src/deep/c"
    );
}

#[test]
fn names_with_any_character_are_walked() {
    let view = TestView::of("echo 1 > 'a b'");
    view.run("printf x > \"$(printf 'new\\nline')\"; printf y > \"$(printf 'no\\377text')\"; rm 'a b'; printf z > ' '");
    assert_eq!(view.told(), ["removed a b", "added  ", "added new\nline", r#"added "no\377text""#]);
}
