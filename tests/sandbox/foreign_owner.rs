//! A host that runs as root on a project of another user. As a plain user there is no such case.

use std::os::unix::fs::MetadataExt;

use crate::{check, shell};

const OWNER: u32 = 12_345;

#[test]
fn a_project_of_another_user_is_written_as_that_user() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("theirs"), "theirs\n").unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    for path in ["", "theirs", "sub"] {
        std::os::unix::fs::chown(dir.path().join(path), Some(OWNER), Some(OWNER + 1)).unwrap();
    }
    std::fs::write(dir.path().join("roots"), "roots\n").unwrap();
    // The owner's files may be in any group, root's too: they are the owner's nevertheless, and keep their groups.
    for (path, group) in [("shared", OWNER + 2), ("of-roots", 0)] {
        std::fs::write(dir.path().join(path), "").unwrap();
        std::os::unix::fs::chown(dir.path().join(path), Some(OWNER), Some(group)).unwrap();
    }
    let script =
        "cd /projects/p/fs; echo more >> theirs && echo new > made && mkdir sub/deep && ln -s x sub/link && cat theirs
        chmod 600 theirs && stat -c '%u %g' theirs made; (echo x > roots) 2>/dev/null || echo refused
        echo x > shared && echo x > of-roots && cat shared of-roots";
    let plan = shell(script).bind(dir.path(), "/projects/p/fs", false);
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    check(&plan, &format!("theirs\nmore\n{uid} {gid}\n{uid} {gid}\nrefused\nx\nx"));
    for path in ["theirs", "made", "sub/deep"] {
        let meta = std::fs::metadata(dir.path().join(path)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (OWNER, OWNER + 1), "{path}");
    }
    for (path, group) in [("shared", OWNER + 2), ("of-roots", 0)] {
        let meta = std::fs::metadata(dir.path().join(path)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (OWNER, group), "{path}");
    }
}
