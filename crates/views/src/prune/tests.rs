use super::*;
use crate::overlay;
use crate::promote;
use crate::test_view::{TestView, picture};

fn promote_all(view: &TestView) -> usize {
    let steps = view.planned();
    promote::apply(&view.base, &view.stage(), &steps).unwrap();
    let aside = view.place.path().join("aside");
    fs::create_dir_all(&aside).unwrap();
    let pruned = prune(&view.layers(), &aside, &|| overlay::refresh(&view.dirs.at)).unwrap();
    assert_eq!(fs::read_dir(aside).unwrap().count(), 0);
    pruned
}

#[test]
fn after_a_promote_the_view_is_the_base_and_follows_it() {
    let view = TestView::of(
        "mkdir -p src/deep o; echo 1 > src/a; echo 2 > src/deep/b; echo x > o/x; echo g > gone; echo k > k",
    );
    view.run("mv src code; echo 11 > code/a; rm -r o; mkdir o; echo y > o/y; rm gone; echo n > n; ln -s n l; cat n code/deep/b > /dev/null");
    assert!(promote_all(&view) >= 5);
    assert_eq!(picture(&view.dirs.at), picture(&view.dirs.base));
    assert_eq!(view.told(), [""; 0]);
    // What changes in the base now is seen in the view.
    view.in_base(
        "echo 2 > n.tmp; mv n.tmp n; echo later > code/deep/later; echo z > o/z; echo again > gone; echo 3 > code/a",
    );
    overlay::refresh(&view.dirs.at).unwrap();
    assert_eq!(picture(&view.dirs.at), picture(&view.dirs.base));
    assert_eq!(view.run("cat n code/deep/later o/z gone code/a code/deep/b"), "2\nlater\nz\nagain\n3\n2\n");
    view.run("echo more >> code/deep/b; rm gone");
    assert_eq!(view.told(), ["removed gone", "changed code/deep/b"]);
}

#[test]
fn changes_that_are_dropped_show_the_base_again() {
    let view = TestView::of("mkdir d; for f in a b d/c; do echo $f > $f; done");
    view.run("echo 1 > a; rm b; echo n > n; echo 1 > d/c; cat a d/c > /dev/null");
    let aside = view.place.path().join("aside");
    fs::create_dir_all(&aside).unwrap();
    let paths = ["a", "b", "n"].map(PathBuf::from);
    drop_changes(&view.layers(), &paths, &aside, &|| overlay::refresh(&view.dirs.at)).unwrap();
    assert_eq!(view.run("cat a b d/c; test ! -e n"), "a\nb\n1\n");
    assert_eq!(view.told(), ["changed d/c"]);
}

#[test]
fn a_file_that_a_program_has_open_keeps_its_place() {
    let view = TestView::of("echo 1 > a; echo 1 > b");
    view.run("echo 2 > a; echo 2 > b");
    let steps = view.planned();
    promote::apply(&view.base, &view.stage(), &steps).unwrap();
    let mut open = fs::OpenOptions::new().append(true).open(view.dirs.at.join("a")).unwrap();
    let aside = view.place.path().join("aside");
    fs::create_dir_all(&aside).unwrap();
    assert_eq!(prune(&view.layers(), &aside, &|| overlay::refresh(&view.dirs.at)).unwrap(), 1);
    std::io::Write::write_all(&mut open, b"more\n").unwrap();
    assert_eq!(view.run("cat a b"), "2\nmore\n2\n");
    assert_eq!(view.told(), ["changed a"]);
}
