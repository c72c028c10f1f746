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
mod tests {
    use super::*;
    use acheron_sandbox::PathRule;

    fn plan(read_only: bool, rules: &[(&str, Visibility)]) -> Plan {
        let mut plan = Plan::new("a", ["sh"]).bind("/srv/p", "/projects/p/fs", read_only);
        let rule = |(path, show): &(&str, Visibility)| PathRule {
            path: Path::new("/projects/p/fs").join(path),
            bind: "/projects/p/fs".into(),
            show: *show,
        };
        plan.path_rules = rules.iter().map(rule).collect();
        plan
    }

    #[test]
    fn a_loss_is_told_and_a_gain_is_not() {
        let said = |old: &Plan, new: &Plan| lost(old, new, |_| false).unwrap_or_else(|| "nothing".to_owned());
        let (open, closed) = (plan(false, &[]), plan(true, &[]));
        let hidden = plan(false, &[("key", Visibility::Hidden)]);
        let fixed = plan(false, &[("key", Visibility::ReadOnly)]);
        for (old, new, expected) in [
            (&open, &open, "nothing"),
            (&closed, &open, "nothing"),
            (&hidden, &fixed, "nothing"),
            (&open, &closed, "/projects/p/fs may no longer be written"),
            (&open, &hidden, "/projects/p/fs/key may no longer be read"),
            (&fixed, &hidden, "/projects/p/fs/key may no longer be read"),
            (&open, &fixed, "/projects/p/fs/key may no longer be written"),
            (&open, &Plan::new("a", ["sh"]), "/projects/p/fs may no longer be read"),
            (&Plan::new("a", ["sh"]), &open, "nothing"),
        ] {
            assert_eq!(said(old, new), expected);
        }
        assert_eq!(lost(&open, &fixed, |path| path.ends_with("key")), None);
        let mut online = open.clone();
        online.network = true;
        assert_eq!(said(&online, &open), "the network is no longer granted");
        let mut moved = open.clone();
        moved.binds[0].source = "/srv/q".into();
        assert_eq!(said(&open, &moved), "/projects/p/fs is another directory now");
    }
}
