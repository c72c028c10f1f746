use super::*;
use crate::policy::PrincipalCaller;

fn names(dir: &dyn Dir) -> String {
    dir.list().into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
}

fn dir(node: Option<Node>) -> Arc<dyn Dir> {
    let Some(Node::Dir(dir)) = node else { panic!("no directory") };
    dir
}

async fn read(node: Option<Node>) -> Result<String> {
    let Some(Node::File(file)) = node else { return Err(Error::not_found("no file")) };
    let handle = file.open(&Caller::operator(), Open::READ)?;
    Ok(String::from_utf8(handle.read(0, 100).wait().await?.to_vec()).unwrap())
}

#[tokio::test]
async fn what_is_bound_is_read_and_written_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("p/sub")).unwrap();
    std::fs::write(place.path().join("secret"), "s").unwrap();
    std::fs::write(place.path().join("p/a"), "one").unwrap();
    for (name, to) in [("out", "../secret"), ("abs", "/etc/passwd"), ("in", "a"), ("up", "..")] {
        std::os::unix::fs::symlink(to, place.path().join("p").join(name)).unwrap();
    }
    let mirror = Mirror::open(&place.path().join("p"), false).unwrap();
    let caller = Caller::operator();
    assert_eq!(names(&mirror), "a abs in out sub up");
    let first: Vec<String> = mirror.first(3).into_iter().map(|(name, _)| name).collect();
    assert_eq!(first, ["a", "abs", "in"]);
    assert_eq!(read(mirror.lookup("a")).await.unwrap(), "one");
    let Some(Node::Link(link)) = mirror.lookup("out") else { panic!("no link") };
    assert_eq!(link.target(&caller).unwrap(), "../secret");
    assert!(mirror.lookup("..").is_none(), "above the root is nothing");
    assert!(mirror.lookup("up/secret").is_none() && mirror.lookup("../secret").is_none());

    let sub = dir(mirror.lookup("sub"));
    let (_, handle) = sub.create(&caller, "new", Open::WRITE).unwrap();
    handle.write(0, b"hello").wait().await.unwrap();
    assert_eq!(std::fs::read_to_string(place.path().join("p/sub/new")).unwrap(), "hello");
    assert_eq!(mirror.remove_dir(&caller, "sub").wait().await.unwrap_err().code, Code::Os(libc::ENOTEMPTY));
    sub.remove(&caller, "new").wait().await.unwrap();
    mirror.remove_dir(&caller, "sub").wait().await.unwrap();
    mirror.make_dir(&caller, "made").wait().await.unwrap();
    assert_eq!(mirror.make_dir(&caller, "made").wait().await.err().unwrap().code, Code::AlreadyExists);
}

#[tokio::test]
async fn a_read_only_bind_is_erofs_for_every_change() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("a"), "one").unwrap();
    let mirror = Mirror::open(place.path(), true).unwrap();
    let caller = Caller::operator();
    let Some(Node::File(file)) = mirror.lookup("a") else { panic!("no file") };
    let errors = [
        file.open(&caller, Open::WRITE).err().unwrap(),
        mirror.create(&caller, "b", Open::WRITE).err().unwrap(),
        mirror.make_dir(&caller, "b").wait().await.err().unwrap(),
        mirror.remove(&caller, "a").wait().await.unwrap_err(),
    ];
    assert!(errors.iter().all(|err| err.errno() == libc::EROFS), "{errors:?}");
}
