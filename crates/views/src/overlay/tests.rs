use super::*;
use crate::test_view::TestView;

/// What a base that changes underneath looks like in an open view, before and after it is refreshed: each way in which one
/// can change.
#[test]
fn a_base_that_changed_underneath_is_shown_as_it_is_after_a_refresh() {
    let view = TestView::of(
        "mkdir d e; for f in written replaced deleted d/own_base todir copied; do echo old > $f; done; echo x > e/x",
    );
    view.run("cat written replaced deleted d/own_base todir copied > /dev/null; ! cat created 2> /dev/null; ls d e > /dev/null");
    view.run("echo mine > copied; echo mine > d/own; exec 3< replaced; echo held > open_file");
    view.in_base(
        "echo new > written; echo new > r.tmp; mv r.tmp replaced; rm deleted; echo new > created; echo theirs > copied
         rm -r d; rm todir; mkdir todir; echo in > todir/f; rm -r e; echo file > e",
    );
    refresh(&view.dirs.at).unwrap();
    let shown = view
        .run("cat written replaced created copied d/own todir/f e; test ! -e deleted; test ! -e d/own_base; ls d; ls");
    assert_eq!(
        shown,
        "new\nnew\nnew\nmine\nmine\nin\nfile\nown\ncopied\ncreated\nd\ne\nopen_file\nreplaced\ntodir\nwritten\n"
    );
}

#[test]
fn hard_links_directory_renames_and_exchanges_are_as_on_an_ordinary_file_system() {
    let view = TestView::of("echo one > a; ln a b; mkdir -p d/e; echo x > d/e/x");
    view.run("echo two > a; test \"$(cat b)\" = two; mv d d2; test \"$(cat d2/e/x)\" = x; test ! -e d");
    assert_eq!(view.in_base("cat a b d/e/x"), "one\none\nx\n");
}

#[test]
fn a_view_is_mounted_once_and_only_of_its_own_base() {
    let view = TestView::of("echo x > a");
    let again = OverlayDirs { at: view.place.path().join("again"), ..view.dirs.clone() };
    std::fs::create_dir(&again.at).unwrap();
    let refused = mount(&again, MarkNames::Trusted).unwrap_err();
    assert!(refused.message.contains("is mounted already"), "{refused}");
    take_away(&view.dirs.at).unwrap();
    view.in_base("cd ..; mv base was; mkdir base");
    let refused = mount(&view.dirs, MarkNames::Trusted).unwrap_err();
    assert!(refused.message.contains("is not the directory that the view was made of"), "{refused}");
}

#[test]
fn a_path_of_any_length_and_with_any_character_can_be_a_base() {
    let place = tempfile::tempdir().unwrap();
    let long = place.path().join("x:y,z\\ ".repeat(20)).join("b".repeat(200));
    let dirs = ["base", "upper", "work", "fs"].map(|name| long.join(name));
    std::fs::create_dir_all(&dirs[0]).unwrap();
    std::fs::write(dirs[0].join("f"), "x").unwrap();
    let [base, upper, work, at] = dirs;
    let dirs = OverlayDirs { base, upper, work, at };
    make_dirs(&dirs).unwrap();
    mount(&dirs, MarkNames::Trusted).unwrap();
    let read = std::fs::read_to_string(dirs.at.join("f"));
    take_away(&dirs.at).unwrap();
    assert_eq!(read.unwrap(), "x");
}

/// What a program in a view could make to look like the kernel's own marks.
#[test]
fn marks_cannot_be_forged_from_inside() {
    let view = TestView::of("mkdir d; echo 1 > d/a; echo 2 > b");
    view.run("! mknod b2 c 0 0 2> /dev/null");
    let flags = rustix::fs::XattrFlags::empty();
    for name in ["user.overlay.opaque", "user.overlay.redirect", "user.overlay.whiteout"] {
        rustix::fs::setxattr(view.dirs.at.join("d"), name, b"y", flags).unwrap();
    }
    // Root may name the kernel's own: an older kernel refuses, a newer one keeps them under another name. Neither believes them.
    for name in ["trusted.overlay.opaque", "trusted.overlay.redirect", "trusted.overlay.whiteout"] {
        _ = rustix::fs::setxattr(view.dirs.at.join("d"), name, b"y", flags);
        assert_eq!(view.upper.attribute(Path::new("d"), name).unwrap(), None, "{name}");
    }
    refresh(&view.dirs.at).unwrap();
    assert_eq!(view.run("cat d/a b"), "1\n2\n");
    assert_eq!(view.told(), [""; 0]);
    take_away(&view.dirs.at).unwrap();
    mount(&view.dirs, MarkNames::Trusted).unwrap();
    assert_eq!(view.run("cat d/a b"), "1\n2\n", "nor when it is mounted again");
    assert_eq!(view.told(), [""; 0]);
}
