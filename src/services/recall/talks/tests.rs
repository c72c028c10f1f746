use super::*;

fn talks(dir: &tempfile::TempDir) -> Arc<Talks> {
    Arc::new(Talks::new(ConfinedDir::open(dir.path()).unwrap(), Clock::at(5)))
}

#[test]
fn messages_of_one_instant_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let talks = talks(&dir);
    let id = talks.begin(None).unwrap();
    assert_eq!((id.as_str(), talks.begin(None).unwrap().as_str()), ("5000000", "5000001"));
    let held = talks.hold(&id).unwrap();
    for text in ["one", "two", "three"] {
        held.add(Role::User, text).unwrap();
    }
    held.open_with(|| Ok("first of all".to_owned())).unwrap();
    held.open_with(|| Ok("never said".to_owned())).unwrap(); // 5
    let said: Vec<_> = talks.said(&id).unwrap().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["first of all", "one", "two", "three"]); // 6
    assert_eq!(talks.messages(&id).unwrap()[0].file, "4999999-system.md");
}

#[test]
fn a_conversation_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let talks = talks(&dir);
    talks.begin(Some("a")).unwrap();
    let held = talks.hold("a").unwrap();
    assert_eq!(talks.hold("a").err().unwrap().code, Code::Busy);
    drop(held);
    talks.hold("a").unwrap();
    assert_eq!(talks.hold("b").err().unwrap().code, Code::NotFound);
    assert_eq!(talks.hold("../a").err().unwrap().code, Code::InvalidPayload);
    assert_eq!(talks.begin(Some("a")).unwrap_err().code, Code::AlreadyExists);
}

#[test]
fn what_other_programs_put_there_is_read_and_what_is_no_message_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let talks = talks(&dir);
    std::fs::create_dir(dir.path().join("old")).unwrap();
    for (file, text) in
        [("9-user.md", "hi"), ("10-assistant.md", "yes"), ("title.txt", "t"), ("1-archived-user.md", "x")]
    {
        std::fs::write(dir.path().join("old").join(file), text).unwrap();
    }
    assert_eq!(talks.said("old").unwrap(), [(Role::User, "hi".to_owned()), (Role::Assistant, "yes".to_owned())]);
    assert_eq!(talks.put("old", "x.md", b"").unwrap_err().code, Code::InvalidPayload);
    assert_eq!(talks.put("old", "11-user.md", b"\xff").unwrap_err().code, Code::InvalidPayload);
}
