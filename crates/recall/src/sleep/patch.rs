//! Changes of pages as a patch that `patch -p1` and `git apply` take.

use similar::TextDiff;

use super::validate::SleepChange;

pub fn patch(changes: &[SleepChange]) -> String {
    changes.iter().map(one).collect()
}

fn one(change: &SleepChange) -> String {
    // A tab ends a name, which may have blanks.
    let named = |side: &str| format!("{side}/{}{}", change.path, if change.path.contains(' ') { "\t" } else { "" });
    let old = match change.before {
        Some(_) => named("a"),
        None => "/dev/null".to_owned(),
    };
    let diff = TextDiff::from_lines(change.before.as_deref().unwrap_or_default(), &change.after);
    diff.unified_diff().context_radius(3).header(&old, &named("b")).to_string()
}
