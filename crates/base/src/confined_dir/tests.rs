use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;
use crate::error::Code;

fn place() -> (tempfile::TempDir, ConfinedDir) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("in")).unwrap();
    std::fs::write(dir.path().join("secret"), "outside").unwrap();
    let place = ConfinedDir::open(dir.path().join("in")).unwrap();
    (dir, place)
}

fn code<T: std::fmt::Debug>(answer: Result<T>) -> Code {
    answer.unwrap_err().code
}

#[test]
fn what_is_written_is_read_back_and_listed_without_leftovers() {
    let (dir, place) = place();
    place.write("a/b/c.txt", b"one").unwrap();
    place.write("a/b/c.txt", b"two").unwrap();
    place.append("a/log", b"x\n").unwrap();
    place.append("a/log", b"y\n").unwrap();
    assert_eq!(place.read_text("a/b/c.txt").unwrap(), "two");
    assert_eq!(place.read("a/log").unwrap(), b"x\ny\n");
    std::fs::write(dir.path().join("in/a").join(format!("{UNFINISHED}1-1")), "half").unwrap();
    let names: Vec<_> = place.list("a").unwrap().into_iter().map(|entry| (entry.name, entry.kind)).collect();
    assert_eq!(names, [("b".to_owned(), Kind::Dir), ("log".to_owned(), Kind::File)]);
    let walked: Vec<_> = place.walk("").unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(walked, ["a", "a/b", "a/b/c.txt", "a/log"]);
}

#[test]
fn a_file_keeps_its_mode_when_it_is_replaced() {
    use std::os::unix::fs::PermissionsExt as _;
    let (dir, place) = place();
    place.write("key", b"1").unwrap();
    let path = dir.path().join("in/key");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    place.write("key", b"2").unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn paths_that_lead_out_are_refused_by_every_call() {
    let (dir, place) = place();
    let root = dir.path().join("in");
    symlink("../secret", root.join("up")).unwrap();
    symlink(dir.path(), root.join("far")).unwrap();
    symlink("/proc/self/root/etc", root.join("magic")).unwrap();
    place.write("kept", b"1").unwrap();
    for rel in ["../secret", "a/../../secret", "/etc/passwd", "far/secret", "far/new", "magic/passwd"] {
        assert_eq!(code(place.read(rel)), Code::Forbidden, "read {rel}");
        assert_eq!(code(place.write(rel, b"")), Code::Forbidden, "write {rel}");
        assert_eq!(code(place.append(rel, b"")), Code::Forbidden, "append {rel}");
        assert_eq!(code(place.remove(rel)), Code::Forbidden, "remove {rel}");
        assert_eq!(code(place.remove_dir_all(rel)), Code::Forbidden, "remove all {rel}");
        assert_eq!(code(place.rename("kept", rel)), Code::Forbidden, "rename to {rel}");
        assert_eq!(code(place.rename(rel, "x")), Code::Forbidden, "rename {rel}");
        assert_eq!(code(place.lock(rel)), Code::Forbidden, "lock {rel}");
        assert_eq!(code(place.exists(rel)), Code::Forbidden, "exists {rel}");
    }
    for rel in ["far", "magic", ".."] {
        assert_eq!(code(place.list(rel)), Code::Forbidden, "list {rel}");
        assert_eq!(code(place.walk(rel)), Code::Forbidden, "walk {rel}");
        assert_eq!(code(place.within(rel)), Code::Forbidden, "within {rel}");
    }
    assert_eq!(code(place.read("up")), Code::Forbidden);
    assert_eq!(code(place.write("up", b"")), Code::Forbidden);
    assert_eq!(code(place.read("a\0b")), Code::InvalidPayload);
    assert_eq!(code(place.write("", b"")), Code::InvalidPayload);
    assert_eq!(std::fs::read_to_string(dir.path().join("secret")).unwrap(), "outside");
    assert!(!dir.path().join("new").exists());
}

#[test]
fn links_within_are_followed_for_reading_but_not_replaced() {
    let (dir, place) = place();
    place.write("real/text", b"inside").unwrap();
    symlink("real/text", dir.path().join("in/alias")).unwrap();
    symlink("../real", dir.path().join("in/real/loop")).unwrap();
    assert_eq!(place.read_text("alias").unwrap(), "inside");
    assert_eq!(place.read_text("real/loop/text").unwrap(), "inside");
    assert_eq!(code(place.write("alias", b"x")), Code::Forbidden);
    place.write("real/loop/deep/new", b"x").unwrap();
    assert!(place.exists("real/deep/new").unwrap());
    let kinds: Vec<_> = place.walk("real").unwrap().into_iter().map(|entry| (entry.name, entry.kind)).collect();
    let expected = [("deep", Kind::Dir), ("deep/new", Kind::File), ("loop", Kind::Link), ("text", Kind::File)];
    assert_eq!(kinds, expected.map(|(name, kind)| (name.to_owned(), kind)));
}

#[test]
fn a_pipe_or_a_directory_is_not_a_file() {
    let (dir, place) = place();
    nix::unistd::mkfifo(&dir.path().join("in/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    place.make_dir("d").unwrap();
    assert_eq!(code(place.read("pipe")), Code::InvalidPayload);
    assert_eq!(code(place.append("pipe", b"x")), Code::InvalidPayload);
    assert_eq!(code(place.read("d")), Code::Os(libc::EISDIR));
    assert_eq!(code(place.write("d", b"x")), Code::Os(libc::EISDIR));
    assert_eq!(code(place.read("absent")), Code::NotFound);
    assert!(!place.exists("pipe/x").unwrap());
    assert_eq!(place.list("").unwrap().len(), 2, "a refused write leaves nothing");
}

#[test]
fn another_file_system_is_not_entered() {
    let proc = ConfinedDir::open("/").unwrap();
    assert_eq!(code(proc.read("proc/version")), Code::Forbidden);
    let listed = proc.list("").unwrap();
    let shown = listed.iter().find(|entry| entry.name == "proc").unwrap();
    assert_eq!((shown.kind, shown.modified_ms), (Kind::Dir, 0));
}

#[test]
fn what_is_larger_than_allowed_is_refused_not_cut() {
    let (_dir, place) = place();
    place.write("big", &[b'x'; 100]).unwrap();
    assert_eq!(code(place.read_up_to("big", 99)), Code::TooLarge);
    assert_eq!(place.read_up_to("big", 100).unwrap().len(), 100);
}

#[test]
fn removing_and_renaming_do_what_they_say() {
    let (dir, place) = place();
    place.write("a/b/c", b"1").unwrap();
    symlink(dir.path(), dir.path().join("in/a/b/out")).unwrap();
    place.rename("a/b/c", "z/y").unwrap();
    assert_eq!(place.read("z/y").unwrap(), b"1");
    assert_eq!(code(place.remove("a")), Code::Os(libc::ENOTEMPTY));
    place.remove_dir_all("a").unwrap();
    assert!(!place.exists("a").unwrap());
    assert!(dir.path().join("secret").exists(), "a link is removed, not followed");
    place.remove("z/y").unwrap();
    place.remove("z").unwrap();
    assert_eq!(place.walk("").unwrap(), []);
}

#[test]
fn a_lock_has_one_holder() {
    let (_dir, place) = place();
    let held = place.lock("state/lock").unwrap();
    assert_eq!(code(place.lock("state/lock")), Code::Busy);
    drop(held);
    place.lock("state/lock").unwrap();
}

#[test]
fn a_place_stays_where_it_was_opened() {
    let (dir, place) = place();
    place.write("x", b"1").unwrap();
    std::fs::rename(dir.path().join("in"), dir.path().join("moved")).unwrap();
    assert_eq!(place.read("x").unwrap(), b"1");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever is asked for, nothing beside the place changes and nothing beside it is read.
    #[test]
    fn nothing_escapes(parts in prop::collection::vec(part(), 1..6), slash in any::<bool>()) {
        // So deep that no way up leads out of the temporary directory, were the place broken.
        let outer = tempfile::tempdir().unwrap();
        let dir = outer.path().join("1/2/3/4/5/6/7");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("secret"), "outside").unwrap();
        let place = ConfinedDir::create(dir.join("in")).unwrap();
        symlink("..", dir.join("in/up")).unwrap();
        symlink(&dir, dir.join("in/top")).unwrap();
        symlink("d", dir.join("in/side")).unwrap();
        place.make_dir("d").unwrap();
        let rel = format!("{}{}", if slash { "/" } else { "" }, parts.join("/"));
        if let Ok(bytes) = place.read(&rel) {
            prop_assert_ne!(bytes, b"outside".to_vec());
        }
        let _ = place.write(&rel, b"mine");
        let _ = place.append(&rel, b"mine");
        let _ = place.rename("d", &rel);
        let _ = place.lock(&rel);
        let _ = place.remove(&rel);
        let _ = place.remove_dir_all(&rel);
        let mut beside: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        beside.sort();
        prop_assert_eq!(beside, ["in", "secret"]);
        prop_assert_eq!(std::fs::read(dir.join("secret")).unwrap(), b"outside");
    }
}

fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just(String::new()),
        Just("secret".to_owned()),
        Just("in".to_owned()),
        Just("up".to_owned()),
        Just("top".to_owned()),
        Just("side".to_owned()),
        Just("d".to_owned()),
        "[a-z\\x00 .]{1,4}",
    ]
}

#[test]
fn a_lock_of_another_process_is_not_waited_for_without_end() {
    let dir = tempfile::tempdir().unwrap();
    let place = ConfinedDir::open(dir.path()).unwrap();
    place.append("log", b"one\n").unwrap();
    let foreign = std::fs::File::open(dir.path().join("log")).unwrap();
    foreign.lock().unwrap();
    let refused = place.append("log", b"two\n").unwrap_err();
    assert!(refused.code == crate::Code::Busy && refused.message.contains("holds the lock"), "{refused}");
    foreign.unlock().unwrap();
    place.append("log", b"two\n").unwrap();
    assert_eq!(place.read("log").unwrap(), b"one\ntwo\n");
}
