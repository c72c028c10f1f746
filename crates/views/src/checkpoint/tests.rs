use std::os::unix::fs::MetadataExt;

use super::*;
use crate::marks::MarkNames;
use crate::overlay;
use crate::test_view::{TestView, picture};

const LIMITS: CheckpointLimits = CheckpointLimits { files: 100, bytes: 1 << 20 };

#[test]
fn a_copy_of_an_upper_is_the_view_as_it_was() {
    let view = TestView::of("mkdir -p d/e gone; echo 1 > a; echo 2 > d/b; echo 3 > gone/x; echo 4 > d/e/f");
    view.run("echo 11 > a; rm -r gone; mv d d2; echo more > d2/more; ln -s a link; mkdir ignored; echo i > ignored/i; chmod 500 d2/e");
    let was = picture(&view.dirs.at);
    let first = view.place.path().join("first");
    let skip = |path: &Path| path == Path::new("ignored");
    let copied = copy(&view.upper, &first, None, LIMITS, &skip).unwrap();
    view.run("echo 111 > a; rm d2/more; echo new > new");
    let second = view.place.path().join("second");
    let again = copy(&view.upper, &second, Some((&first, &copied)), LIMITS, &|_| false).unwrap();
    assert!(again.files.contains_key("ignored/i") && !copied.files.contains_key("ignored/i"));
    let inode = |dir: &Path, name: &str| std::fs::metadata(dir.join(name)).map(|meta| meta.ino()).unwrap();
    assert_ne!(inode(&first, "a"), inode(&second, "a"));
    // The second copy has the files of the first that are the same as one file.
    let third = view.place.path().join("third");
    copy(&view.upper, &third, Some((&second, &again)), LIMITS, &|_| false).unwrap();
    assert_eq!(inode(&second, "a"), inode(&third, "a"));
    overlay::take_away(&view.dirs.at).unwrap();
    // To come back, the checkpoint is copied: nothing may write into it.
    let back = view.place.path().join("back");
    copy(&Root::open(&first).unwrap(), &back, None, LIMITS, &|_| false).unwrap();
    let dirs = overlay::OverlayDirs { upper: back, work: view.place.path().join("work2"), ..view.dirs.clone() };
    std::fs::create_dir(&dirs.work).unwrap();
    overlay::mount(&dirs, MarkNames::Trusted).unwrap();
    let without: String =
        was.lines().filter(|line| !line.starts_with("ignored")).map(|line| format!("{line}\n")).collect();
    assert_eq!(picture(&view.dirs.at), without);
}

#[test]
fn a_copy_is_bounded() {
    let view = TestView::of("echo 1 > a");
    view.run("for i in $(seq 101); do echo $i > f$i; done");
    let refused = copy(&view.upper, &view.place.path().join("c"), None, LIMITS, &|_| false).unwrap_err();
    assert!(refused.message.contains("more than 100 changed files"), "{refused}");
    view.run("rm f*; head -c 2000000 /dev/zero > big; echo z > z");
    let refused = copy(&view.upper, &view.place.path().join("d"), None, LIMITS, &|_| false).unwrap_err();
    assert!(refused.message.contains("1 MiB"), "{refused}");
}
