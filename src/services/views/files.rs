//! The files of a view beside those of every service.

use std::sync::Arc;

use bytes::Bytes;

use super::report;
use super::view::View;
use acheron_base::{Result, blocking};
use acheron_vfs::{Answer, ComputedFile, Node, pretty};
use acheron_views::{ChangeKind, patch};

/// `changes.json` and `diff.patch`, computed from the upper when they are read, and `fs`.
pub fn listed(view: &Arc<View>, fs: Node) -> Vec<(String, Node)> {
    let file = |compute: fn(&View) -> Result<Bytes>| {
        let view = view.clone();
        Node::file(ComputedFile::fetched(move |_| {
            let view = view.clone();
            Answer::soon(blocking(move || compute(&view)))
        }))
    };
    vec![("changes.json".to_owned(), file(changes)), ("diff.patch".to_owned(), file(diff)), ("fs".to_owned(), fs)]
}

fn changes(view: &View) -> Result<Bytes> {
    let (record, mut work) = (view.record(), view.begin()?);
    let judged = view.judge(&mut work, &view.open()?)?;
    Ok(pretty(&report::changes(&record, &judged)))
}

impl View {
    /// The number of changes of each kind, and how many of them are held back.
    pub fn counts(&self) -> Result<(Vec<(String, u64)>, u64)> {
        let mut work = self.begin()?;
        let judged = self.judge(&mut work, &self.open()?)?;
        let kinds = [ChangeKind::Removed, ChangeKind::Renamed, ChangeKind::Changed, ChangeKind::Added];
        let of = |kind| judged.shown().filter(|(_, change)| change.kind == kind).count() as u64;
        let counts = kinds.into_iter().map(|kind| (kind.name().to_owned(), of(kind))).collect();
        Ok((counts, judged.shown().filter(|(at, _)| judged.held[*at].is_some()).count() as u64))
    }
}

/// Of what a reader is shown one by one: what is ignored, or inside of git, is not in the patch.
fn diff(view: &View) -> Result<Bytes> {
    let mut work = view.begin()?;
    let open = view.open()?;
    let judged = view.judge(&mut work, &open)?;
    patch::patch(&open.layers(), judged.shown().map(|(_, change)| change)).map(Bytes::from)
}
