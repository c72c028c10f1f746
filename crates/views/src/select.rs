//! Which changes go back: all that nothing holds, or those that are named. Pure.

use std::path::PathBuf;

use super::change::Change;
use super::held;
use acheron_base::nearest::hint;
use acheron_base::{Error, Result, quoted};

/// What is known of the changes of a view, in the same order.
pub struct Judged<'a> {
    pub changes: &'a [Change],
    /// Why each is held back.
    pub held: &'a [Option<String>],
    /// The ignored directory that each lies in.
    pub ignored: &'a [Option<PathBuf>],
    /// The protected names of the project.
    pub names: &'a [String],
}

/// The numbers of the changes that go back. Without `paths`: all that are neither held nor ignored. With them: each names a
/// change or a directory of changes; one that is held must be named itself, or the repository of git that it belongs to.
pub fn chosen(judged: &Judged<'_>, paths: Option<&[String]>) -> Result<Vec<usize>> {
    let Judged { changes, held, ignored, .. } = judged;
    let Some(paths) = paths else {
        return Ok((0..changes.len()).filter(|at| held[*at].is_none() && ignored[*at].is_none()).collect());
    };
    let mut taken = vec![false; changes.len()];
    for named in paths {
        let wanted = named.trim_end_matches('/');
        let (mut found, mut why) = (false, None);
        for (at, change) in changes.iter().enumerate() {
            let own = change.path.to_string() == wanted;
            if !own && !change.path.is_below(wanted.as_ref()) {
                continue;
            }
            match &held[at] {
                Some(_) if own || of_git(judged, at, wanted) => (),
                Some(reason) => {
                    why = Some(format!("{}: {reason}", change.path));
                    continue;
                }
                None => (),
            }
            (taken[at], found) = (true, true);
        }
        if !found {
            return Err(match why {
                Some(why) => Error::forbidden(format!("{} is held back ({why}); name it itself", quoted(wanted))),
                None => {
                    let known: Vec<String> = changes.iter().map(|change| change.path.to_string()).collect();
                    let hint = hint(wanted, known.iter().map(String::as_str), "changes");
                    Error::invalid(format!("the view has no change at {}{hint}", quoted(wanted)))
                }
            });
        }
    }
    Ok((0..changes.len()).filter(|at| taken[*at]).collect())
}

/// Whether a change is of the repository that is named, and none of what a repository runs.
fn of_git(judged: &Judged<'_>, at: usize, wanted: &str) -> bool {
    let path = &judged.changes[at].path.0;
    held::git_dir(path).is_some_and(|dir| dir.as_os_str() == wanted)
        && held::protected_name(path, judged.names).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{ChangeKind, Content, EntryType, Side};
    use crate::rel_path::RelPath;

    fn added(path: &str) -> Change {
        let after = Some(Side { kind: EntryType::File, mode: 0o644, size: 1 });
        let (path, kind, content) = (RelPath::new(path), ChangeKind::Added, Content::Upper);
        Change { path, kind, from: None, before: None, after, content, whole: false, files: 0, bytes_differ: true }
    }

    #[test]
    fn what_is_held_or_ignored_goes_back_only_if_it_is_named() {
        let changes = ["a", "d/b", "d/.mcp.json", ".git/index", ".git/hooks/x", "target/o"].map(added);
        let names = [".git/hooks", ".mcp.json"].map(str::to_owned);
        let held: Vec<Option<String>> = changes.iter().map(|change| held::reason(change, &names, None)).collect();
        let ignored = [None, None, None, None, None, Some(PathBuf::from("target"))];
        let judged = Judged { changes: &changes, held: &held, ignored: &ignored, names: &names };
        let choose = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            chosen(&judged, Some(&paths))
        };
        assert_eq!(chosen(&judged, None).unwrap(), [0, 1]);
        assert_eq!(choose(&["d"]).unwrap(), [1]);
        assert_eq!(choose(&["d/", "d/.mcp.json", "target"]).unwrap(), [1, 2, 5]);
        assert_eq!(choose(&[".git"]).unwrap(), [3], "the hook is named itself or not at all");
        assert_eq!(choose(&[".git/hooks/x"]).unwrap(), [4]);
        assert!(choose(&[".git/hooks"]).unwrap_err().message.contains("held back"));
        assert!(choose(&["nothing"]).unwrap_err().message.contains("no change at `nothing`"));
    }
}
