use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

use super::*;
use crate::overlay;
use crate::test_view::TestView;

const NAMES: [&str; 6] = ["s/replaced", "s/deleted", "s/todir", "s/written", "s/own", "s/tolink"];

fn let_go_of_all(view: &TestView) -> usize {
    let aside = view.place.path().join("aside");
    _ = fs::create_dir(&aside);
    let refresh = || overlay::refresh(&view.dirs.at);
    refresh().unwrap();
    let freed = let_go(&view.layers(), &view.dirs.at, &NAMES.map(PathBuf::from), &aside, &refresh).unwrap();
    assert_eq!(fs::read_dir(&aside).unwrap().count(), 0);
    freed
}

#[test]
fn what_a_program_has_open_stays_open_and_its_name_shows_the_base() {
    let view = TestView::of("mkdir s; for f in replaced deleted todir written own tolink; do echo old > s/$f; done");
    let mut held: Vec<File> = NAMES.iter().map(|name| File::open(view.dirs.at.join(name)).unwrap()).collect();
    view.run("echo mine > s/own");
    view.in_base(
        "cd s; echo new > t; chmod 750 t; mv t replaced; rm deleted todir tolink; mkdir todir; echo in > todir/f; ln -s written tolink
         echo new > written; echo theirs > t; mv t own",
    );
    assert_eq!(let_go_of_all(&view), 4);
    assert_eq!(view.run("cd s; cat replaced todir/f written own tolink; ls -A"), {
        "new\nin\nnew\nmine\nnew\nown\nreplaced\ntodir\ntolink\nwritten\n"
    });
    assert_eq!(view.run("stat -c %a s/replaced"), "750\n");
    let mut read = |number: usize| {
        let mut text = String::new();
        held[number].read_to_string(&mut text).unwrap();
        text
    };
    assert_eq!([read(0), read(1), read(2)], ["old\n"; 3]);
    assert_eq!(view.told(), ["changed s/own"], "nothing is the view's own that was not before");
    // And again, as long as they are open.
    assert_eq!(let_go_of_all(&view), 0);
    view.in_base("echo newer > t; mv t s/replaced");
    overlay::refresh(&view.dirs.at).unwrap();
    assert_eq!(view.run("cat s/replaced"), "newer\n");
}

#[test]
fn what_a_program_has_made_its_own_meanwhile_is_left() {
    let view = TestView::of("mkdir s; echo old > s/replaced; echo old > s/deleted");
    let held = ["replaced", "deleted"].map(|name| File::open(view.dirs.at.join("s").join(name)).unwrap());
    let root = Root::open(&view.dirs.at).unwrap();
    let facts = |root: &Root, name: &str| root.facts(Path::new(name)).unwrap();
    let shown = ["s/replaced", "s/deleted"].map(|name| facts(&root, name).unwrap());
    view.in_base("echo new > t; mv t s/replaced; rm s/deleted");
    view.run("echo my own > s/m; mv s/m s/replaced; echo my own > s/m; mv s/m s/deleted");
    for (name, shown) in ["s/replaced", "s/deleted"].into_iter().zip(shown) {
        let real = facts(&view.base, name);
        assert!(!swap_out(&view.layers(), &root, Path::new(name), &shown, real.as_ref()).unwrap());
    }
    assert_eq!(view.run("cat s/replaced s/deleted; ls -A s"), "my own\nmy own\ndeleted\nreplaced\n");
    drop(held);
}
