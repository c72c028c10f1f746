use serde_json::{Value, json};

use super::*;
use crate::agent::tools::{ToolCall, perform};

fn tool(name: &str, arguments: Value) -> ToolCall {
    ToolCall::read(name, arguments.as_object().unwrap().clone()).unwrap()
}

#[tokio::test]
async fn files_are_written_read_and_listed() {
    let dir = tempfile::tempdir().unwrap();
    let side = MountTools::new(dir.path(), Arc::new(|| "c".to_owned()));
    let said = |name: &'static str, arguments: Value| {
        let side = &side;
        async move { perform(side, &tool(name, arguments)).await }
    };
    let wrote = said("file_write", json!({"path": "/a/b.txt", "content": "Σχ", "create_parents": true})).await;
    assert_eq!(wrote, json!({"path": "/a/b.txt", "bytes_written": 4, "ready": true}));
    let read = said("file_read", json!({"path": "../../a/./b.txt"})).await;
    assert_eq!(
        read,
        json!({"path": "../../a/./b.txt", "content": "Σχ", "bytes": 4, "truncated": false, "ready": true})
    );
    let cut = said("file_read", json!({"path": "a/b.txt", "max_bytes": 3})).await;
    assert_eq!(cut, json!({"path": "a/b.txt", "content": "Σ", "bytes": 2, "truncated": true, "ready": true}));
    let listed = said("file_list", json!({"recursive": true})).await;
    assert_eq!(
        listed,
        json!({"path": ".", "truncated": false, "entries": [
                {"path": "a", "type": "directory", "size": 0}, {"path": "a/b.txt", "type": "file", "size": 4}]})
    );
    let cut = said("file_list", json!({"recursive": true, "max_entries": 1})).await;
    assert_eq!(cut["truncated"], true);
    let refused = said("file_write", json!({"path": "c/d", "content": ""})).await;
    assert_eq!(refused["error"]["code"], "not_found");
    assert_eq!(said("file_read", json!({"path": "a"})).await["error"]["code"], "is_a_directory");
}

#[tokio::test]
async fn a_link_that_leads_out_of_the_root_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
    for place in [&root, &outside] {
        std::fs::create_dir(place).unwrap();
    }
    std::fs::write(outside.join("secret"), "s").unwrap();
    for (name, to) in [("abs", outside.clone()), ("up", "../outside".into()), ("inside", ".".into())] {
        std::os::unix::fs::symlink(to, root.join(name)).unwrap();
    }
    std::fs::write(root.join("own"), "o").unwrap();
    let side = MountTools::new(&root, Arc::new(|| "c".to_owned()));
    for (name, arguments, code) in [
        ("file_read", json!({"path": "abs/secret"}), json!("forbidden")),
        ("file_read", json!({"path": "up/secret"}), json!("forbidden")),
        ("file_write", json!({"path": "abs/new", "content": "x"}), json!("forbidden")),
        ("file_write", json!({"path": "up/a/b", "content": "x", "create_parents": true}), json!("forbidden")),
        ("file_list", json!({"path": "abs"}), json!("forbidden")),
        ("file_read", json!({"path": "inside/own"}), Value::Null),
    ] {
        let said = perform(&side, &tool(name, arguments.clone())).await;
        assert_eq!(said["error"]["code"], code, "{name} {arguments}: {said}");
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}

#[tokio::test]
async fn a_link_in_a_project_does_not_lead_out_of_the_project() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for place in ["projects/p/fs/sub", "projects/q/fs", "agents/ada/chat"] {
        std::fs::create_dir_all(root.join(place)).unwrap();
    }
    for file in ["projects/p/fs/sub/own", "projects/q/fs/other", "agents/ada/chat/latest.txt"] {
        std::fs::write(root.join(file), "x").unwrap();
    }
    for (name, to) in [
        ("projects/p/fs/in", "sub"),
        ("projects/p/fs/chat", "../../../agents/ada/chat"),
        ("projects/p/fs/sub/q", "../../../q/fs"),
        ("projects/p/fs/chain", "sub/q"),
        // Names of the tree itself, which lead where they say.
        ("projects/p/name", "../q/fs"),
        ("agents/ada/work", "../../projects/p/fs"),
        ("agents/ada/deep", "../../projects/p/fs/sub"),
    ] {
        std::os::unix::fs::symlink(to, root.join(name)).unwrap();
    }
    let side = MountTools::new(root, Arc::new(|| "c".to_owned()));
    for (path, code) in [
        ("projects/p/fs/in/own", Value::Null),
        ("projects/p/fs/chat/latest.txt", json!("forbidden")),
        ("projects/p/fs/sub/q/other", json!("forbidden")),
        ("projects/p/fs/chain/other", json!("forbidden")),
        ("projects/p/name/other", Value::Null),
        ("agents/ada/work/in/own", Value::Null),
        ("agents/ada/work/chat/latest.txt", json!("forbidden")),
        ("agents/ada/deep/own", Value::Null),
        ("agents/ada/deep/q/other", json!("forbidden")),
        ("agents/ada/chat/latest.txt", Value::Null),
    ] {
        let said = perform(&side, &tool("file_read", json!({"path": path}))).await;
        assert_eq!(said["error"]["code"], code, "{path}: {said}");
        let said = perform(&side, &tool("file_write", json!({"path": path, "content": "x"}))).await;
        assert_eq!(said["error"]["code"], code, "{path}: {said}");
    }
}

#[tokio::test]
async fn what_is_not_ready_is_said_to_be_so() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _other_end = File::options().read(true).write(true).open(&pipe).unwrap();
    let side = MountTools::new(dir.path(), Arc::new(|| "c".to_owned()));
    let read = perform(&side, &tool("file_read", json!({"path": "pipe", "wait_until_ready": false}))).await;
    assert_eq!(read, json!({"path": "pipe", "content": "", "bytes": 0, "truncated": false, "ready": false}));
}
