//! Where control groups can be made: with the newer interface where it has the controller, else with the older. `/proc`
//! says where a controller is; hybrid hosts have some in each. [`groups`](super::groups) uses it; it makes nothing.

use std::path::{Path, PathBuf};

/// A directory where a group for one controller can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupParent {
    pub version: u8,
    pub parent: PathBuf,
}

/// The directories for `controller`, best first. `mounts` is `/proc/self/mountinfo`, `own` is `/proc/self/cgroup`.
pub(super) fn parents(mounts: &str, own: &str, controller: &str) -> Vec<GroupParent> {
    let mut found: Vec<GroupParent> = mounts.lines().flat_map(|line| parents_at(line, own, controller)).collect();
    found.sort_by_key(|place| std::cmp::Reverse(place.version));
    found
}

fn parents_at(line: &str, own: &str, controller: &str) -> Vec<GroupParent> {
    let Some((left, right)) = line.split_once(" - ") else { return Vec::new() };
    let (left, right): (Vec<&str>, Vec<&str>) = (left.split(' ').collect(), right.split(' ').collect());
    let (Some(root), Some(point), Some(kind)) = (left.get(3), left.get(4), right.first()) else { return Vec::new() };
    let options = right.last().copied().unwrap_or_default();
    let version = match *kind {
        "cgroup2" => 2,
        "cgroup" if options.split(',').any(|option| option == controller) => 1,
        _ => return Vec::new(),
    };
    let mine = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, names, path) = (fields.next()?, fields.next()?, fields.next()?);
        let matches =
            if version == 2 { number == "0" && names.is_empty() } else { names.split(',').any(|n| n == controller) };
        matches.then_some(path)
    });
    let Some(mine) = mine else { return Vec::new() };
    let below = mine.strip_prefix(root.trim_end_matches('/')).unwrap_or(mine).trim_start_matches('/');
    let here = GroupParent { version, parent: Path::new(point).join(below).components().collect() };
    let top = GroupParent { version, parent: PathBuf::from(point) };
    if version == 1 || here == top {
        return vec![here];
    }
    // A group with processes in it cannot delegate controllers (version 2). The one above is empty where systemd gave
    // us a group of our own in what it delegated (`DelegateSubgroup=`), and the top is worth a try.
    let above = here.parent.parent().filter(|above| above.starts_with(&top.parent) && **above != top.parent);
    let above = above.map(|above| GroupParent { version, parent: above.to_owned() });
    [Some(here), above, Some(top)].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
