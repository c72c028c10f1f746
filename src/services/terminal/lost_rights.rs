//! Whether programs that run with an older plan may do something that they could not do with a newer one. Pure.

use std::path::{Path, PathBuf};

use acheron_sandbox::{Plan, Visibility};

/// What a plan allows at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Right {
    Nothing,
    Read,
    Write,
}

/// What `new` takes away of what `old` allows, in words; `None` if nothing. `spared` says of a path that its protection
/// does not count: what an agent makes itself may be protected from the next program on.
pub fn lost(old: &Plan, new: &Plan, spared: impl Fn(&Path) -> bool) -> Option<String> {
    if old.network && !new.network {
        return Some("the network is no longer granted".to_owned());
    }
    let binds = |plan: &Plan| plan.binds.iter().map(|bind| bind.target.clone()).collect::<Vec<PathBuf>>();
    let rules = |plan: &Plan| plan.path_rules.iter().map(|rule| rule.path.clone()).collect::<Vec<PathBuf>>();
    let paths = [binds(old), binds(new), rules(old), rules(new)].concat();
    let less = paths.iter().find(|path| right(new, path) < right(old, path) && !spared(path));
    if let Some(path) = less {
        let what = if right(new, path) == Right::Nothing { "read" } else { "written" };
        return Some(format!("{} may no longer be {what}", path.display()));
    }
    let moved = old.binds.iter().find(|bind| {
        new.binds
            .iter()
            .any(|other| other.target == bind.target && (&other.source, other.id) != (&bind.source, bind.id))
    });
    if let Some(bind) = moved {
        return Some(format!("{} is another directory now", bind.target.display()));
    }
    let hidden = new.hidden.iter().find(|path| !old.hidden.iter().any(|before| path.starts_with(before)));
    let gone = old.system.iter().find(|named| !new.system.contains(named));
    hidden.or(gone).map(|path| format!("{} may no longer be read", path.display()))
}

fn right(plan: &Plan, path: &Path) -> Right {
    let bind = plan.binds.iter().filter(|bind| path.starts_with(&bind.target));
    let Some(bind) = bind.max_by_key(|bind| bind.target.components().count()) else { return Right::Nothing };
    let rules =
        plan.path_rules.iter().filter(|rule| path.starts_with(&rule.path) && rule.path.starts_with(&bind.target));
    match rules.max_by_key(|rule| rule.path.components().count()).map(|rule| rule.show) {
        Some(Visibility::Hidden) => Right::Nothing,
        Some(Visibility::ReadOnly) => Right::Read,
        Some(Visibility::Open) => Right::Write,
        None if bind.read_only => Right::Read,
        None => Right::Write,
    }
}

#[cfg(test)]
mod tests;
