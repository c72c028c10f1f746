use super::*;
use crate::{Listing, text};

struct Writable(Kind);

impl File for Writable {
    fn kind(&self) -> Kind {
        self.0
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Err(Error::not_found("nothing is opened here"))
    }
}

fn control() -> Listing {
    Listing::default()
        .file("create.json", Writable(Kind::Control))
        .file("input", Writable(Kind::Message))
        .file("README.md", text("read me"))
}

fn stands(dir: &dyn Dir, name: &str) -> Option<String> {
    stands_for(dir, name).map(|it| match it {
        StandsFor::Named(real) => real,
        StandsFor::Unknown => "?".to_owned(),
    })
}

#[test]
fn a_scratch_name_has_the_real_name_in_it() {
    let dir = control();
    for name in [
        ".create.json.swp",
        ".create.json.swx",
        "create.json.tmp.1.ab",
        "create.json.0f3e9a.tmp",
        "create.json~",
        "create.json.vsctmp",
        "create.json.lock",
        "#create.json#",
        ".#create.json",
        "create.json.tmp.4711.1763405000123",
    ] {
        let expected = (name != ".#create.json").then(|| "create.json".to_owned());
        assert_eq!(stands(&dir, name), expected, "{name}");
    }
    assert_eq!(stands(&dir, "input.tmp"), Some("input".to_owned()));
    assert_eq!(stands(&dir, ".input.swp"), Some("input".to_owned()));
}

#[test]
fn a_made_up_name_will_do_where_something_takes_writes() {
    let dir = control();
    for name in ["sedAb3xYz", "4913", ".tmpXy12", "tmp.4f2a", "tmpfile"] {
        assert_eq!(stands(&dir, name), Some("?".to_owned()), "{name}");
        assert_eq!(stands(&Listing::default().file("README.md", text("read me")), name), None, "{name}");
    }
}

#[test]
fn a_mistyped_name_is_a_mistake() {
    let dir = control();
    let names = [
        "craete.json",
        "my-create.json",
        "create.json.json",
        "create.json.bak",
        "input.txt",
        "x.json",
        "README.md.tmp",
        "sed12",
        "tmp.json",
        "notes",
        "",
    ];
    for name in names {
        assert_eq!(stands(&dir, name), None, "{name}");
    }
}

#[test]
fn bytes_are_written_anywhere_and_within_limits() {
    let together = Arc::default();
    let owner = Caller { pid: 7, ..Caller::named("ada") };
    let file = ScratchFile::new(&owner, &together);
    let handle = file.open(&owner, Open::BOTH).unwrap();
    assert!(matches!(handle.write(3, b"def"), Answer::Now(Ok(()))));
    assert!(matches!(handle.write(0, b"abc"), Answer::Now(Ok(()))));
    assert_eq!(file.bytes(), "abcdef");
    assert!(matches!(handle.truncate(2), Answer::Now(Ok(()))));
    assert_eq!((file.bytes().as_ref(), file.stat().size), (&b"ab"[..], 2));
    assert!(matches!(handle.write(LONGEST as u64, b"x"), Answer::Now(Err(_))));
    assert!(matches!(handle.write(u64::MAX, b"x"), Answer::Now(Err(_))));
    assert_eq!(together.load(Ordering::Relaxed), 2);
    let many: Vec<ScratchFile> = (0..9).map(|_| ScratchFile::new(&owner, &together)).collect();
    let taken = many.iter().filter(|file| file.truncate(LONGEST as u64).is_ok()).count();
    assert_eq!(taken, 1, "the limit of all of them");
    let full = many[8].truncate(LONGEST as u64).unwrap_err();
    assert_eq!(full.errno(), libc::EDQUOT);
    assert_eq!(file.finish(), "ab");
    assert!(matches!(handle.write(2, b"c"), Answer::Now(Err(error)) if error.errno() == libc::EBADF));
    file.resume();
    assert!(matches!(handle.write(1, b"b"), Answer::Now(Ok(()))));
    drop((many, handle, file));
    assert_eq!(together.load(Ordering::Relaxed), 0);
}

#[test]
fn no_other_process_opens_it() {
    let (owner, other) = (Caller { pid: 7, ..Caller::named("ada") }, Caller { pid: 8, ..Caller::named("ada") });
    let file = ScratchFile::new(&owner, &Arc::default());
    assert!(file.open(&owner, Open::READ).is_ok());
    assert!(file.open(&other, Open::READ).is_err());
    assert!(file.open(&Caller::named("ada"), Open::READ).is_err(), "a process that cannot be seen");
}

proptest::proptest! {
    #[test]
    fn any_name_is_decided(name in ".{0,60}") {
        let _ = stands(&control(), &name);
    }
}
