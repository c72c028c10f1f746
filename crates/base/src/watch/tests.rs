use std::fs;
use std::sync::mpsc::Receiver;

use super::*;

fn heard() -> (Receiver<()>, impl FnMut() -> ControlFlow<()>) {
    let (tell, news) = channel();
    (news, move || if tell.send(()).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
}

#[test]
fn a_file_is_followed_when_it_is_written_and_when_it_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spec.json");
    fs::write(&path, "1").unwrap();
    let (news, tell) = heard();
    let _following = file(&path, tell).unwrap();
    fs::write(&path, "2").unwrap();
    news.recv_timeout(Duration::from_secs(60)).expect("it was written");
    fs::write(folder.path().join("other"), "3").unwrap();
    fs::rename(folder.path().join("other"), &path).unwrap();
    news.recv_timeout(Duration::from_secs(60)).expect("it was replaced");
}

#[test]
fn other_files_of_its_folder_are_no_news() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spec.json");
    fs::write(&path, "1").unwrap();
    let (news, tell) = heard();
    let following = file(&path, tell).unwrap();
    fs::write(folder.path().join("other"), "3").unwrap();
    drop(following); // what was heard until now is told, and the thread ends
    assert_eq!(news.iter().count(), 0);
}

#[test]
fn a_folder_is_followed_with_all_below_it() {
    let top = tempfile::tempdir().unwrap();
    fs::create_dir(top.path().join("a")).unwrap();
    let (news, tell) = heard();
    let _following = folder(top.path(), tell).unwrap();
    fs::write(top.path().join("a/b"), "1").unwrap();
    news.recv_timeout(Duration::from_secs(60)).expect("something was written");
}
