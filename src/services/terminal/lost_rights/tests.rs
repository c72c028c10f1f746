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
