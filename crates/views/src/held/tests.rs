use super::*;
use crate::change::{ChangeKind, Side};
use crate::rel_path::RelPath;

fn change(path: &str, before: Option<u32>, after: Option<(EntryType, u32)>) -> Change {
    let side = |kind, mode| Side { kind, mode, size: 1 };
    let kind = match (before, after) {
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Removed,
        _ => ChangeKind::Changed,
    };
    Change {
        path: RelPath::new(path),
        kind,
        from: None,
        before: before.map(|mode| side(EntryType::File, mode)),
        after: after.map(|(kind, mode)| side(kind, mode)),
        content: Content::Upper,
        whole: false,
        files: 0,
        bytes_differ: true,
    }
}

#[test]
fn what_runs_by_itself_is_held_and_the_rest_is_not() {
    use EntryType::{File, Link, Special};
    let names = [".git/hooks", ".mcp.json", ".github/workflows", ".vscode"].map(str::to_owned);
    for (path, before, after, target, held) in [
        ("src/a.rs", None, Some((File, 0o644)), "", false),
        ("run.sh", None, Some((File, 0o755)), "", true),
        ("run.sh", Some(0o755), Some((File, 0o755)), "", false),
        ("run.sh", Some(0o644), Some((File, 0o744)), "", true),
        ("run.sh", Some(0o755), Some((File, 0o4755)), "", true),
        ("run.sh", Some(0o755), None, "", false),
        (".mcp.json", Some(0o644), Some((File, 0o644)), "", true),
        ("a/b/.MCP.json", None, Some((File, 0o644)), "", true),
        (".mcp.json", Some(0o644), None, "", true),
        ("x/.github/workflows/ci.yml", None, Some((File, 0o644)), "", true),
        (".github/CODEOWNERS", None, Some((File, 0o644)), "", false),
        (".github", None, Some((File, 0o644)), "", true),
        ("sub/.git/config", None, Some((File, 0o644)), "", true),
        ("sub/HEAD", None, Some((File, 0o644)), "", true),
        ("link", None, Some((Link, 0o777)), "src/a.rs", false),
        ("d/link", None, Some((Link, 0o777)), "../src/./a.rs", false),
        ("d/link", None, Some((Link, 0o777)), "../../x", true),
        ("link", None, Some((Link, 0o777)), "/etc/passwd", true),
        ("link", None, Some((Link, 0o777)), "a/../../x", true),
        ("pipe", None, Some((Special, 0o644)), "", true),
    ] {
        let one = change(path, before, after);
        let said = reason(&one, &names, Some(Path::new(target)));
        assert_eq!(said.is_some(), held, "{path} {target}: {said:?}");
    }
    let mut moved = change("ok.json", Some(0o644), Some((File, 0o644)));
    moved.from = Some(RelPath::new(".mcp.json"));
    assert!(reason(&moved, &names, None).is_some(), "renamed away");
}
