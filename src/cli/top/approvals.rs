//! The approvals that wait, read from the tree as any program would. Where the host has none, there are none.

use std::path::Path;

use serde_json::Value;

/// So many are shown, and so much is read of one.
const SHOWN: usize = 64;
const LONGEST: u64 = 1 << 20;

/// A request that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingApproval {
    pub id: String,
    pub agent: String,
    /// In the host's words.
    pub summary: String,
}

/// Those that wait now, oldest first.
pub fn pending(mountpoint: &Path) -> Vec<PendingApproval> {
    let Ok(listed) = std::fs::read_dir(mountpoint.join("approvals")) else { return Vec::new() };
    let mut ids: Vec<String> = listed
        .filter_map(|entry| entry.ok().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    ids.sort();
    ids.iter().filter_map(|id| read(mountpoint, id)).take(SHOWN).collect()
}

fn read(mountpoint: &Path, id: &str) -> Option<PendingApproval> {
    let file = std::fs::File::open(mountpoint.join("approvals").join(id).join("request.json")).ok()?;
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, LONGEST), &mut text).ok()?;
    of(id, &serde_json::from_slice(&text).ok()?)
}

fn of(id: &str, request: &Value) -> Option<PendingApproval> {
    let waits = request["state"].as_str().is_none_or(|state| state == "waiting" || state == "pending");
    let word = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
    waits.then(|| PendingApproval { id: id.to_owned(), agent: word("agent"), summary: word("summary") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_waits_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(pending(dir.path()), []);
        for (id, request) in [
            ("b", json!({"state": "waiting", "agent": "eve", "summary": "terminal.exec make"})),
            ("a", json!({"state": "denied", "agent": "eve"})),
            ("c", json!("no request")),
        ] {
            let at = dir.path().join("approvals").join(id);
            std::fs::create_dir_all(&at).unwrap();
            std::fs::write(at.join("request.json"), request.to_string()).unwrap();
        }
        std::fs::write(dir.path().join("approvals/README.md"), "").unwrap();
        let found = pending(dir.path());
        assert_eq!(
            found[0],
            PendingApproval { id: "b".into(), agent: "eve".into(), summary: "terminal.exec make".into() }
        );
        assert_eq!(found.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    }
}
