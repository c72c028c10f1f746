//! Control groups: limits on a sandbox as a whole, by the newer interface where it has the controller, else by the older.
//!
//! Which controller lives where is read from `/proc`, never guessed: hybrid hosts have some here and some there.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::limits::Limits;
use crate::error::{Error, Result};

/// Before the keeper's number in the name of its groups.
const PREFIX: &str = "acheron-";

/// The name of this process's groups.
pub(super) fn name() -> String {
    format!("{PREFIX}{}", std::process::id())
}

/// Where a group for one controller can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub version: u8,
    pub parent: PathBuf,
}

/// The groups that were made for one sandbox; removed when this is told so.
#[derive(Debug, Default)]
pub(super) struct Groups {
    made: Vec<PathBuf>,
    /// Opened while we still had the rights to do so.
    doors: Vec<fs::File>,
}

/// Where `controller` may be had, best first. `mounts` is `/proc/self/mountinfo`, `own` is `/proc/self/cgroup`.
pub(super) fn places(mounts: &str, own: &str, controller: &str) -> Vec<Place> {
    let mut found: Vec<Place> = mounts.lines().flat_map(|line| places_at(line, own, controller)).collect();
    found.sort_by_key(|place| std::cmp::Reverse(place.version));
    found
}

fn places_at(line: &str, own: &str, controller: &str) -> Vec<Place> {
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
    let here = Place { version, parent: Path::new(point).join(below).components().collect() };
    let top = Place { version, parent: PathBuf::from(point) };
    // A group with processes in it cannot hand controllers down (version 2), so the top is worth a try.
    if version == 2 && here != top { vec![here, top] } else { vec![here] }
}

/// Removes groups whose keeper was killed before it could do so itself.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let keeper = entry.file_name().to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if keeper.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            _ = fs::remove_dir(entry.path());
        }
    }
}

/// What to write into which file of a group.
fn settings(controller: &str, version: u8, limits: &Limits) -> Vec<(&'static str, String)> {
    let memory = limits.memory_bytes.to_string();
    match (controller, version) {
        ("memory", 2) => vec![("memory.max", memory), ("memory.swap.max", "0".into())],
        ("memory", _) => vec![("memory.limit_in_bytes", memory.clone()), ("memory.memsw.limit_in_bytes", memory)],
        _ => vec![("pids.max", limits.processes.to_string())],
    }
}

impl Groups {
    /// Makes a group for `controller`, and says by which version.
    pub fn make(&mut self, controller: &str, name: &str, limits: &Limits) -> Result<u8> {
        let (mounts, own) = (fs::read_to_string("/proc/self/mountinfo")?, fs::read_to_string("/proc/self/cgroup")?);
        let places = places(&mounts, &own, controller);
        let mut why = Error::unavailable(format!("no {controller} control group is mounted"));
        for place in places {
            match self.make_at(&place, controller, name, limits) {
                Ok(()) => return Ok(place.version),
                Err(err) => why = err,
            }
        }
        Err(why)
    }

    fn make_at(&mut self, place: &Place, controller: &str, name: &str, limits: &Limits) -> Result<()> {
        sweep(&place.parent);
        let group = place.parent.join(name);
        if let Err(err) = fs::create_dir(&group)
            && err.kind() != std::io::ErrorKind::AlreadyExists
        {
            return Err(Error::unavailable(format!("no right to make a {controller} control group: {err}")));
        }
        match self.set_at(place, controller, &group, limits) {
            Ok(door) => self.doors.push(door),
            Err(err) => {
                // Another controller may live in the same group already; then it stays.
                if !self.made.contains(&group) {
                    _ = fs::remove_dir(&group);
                }
                return Err(Error::unavailable(format!("the {controller} controller cannot be used here: {err}")));
            }
        }
        if !self.made.contains(&group) {
            self.made.push(group);
        }
        Ok(())
    }

    fn set_at(&self, place: &Place, controller: &str, group: &Path, limits: &Limits) -> Result<fs::File> {
        let settings = settings(controller, place.version, limits);
        if place.version == 2 && !group.join(settings[0].0).exists() {
            fs::write(place.parent.join("cgroup.subtree_control"), format!("+{controller}"))?;
        }
        for (index, (file, value)) in settings.iter().enumerate() {
            let written = fs::write(group.join(file), value);
            // Only the first is the limit itself; swap accounting is not on everywhere.
            if index == 0 {
                written?;
            }
        }
        Ok(fs::OpenOptions::new().write(true).open(group.join("cgroup.procs"))?)
    }

    /// Puts a process into every group made.
    pub fn admit(&mut self, pid: i32) -> Result<()> {
        for door in &mut self.doors {
            door.write_all(pid.to_string().as_bytes())?;
        }
        Ok(())
    }

    /// Removes the groups; nobody may be left in them.
    pub fn remove(&mut self) {
        self.doors.clear();
        for group in self.made.drain(..) {
            _ = fs::remove_dir(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mounts: &str, own: &str, controller: &str, expected: &[&str]) {
        let found: Vec<String> =
            places(mounts, own, controller).iter().map(|p| format!("v{} {}", p.version, p.parent.display())).collect();
        assert_eq!(found, expected);
    }

    const HYBRID: &str = "\
31 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
38 25 0:33 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 25 0:35 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";
    const OWN: &str = "8:pids:/\n4:memory:/process/e92\n0::/\n";

    #[test]
    fn a_hybrid_host_is_asked_for_the_newer_interface_first() {
        check(HYBRID, OWN, "memory", &["v2 /sys/fs/cgroup/unified", "v1 /sys/fs/cgroup/memory/process/e92"]);
        check(HYBRID, OWN, "pids", &["v2 /sys/fs/cgroup/unified", "v1 /sys/fs/cgroup/pids"]);
    }

    #[test]
    fn a_service_of_systemd_tries_its_own_group_and_then_the_top() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = "0::/system.slice/acheron.service\n";
        check(mounts, own, "pids", &["v2 /sys/fs/cgroup/system.slice/acheron.service", "v2 /sys/fs/cgroup"]);
    }

    #[test]
    fn in_a_container_the_mount_shows_only_a_part_of_the_tree() {
        let mounts = "30 25 0:26 /docker/ab12 /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n";
        check(mounts, "8:pids:/docker/ab12/x\n", "pids", &["v1 /sys/fs/cgroup/pids/x"]);
    }

    #[test]
    fn what_is_no_list_of_mounts_gives_no_places() {
        check("", OWN, "pids", &[]);
        check("garbage\n - \n1 2 - cgroup2", OWN, "pids", &[]);
        check(HYBRID, "", "pids", &[]);
    }
}
