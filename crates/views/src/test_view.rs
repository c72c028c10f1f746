//! A view on a real mount, for tests. They need root, as the mounts of the other tests do.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::change::ChangeKind;
use crate::manifest::Manifest;
use crate::marks::MarkNames;
use crate::overlay::{self, OverlayDirs};
use crate::promote::{self, PromoteStep, Stage};
use crate::root::Root;
use crate::walk::{ComparedFiles, Layers, ViewChanges, changes};

pub struct TestView {
    pub place: tempfile::TempDir,
    pub dirs: OverlayDirs,
    pub upper: Root,
    pub base: Root,
}

impl TestView {
    /// A view of a base that this script makes.
    pub fn of(script: &str) -> TestView {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("base")).unwrap();
        fs::create_dir(at("stage")).unwrap();
        sh(&at("base"), script);
        let dirs = OverlayDirs { base: at("base"), upper: at("upper"), work: at("work"), at: at("fs") };
        overlay::make_dirs(&dirs).unwrap();
        overlay::mount(&dirs, MarkNames::Trusted).unwrap();
        let (upper, base) = (Root::open(&dirs.upper).unwrap(), Root::open(&dirs.base).unwrap());
        TestView { place, dirs, upper, base }
    }

    pub fn layers(&self) -> Layers<'_> {
        Layers { upper: &self.upper, base: &self.base, marks: MarkNames::Trusted }
    }

    /// Runs a script in the view.
    pub fn run(&self, script: &str) -> String {
        sh(&self.dirs.at, script)
    }

    pub fn in_base(&self, script: &str) -> String {
        sh(&self.dirs.base, script)
    }

    pub fn changes(&self) -> ViewChanges {
        changes(&self.layers(), &mut ComparedFiles::default()).unwrap()
    }

    /// One line for each change.
    pub fn told(&self) -> Vec<String> {
        let line = |change: &crate::change::Change| {
            let from = change.from.as_ref().map_or(String::new(), |from| format!(" from {from}"));
            let files = if change.whole { format!(" with {}", change.files) } else { String::new() };
            let mode = (change.kind == ChangeKind::Changed && !change.bytes_differ)
                .then(|| format!(" {:o}", change.after.unwrap().mode));
            format!("{} {}{from}{files}{}", change.kind.name(), change.path, mode.unwrap_or_default())
        };
        self.changes().changes.iter().map(line).collect()
    }

    pub fn manifest(&self) -> Manifest {
        Manifest::scan(&self.base, &[]).unwrap()
    }

    pub fn stage(&self) -> Stage {
        Stage::open(&self.place.path().join("stage")).unwrap()
    }

    /// The staged steps of all changes.
    pub fn planned(&self) -> Vec<PromoteStep> {
        let view = self.changes();
        let all: Vec<usize> = (0..view.changes.len()).collect();
        let plan = promote::plan(&self.layers(), &view, &all).unwrap();
        promote::stage(&self.layers(), plan, &self.stage()).unwrap()
    }
}

impl Drop for TestView {
    fn drop(&mut self) {
        _ = overlay::take_away(&self.dirs.at);
    }
}

pub fn sh(dir: &Path, script: &str) -> String {
    let done = Command::new("sh").args(["-ec", script]).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Every path of a directory with its mode and bytes, to compare two of them.
pub fn picture(dir: &Path) -> String {
    let list = r#"find . -mindepth 1 ! -path './.git*' -printf '%P %y %m %l ' \( -type f -exec sh -c 'sha256sum < "$1"' _ {} \; -o -printf '\n' \) | sort"#;
    sh(dir, list)
}
