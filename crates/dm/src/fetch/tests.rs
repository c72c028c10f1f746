use super::*;
use crate::input::{Input, parse};
use crate::load;
use crate::world::Object;

fn moved(text: &str) -> Move {
    match parse(text, &[]).unwrap() {
        Input::Move(found) => found,
        Input::Control(_) => panic!("a move"),
    }
}

fn quest() -> Quest {
    let mut world = crate::tests::brinewick();
    world.quests.remove(0)
}

fn world() -> Cartridge {
    let long = "x".repeat(200);
    let page = (0..6).map(|n| format!("- hit {n} {long}\n")).collect::<String>();
    let object = |kind, handle: &str, path: &str| Object {
        kind,
        handle: handle.into(),
        name: handle.into(),
        summary: String::new(),
        status: "active".into(),
        aliases: vec![],
        path: Some(path.into()),
        fields: Default::default(),
        easy_secrets: vec![],
        hard_secrets: vec![],
        facts: Vec::new(),
        topics: Vec::new(),
    };
    let mut world = Cartridge {
        objects: vec![
            object(ObjectKind::Loc, "@here", "l.md"),
            object(ObjectKind::Npc, "@elias", "n.md"),
            object(ObjectKind::Quest, "@quest", "q.md"),
        ],
        quests: vec![Quest { handle: "@quest".into(), ..quest() }],
        routes: load::routes("- [LOOK] -> a.md, b.md\n[ASK]-> .DM_SECRETS.md\n", ""),
        ..Cartridge::default()
    };
    for path in ["l.md", "n.md", "q.md", ".DM_SECRETS.md"] {
        world.files.insert(path.into(), page.clone());
    }
    world
}

fn at(place: &str, quests: &[&str]) -> State {
    let mut state = State { location: place.into(), ..State::default() };
    for quest in quests {
        state.quests.insert((*quest).into(), crate::state::Progress { stage: 0, status: "active".into() });
    }
    state
}

#[test]
fn rows_45_to_52_routes_and_caps() {
    let world = world();
    assert_eq!(route(&world, Header::Look), ["a.md", "b.md"], "row 45");
    let plain = fetch(&moved("[ACT]{walk}"), &[], &at("@here", &[]), &world);
    assert_eq!(plain.notes, ["no route for [ACT]"], "row 46");
    let look = fetch(&moved("[LOOK]{sky}"), &[], &at("@here", &[]), &world);
    assert_eq!(look.risk_flags, ["a.md", "b.md"], "row 47");
    let ask = fetch(&moved("[ASK]{@elias}"), &["@elias".into()], &at("@here", &["@quest"]), &world);
    let expected = ["l.md", "n.md", "q.md", "mechanics/SOCIAL_INVESTIGATION.md"];
    assert_eq!(ask.opened, expected, "rows 49 and 52: never a hidden file; place, person, quest, mechanism");
    let of = |path: &str| ask.snippets.iter().filter(|own| own.from.starts_with(&format!("[{path}"))).count();
    assert_eq!(["l.md", "n.md", "q.md"].map(of), [2, 2, 1], "row 50: each has its own limit");
    assert!(ask.snippets.iter().all(|own| own.text.chars().count() <= 80), "row 50");
    let voice = fetch(&moved("[ACT]{inner: doubt}"), &[], &at("@here", &[]), &world);
    assert!(voice.opened.is_empty(), "row 12: no retrieval");
}

#[test]
fn row_51_survival_brings_one_snippet() {
    let rest = fetch(&moved("[MANAGE]{rest}"), &[], &at("@nowhere", &[]), &world());
    assert_eq!((rest.opened, rest.snippets.len()), (vec!["mechanics/SURVIVAL.md".to_owned()], 1));
}
