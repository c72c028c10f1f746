use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::*;
use crate::rel_path::RelPath;
use crate::test_view::{TestView, picture};
use acheron_base::Code;

const BASE: &str = "mkdir -p src/deep gone; echo 1 > src/a; echo 2 > src/b; echo 3 > src/deep/c; echo x > gone/x; ln -s src/a link
    echo t > tofile; mkdir todir; echo z > todir/z; echo l > l1; ln l1 l2; echo '#!' > run; chmod 755 run; echo mode > mode
    echo from > from; mkdir over; echo q > over/q; echo turn > turn; mkdir d1; echo d1 > d1/x";
const WORK: &str = "echo 11 > src/a; rm src/b; rm -r gone; mkdir -p nd/e; echo n > nd/n; chmod 600 mode; ln -sfn src/deep link
    rm tofile; mkdir tofile; echo i > tofile/i; rm -r todir; echo f > todir; mv src/deep src/deeper; echo ll > l1; echo more >> run
    echo r > \"$(printf 'new\\nline')\"; rm -r over; mv from over; mv turn turned; mkdir turn; echo inside > turn/t
    mv d1 d2; echo file > d1";

#[test]
fn everything_goes_back_and_can_be_undone() {
    let view = TestView::of(BASE);
    view.run(WORK);
    let (before, wanted) = (picture(&view.dirs.base), picture(&view.dirs.at));
    let (steps, stage) = (view.planned(), view.stage());
    assert_eq!(picture(&view.dirs.base), before, "nothing has changed yet");
    assert_eq!(apply(&view.base, &stage, &steps).unwrap(), []);
    assert_eq!(picture(&view.dirs.base), wanted);
    let links = |name: &str| fs::metadata(view.dirs.base.join(name)).unwrap().ino();
    assert_eq!(links("l1"), links("l2"), "two names of one file are still one file");
    // Made again, as after a crash, it is the same.
    assert_eq!(apply(&view.base, &stage, &steps).unwrap(), []);
    assert_eq!(picture(&view.dirs.base), wanted);
    let promoted = last_change(&view.base, &steps).unwrap();
    assert_eq!(check_undo(&view.base, &steps, promoted).unwrap(), []);
    assert_eq!(undo(&view.base, &stage, &steps).unwrap(), []);
    assert_eq!(picture(&view.dirs.base), before);
    assert_eq!(undo(&view.base, &stage, &steps).unwrap(), []);
    assert_eq!(picture(&view.dirs.base), before);
    assert_eq!(apply(&view.base, &stage, &steps).unwrap(), [], "and back again");
    assert_eq!(picture(&view.dirs.base), wanted);
}

/// A crash after each number of steps, and then all of them again: forwards, and backwards.
#[test]
fn a_promote_that_stops_at_any_step_can_be_finished_or_undone() {
    let count = {
        let view = TestView::of(BASE);
        view.run(WORK);
        view.planned().len()
    };
    assert!(count > 12, "{count} steps");
    for made in 0..=count {
        for finish in [true, false] {
            let view = TestView::of(BASE);
            view.run(WORK);
            let (before, wanted) = (picture(&view.dirs.base), picture(&view.dirs.at));
            let (steps, stage) = (view.planned(), view.stage());
            apply(&view.base, &stage, &steps[..made]).unwrap();
            let skipped = match finish {
                true => apply(&view.base, &stage, &steps),
                false => undo(&view.base, &stage, &steps),
            };
            assert_eq!(skipped.unwrap(), [], "after {made} steps");
            let expected = if finish { wanted } else { before };
            assert_eq!(picture(&view.dirs.base), expected, "after {made} steps");
        }
    }
}

#[test]
fn what_took_the_place_of_what_was_checked_is_left_alone() {
    let view = TestView::of("echo 1 > a; echo 2 > b; echo 3 > c; mkdir d; echo m > m");
    view.run("echo 11 > a; rm b; echo n > new; echo e > d/e; mv m m2");
    let (steps, stage) = (view.planned(), view.stage());
    view.in_base("echo theirs > t; mv t a; echo theirs > t; mv t b; echo theirs > new; rm -r d; echo theirs > d");
    let skipped = apply(&view.base, &stage, &steps).unwrap();
    let paths: Vec<String> = skipped.iter().map(|one| one.path.to_string()).collect();
    assert_eq!(paths, ["b", "a", "d/e", "new"]);
    assert_eq!(view.in_base("cat a b new d m2"), "theirs\ntheirs\ntheirs\ntheirs\nm\n");
}

#[test]
fn an_undo_names_what_was_changed_since() {
    let view = TestView::of("echo 1 > a; echo 2 > b; echo 3 > c");
    view.run("echo 11 > a; rm b; echo 33 > c; echo n > n");
    let (steps, stage) = (view.planned(), view.stage());
    apply(&view.base, &stage, &steps).unwrap();
    let promoted = last_change(&view.base, &steps).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20)); // the kernel's times have steps
    view.in_base("echo later >> a; echo again > b; rm n");
    let changed = check_undo(&view.base, &steps, promoted).unwrap();
    assert_eq!(changed, ["b", "a", "n"].map(RelPath::new));
}

#[test]
fn a_file_that_is_open_for_writing_is_not_promoted() {
    let view = TestView::of("echo 1 > a");
    let file = fs::OpenOptions::new().append(true).open(view.dirs.at.join("a")).unwrap();
    std::io::Write::write_all(&mut &file, b"more").unwrap();
    let changes = view.changes();
    let plan = plan(&view.layers(), &changes, &[0]).unwrap();
    let refused = stage(&view.layers(), plan.clone(), &view.stage()).unwrap_err();
    assert_eq!((refused.code, refused.message.contains("open for writing")), (Code::Busy, true), "{refused}");
    drop(file);
    let again = view.place.path().join("again");
    fs::create_dir(&again).unwrap();
    stage(&view.layers(), plan, &Stage::open(&again).unwrap()).unwrap();
}

#[test]
fn a_link_in_the_base_leads_no_step_elsewhere() {
    let view = TestView::of("mkdir d; echo 1 > d/a");
    view.run("echo 2 > d/a; echo n > d/new");
    let (steps, stage) = (view.planned(), view.stage());
    let out = view.place.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("a"), "theirs").unwrap();
    view.in_base("rm -r d; ln -s ../out d");
    let skipped = apply(&view.base, &stage, &steps).unwrap();
    assert_eq!(skipped.len(), 2, "{skipped:?}");
    assert_eq!(fs::read_to_string(out.join("a")).unwrap(), "theirs");
    assert!(!out.join("new").exists());
}

#[test]
fn modes_owners_and_attributes_are_those_of_the_view_without_what_gives_rights() {
    let view = TestView::of("echo 1 > a; chown 1234:1235 a .; chmod 640 a");
    view.run("echo 2 > a; chmod 4750 a; echo n > n");
    for (name, value) in [("user.note", b"hello".as_slice()), ("user.overlay.opaque", b"y")] {
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(view.dirs.at.join("a"), name, value, flags).unwrap();
    }
    let steps = view.planned();
    apply(&view.base, &view.stage(), &steps).unwrap();
    assert_eq!(view.in_base("stat -c '%a %u %g' a n"), "750 1234 1235\n644 1234 1235\n");
    let attribute = |name: &str| view.base.attribute(Path::new("a"), name).unwrap();
    assert_eq!(attribute("user.note"), Some(b"hello".to_vec()));
    assert!(attribute("user.overlay.opaque").is_none());
}

#[test]
fn parts_that_belong_together_are_refused_alone() {
    let view = TestView::of("echo 1 > f");
    view.run("rm f; mkdir f; echo 2 > f/a");
    let changes = view.changes();
    let number = changes.changes.iter().position(|change| change.path.0 == Path::new("f/a")).unwrap();
    let refused = plan(&view.layers(), &changes, &[number]).unwrap_err();
    assert_eq!(refused.message, "f is in the way in the project; name its removal too");
}
