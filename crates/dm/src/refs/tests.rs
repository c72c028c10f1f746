use super::*;
use crate::world::ObjectKind;

fn world() -> Cartridge {
    let object = |kind, handle: &str, name: &str, aliases: &[&str]| Object {
        kind,
        handle: handle.into(),
        name: name.into(),
        summary: String::new(),
        status: "active".into(),
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        path: None,
        fields: BTreeMap::new(),
        easy_secrets: vec![],
        hard_secrets: vec![],
        facts: Vec::new(),
        topics: Vec::new(),
    };
    let mut objects = vec![
        object(ObjectKind::Loc, "@gate", "the Gate", &[]),
        object(ObjectKind::Npc, "@elias", "Elias", &["the old man"]),
        object(ObjectKind::Npc, "@marcus", "Marcus", &[]),
        object(ObjectKind::Npc, "@紫悦", "紫悦", &["暮光"]),
        object(ObjectKind::Item, "@gate_key", "Gate Key", &[]),
    ];
    objects.extend((1..=5).map(|n| object(ObjectKind::Npc, &format!("@guard_{n}"), &format!("Guard {n}"), &["guard"])));
    Cartridge { objects, ..Cartridge::default() }
}

fn shown(text: &str, n1: &str) -> String {
    let hud = BTreeMap::from([("L1".into(), "loc_gate".into()), ("N1".into(), n1.to_owned())]);
    match resolve(text, &world(), &hud) {
        Ok(handles) => handles.join(" "),
        Err(unclear) => unclear.sentence(),
    }
}

#[test]
fn the_rows_of_references() {
    for (row, text, n1, expected) in [
        ("35", "Talk to N1", "npc_elias", "@elias"),
        ("36", "Go to P1", "npc_elias", "@gate"),
        ("37", "N1", "npc_marcus", "@marcus"),
        ("38", "N7", "npc_marcus", "N7 is no code of this turn's HUD"),
        ("39", "Marcus", "npc_elias", "@marcus"),
        ("39a", "ask the Old Man about MARCUS", "npc_elias", "@elias @marcus"),
        ("39b", "问暮光", "npc_elias", "@紫悦"),
        ("39c", "use the gate key", "npc_elias", "@gate_key"),
        (
            "40",
            "shout at the guard",
            "npc_elias",
            "`guard` may be @guard_1 (Guard 1), @guard_2 (Guard 2), @guard_3 (Guard 3); say which by its handle",
        ),
        ("41", "@nobody", "npc_elias", "unknown handle @nobody"),
        ("41a", "@elais", "npc_elias", "unknown handle @elais; the nearest is @elias"),
        ("41b", "greet @紫悦", "npc_elias", "@紫悦"),
        ("41c", "whistle", "npc_elias", ""),
    ] {
        assert_eq!(shown(text, n1), expected, "row {row}");
    }
}

proptest::proptest! {
    #[test]
    fn any_words_are_looked_through(text in "[@LN1 a-z]{0,20}\\PC{0,20}") {
        let _ = shown(&text, "npc_elias");
    }
}
