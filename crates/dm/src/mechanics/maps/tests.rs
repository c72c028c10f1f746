use super::*;

fn map() -> Map {
    let node = |n: usize, at: &str, x| Node {
        id: format!("@{n}"),
        at: at.into(),
        status: "known".into(),
        x,
        y: 0,
        rp: 1,
        pi: 2,
    };
    let edge =
        |from: &str, to: &str| Edge { from: from.into(), to: to.into(), kind: "road".into(), minutes: 10, km: 0 };
    Map {
        version: 1,
        reason: "survey".into(),
        scale: "node".into(),
        nodes: vec![node(1, "@a", 0), node(2, "@b", 1), node(3, "@c", 2), node(4, "@d", 3)],
        edges: vec![edge("@a", "@b"), edge("@b", "@c"), edge("@c", "@d")],
    }
}

#[test]
fn fog_lies_where_nobody_walked() {
    let shown = map().render(&["@a".into()], "@b", |at| at.to_uppercase());
    assert_eq!(shown.lines().next(), Some(" @1 [2]   ·   ?"));
    assert!(shown.contains("@1 @A · risk 1") && !shown.contains("@C"));
}

#[test]
fn a_change_has_a_reason_and_a_version_and_leaves_a_lawful_map() {
    let known = |at: &str| at.len() == 2;
    let risk = MapChange::UpdateRisk { at: "@c".into(), rp: 3 };
    let changed = map().change(&risk, "wolves", known).unwrap();
    assert_eq!((changed.version, changed.reason.as_str(), changed.nodes[2].rp), (2, "wolves", 3));
    assert!(map().change(&risk, " ", known).unwrap_err().message.contains("reason"));
    let link = |to: &str| MapChange::Link { from: "@a".into(), to: to.into(), kind: "road".into(), minutes: 5 };
    assert!(map().change(&link("@z"), "a bridge", known).unwrap_err().message.contains("not on the map"));
    assert!(map().change(&MapChange::UpdateRisk { at: "@a".into(), rp: 9 }, "x", known).is_err());
    assert!(map().change(&MapChange::AddPoi { at: "@new".into(), x: 0, y: 0 }, "x", known).is_err());
}

#[test]
fn a_change_makes_no_way_twice_to_itself_or_in_no_time() {
    let known = |at: &str| at.len() == 2;
    let link = |from: &str, to: &str, kind: &str, minutes| MapChange::Link {
        from: from.into(),
        to: to.into(),
        kind: kind.into(),
        minutes,
    };
    for (change, why) in [
        (link("@b", "@a", "road", 5), "two ways of kind road join @b and @a"),
        (link("@a", "@a", "trail", 5), "from @a to itself"),
        (link("@a", "@c", "trail", 0), "takes no time"),
        (link("@1", "@c", "trail", 5), "@1, which is the number of a node: ways name places by their handles"),
    ] {
        let refused = map().change(&change, "a bridge", known).unwrap_err().message;
        assert!(refused.contains(why), "{refused}");
    }
    map().change(&link("@a", "@b", "secret", 5), "a second way of another kind", known).unwrap();
    for reason in ["a\nb", "a [HUD] b", "a \u{1b}[31m b", "a\u{200b}b", &"x".repeat(201)] {
        assert!(map().change(&link("@a", "@c", "trail", 5), reason, known).is_err(), "{reason:?}");
    }
}

#[test]
fn the_shortest_way_passes_only_where_it_may() {
    assert_eq!(map().path("@a", "@c", |_| true), Some((vec!["@a".into(), "@b".into(), "@c".into()], 20)));
    assert_eq!(map().path("@a", "@d", |at| at != "@b"), None);
    assert_eq!(map().path("@a", "@a", |_| true), Some((vec!["@a".into()], 0)));
}
