use super::*;
use crate::shipped;

/// The faults of a cartridge, as lines.
fn lines(files: &Files) -> Vec<String> {
    inspect(files).faults.iter().map(ToString::to_string).collect()
}

fn changed(changes: &[(&str, &str, &str)]) -> Files {
    let mut files = shipped::cartridge("brinewick").unwrap();
    for (path, from, to) in changes {
        let text = files.get_mut(*path).unwrap_or_else(|| panic!("no {path}"));
        assert!(text.contains(from), "{path} has no {from}");
        *text = text.replace(from, to);
    }
    files
}

#[test]
fn the_shipped_cartridges_have_no_fault() {
    for id in shipped::cartridges().into_iter().chain(["_template".to_owned()]) {
        let report = inspect(&shipped::cartridge(&id).unwrap());
        assert_eq!((report.faults, report.notes), (Vec::new(), Vec::new()), "{id}");
    }
}

#[test]
fn every_fault_is_told_at_once_with_its_file_and_line() {
    let files = changed(&[
        ("characters/NPCs/npc_roster.md", "| @reeves_hall | reeve |", "| @reeve_hall | reeve |"),
        ("quests/dark_lamp.md", "| cha 10 |", "| charm 10 |"),
        ("quests/dark_lamp.md", "Debt+1 (Jun tells", "take @golden_oar; Debt+1 (Jun tells"),
        ("characters/NPCs/guard_holt.md", "disposition: hostile", "disposition: angry"),
        ("locations/reed_path.md", "ground: mud", "ground: swamp"),
        ("lore/MECHANICS/CLOCKS.md", "Grace-1 (the tide took somebody)", "Luck-1 (the tide took somebody)"),
        ("lore/MECHANICS/INDICATORS.md", "| Heat>=3 |", "| Warmth>=3 |"),
        ("CARTRIDGE.md", "start: @lantern_quay", "start: @harbour"),
        ("items/ITEM_INDEX.md", "| @cook_bertrade | 2 |", "| - | heavy |"),
        ("lore/MECHANICS/DEEDS.md", "| ACT | fill grave, dig |", "| ACT | - |"),
        ("items/ITEM_INDEX.md", "- @bell_rope: [\"rope\"]", "- @bell_rope: [\"rope\", \"bell\"]"),
    ]);
    let found = lines(&files);
    for wanted in [
        "characters/NPCs/npc_roster.md:12: unknown handle @reeve_hall; the nearest is @reeves_hall",
        "quests/dark_lamp.md:10: `charm` is not an ability: str, dex, int, will, cha",
        "quests/dark_lamp.md:9: unknown handle @golden_oar",
        "characters/NPCs/guard_holt.md:4: @guard_holt: disposition `angry` must be one of friendly, neutral, wary, hostile",
        "locations/reed_path.md:5: @reed_path: ground `swamp` must be one of narrow, dark, high, mud",
        "lore/MECHANICS/CLOCKS.md:5: unknown indicator Luck; this cartridge has Heat, Rumor, Debt, Grace",
        "lore/MECHANICS/INDICATORS.md:16: unknown indicator Warmth",
        "CARTRIDGE.md:6: start must name a place",
        "items/ITEM_INDEX.md:7: @salt_loaf: weight `heavy` is not a number",
        "quests/QUEST_LOG.md:12: `bell` means @bell_rope and @sextons_bell: give one another name",
        "items/ITEM_INDEX.md:7: @salt_loaf: a thing with a price needs a seller",
        "lore/MECHANICS/DEEDS.md:9: a step needs a target or words (`says`), else any move does it",
    ] {
        assert!(found.iter().any(|line| line == wanted), "{wanted}\n\nfound:\n{}", found.join("\n"));
    }
}

#[test]
fn a_place_that_no_way_leads_to_and_a_missing_map_are_found() {
    let way = "{\"from\": \"@chapel_yard\", \"to\": \"@reed_path\", \"kind\": \"trail\", \"minutes\": 25},";
    let files = changed(&[("maps/brinewick.data.json", way, "")]);
    let found = lines(&files);
    assert!(
        found.contains(
            &"locations/LOCATION_INDEX.md:18: @reed_path cannot be reached from @lantern_quay: no way leads to it"
                .to_owned()
        ),
        "{found:#?}"
    );
    let mut files = shipped::cartridge("brinewick").unwrap();
    files.remove("maps/brinewick.data.json");
    assert!(lines(&files).contains(&"maps/MAP_INDEX.md:1: there is no map: write maps/<name>.data.json".to_owned()));
    files.insert("maps/brinewick.data.yaml".into(), "version: 1\nnodes:\n  - id: one\n".into());
    let found = lines(&files);
    assert!(
        found[0..]
            .iter()
            .any(|line| line
                .starts_with("maps/brinewick.data.yaml:1: the data of a map is JSON, in maps/<name>.data.json")),
        "{found:#?}"
    );
}

#[test]
fn a_quest_that_cannot_be_finished_is_found_by_search() {
    for (changes, wanted) in [
        // Its thing is nowhere.
        (
            vec![("quests/salt_and_ledger.md", "take @ledger_page; ", "")],
            "quests/salt_and_ledger.md:11: quest @salt_and_ledger cannot be finished: nothing leads to stage 3",
        ),
        // A clue that nothing gives.
        (
            vec![("quests/two_plates.md", "lose @oilskin; clue @child_of_the_merrow", "lose @oilskin")],
            "quests/two_plates.md:11: quest @two_plates cannot be finished: nothing leads to stage 3",
        ),
        // A gate that waits for what lies behind it.
        (
            vec![(
                "lore/MECHANICS/INDICATORS.md",
                "| quest @sextons_bell done | @drowned_crypt |",
                "| quest @ninth_name done | @drowned_crypt |",
            )],
            "quests/ninth_name.md:10: quest @ninth_name cannot be finished: nothing leads to stage 1",
        ),
        // The thing is used up by the step before.
        (
            vec![(
                "quests/salt_and_ledger.md",
                "| take @ledger_page; clue @tenth_line",
                "| take @ledger_page; lose @ledger_page; clue @tenth_line",
            )],
            "quests/salt_and_ledger.md:11: quest @salt_and_ledger cannot be finished: nothing leads to stage 3",
        ),
        // It opens after itself.
        (
            vec![("quests/ninth_name.md", "opens: quest @sextons_bell done", "opens: quest @ninth_name done")],
            "quests/ninth_name.md:3: quest @ninth_name cannot be finished: it never opens",
        ),
        // A person who is never where the step is.
        (
            vec![("quests/two_plates.md", "| @widow_sanna | @gull_inn | - |", "| @widow_sanna | @lantern_quay | - |")],
            "quests/two_plates.md:9: quest @two_plates cannot be finished: nothing leads to stage 1",
        ),
        (
            vec![("quests/ENDINGS.md", "Grace<=0 &", "Grace<=-5 &")],
            "quests/ENDINGS.md:7: the ending `the_water` can never be reached",
        ),
    ] {
        let found = lines(&changed(&changes));
        assert!(found.iter().any(|line| line == wanted), "{wanted}\n\nfound:\n{}", found.join("\n"));
    }
}

#[test]
fn a_folder_without_a_head_is_one_fault() {
    let report = inspect(&Files::new());
    assert_eq!(
        (report.ok, report.faults[0].to_string()),
        (false, "CARTRIDGE.md:1: CARTRIDGE.md names no cartridge_id".into())
    );
}

#[test]
fn the_guide_names_every_word_that_an_author_can_write() {
    let guide = include_str!("../../../../global-library/topics/writing-a-cartridge.md");
    let columns =
        ["smell", "shelter", "water", "ground", "soil", "location", "role", "important", "disposition", "affiliation"]
            .into_iter()
            .chain([
                "trust", "greeting", "goals", "insight", "level", "will", "hp", "str", "dex", "weapon", "armour",
                "wants",
            ])
            .chain([
                "thanks", "threat", "acts", "at", "dc", "use", "food", "drink", "price", "seller", "weight", "text",
                "kind",
            ])
            .chain([
                "giver",
                "return_to",
                "opens",
                "stakes",
                "do",
                "says",
                "target",
                "needs",
                "check",
                "gives",
                "cost",
                "once",
            ])
            .chain([
                "to", "fails", "until", "bars", "attack", "wakes", "carries", "segments", "visible", "every", "again",
                "event", "effect", "reason", "wakes_at", "falls", "km", "rp", "pi",
            ]);
    let effects = [
        "take @", "lose @", "clue @", "reveal @", "move @", "put @", "mood @", "status @", "quest @", "time 30", "hp-2",
    ]
    .into_iter()
    .chain(["clock tide+1", "hold lands+1", "Heat+1 (why)"]);
    let conditions = [
        "at @place",
        "seen @place",
        "gone @thing",
        "night",
        "clock tide full",
        "quest @q active|done|failed",
        "day",
        "fatigue",
    ];
    let words = columns
        .chain(effects)
        .chain(conditions)
        .chain(objects::STATS)
        .chain(crate::rule::MOODS)
        .chain(crate::rule::HOLDING);
    let missing: Vec<&str> = words.filter(|word| !guide.contains(word)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn a_slip_of_the_pen_is_told_with_its_file_and_line() {
    let cases: [(&str, &str, &str, &str); 16] = [
        ("quests/dark_lamp.md", "| do | says |", "| do | sayz |", "unknown column `sayz`; the nearest is `says`"),
        ("quests/dark_lamp.md", "| cha 10 |", "| cha 99 |", "a check has a DC of 8 to 20, not 99"),
        ("quests/dark_lamp.md", "| cha 10 |", "|", "the row has 9 cells, and the table 10 columns"),
        (
            "items/ITEM_INDEX.md",
            "| active | @lantern_quay |",
            "| aktiv | @lantern_quay |",
            "@tide_notice: status `aktiv` must be",
        ),
        (
            "characters/NPCs/keeper_osric.md",
            "greeting:",
            "greetings:",
            "unknown field `greetings`; the nearest is `greeting`",
        ),
        (
            "locations/lamp_room.md",
            "- From here on",
            "- Somebody wrote: From here on",
            "unknown field `Somebody wrote`",
        ),
        ("ROUTES.md", "lore/CANON/lamp.md", "lore/CANON/lamb.md", "there is no lore/CANON/lamb.md"),
        ("ROUTES.md", "[CAST]", "[CASTE]", "`[CASTE]` is not a header"),
        ("CARTRIDGE.md", "version: 1.0.4", "version: one", "version `one` must be three numbers"),
        ("lore/MECHANICS/CLOCKS.md", "| 180 min |", "| often |", "every `often` must be like `240 min`"),
        ("lore/MECHANICS/CLOCKS.md", "| yes | 180 min |", "| maybe | 180 min |", "visible `maybe` must be yes or no"),
        ("lore/CANON/lamp.md", "lamp", "la\u{1b}[31mmp", "the control character U+001B does not stand in a page"),
        ("maps/brinewick.data.json", "\"x\": 2", "\"x\": 99999999", "x and y are 0 to 60"),
        (
            "maps/brinewick.data.json",
            "\"minutes\": 25",
            "\"minutes\": 18446744073709551615",
            "a way takes at most 10000 minutes",
        ),
        (
            "maps/brinewick.data.json",
            "\"at\": \"@reed_path\"",
            "\"at\": \"@reed_pat\"",
            "cross-map: @reed_pat is no place",
        ),
        ("lore/MIST/tide.md", "tide", &"x".repeat(300 << 10), "the page is longer than 256 KiB"),
    ];
    let shipped = shipped::cartridge("brinewick").unwrap();
    for (path, from, to, wanted) in cases {
        let found = lines(&changed(&[(path, from, to)]));
        let whole = wanted.starts_with("the page is");
        let at = if whole { 1 } else { crate::load::line_of(&shipped[path], from) };
        let told = |line: &String| line.starts_with(&format!("{path}:{at}: ")) && line.contains(wanted);
        assert!(found.iter().any(told), "{path}:{at}: {wanted}\n\nfound:\n{}", found.join("\n"));
    }
    let files = changed(&[
        ("CARTRIDGE.md", "- Under the chapel", "Under the chapel"),
        ("CARTRIDGE.md", "- The reeve counts", "The"),
    ]);
    assert!(
        lines(&files).iter().any(|line| line.ends_with("the spine has 4 to 6 lines, not 3")),
        "{:?}",
        lines(&files)
    );
}

#[test]
fn a_missing_page_a_missing_map_and_another_folder_are_named_as_they_are() {
    let mut files = shipped::cartridge("_template").unwrap();
    files.remove("quests/open_gate.md");
    let found = lines(&files);
    assert!(found.iter().all(|line| !line.starts_with("open_gate.md")), "{found:#?}");
    assert!(
        found.iter().any(|line| line.contains("@open_gate points to quests/open_gate.md, which is not there")),
        "{found:#?}"
    );
    let mut files = shipped::cartridge("_template").unwrap();
    files.remove("maps/gate.data.json");
    assert!(lines(&files).contains(&"maps/MAP_INDEX.md:1: there is no map: write maps/<name>.data.json".to_owned()));
    let files = shipped::cartridge("_template").unwrap();
    let report = inspect_folder("mine", &files);
    assert_eq!(
        report.faults[0].to_string(),
        "CARTRIDGE.md:3: cartridge_id is `_template`, and the folder is `mine`: they must be equal"
    );
    assert!(inspect_folder("_template", &files).ok);
}

#[test]
fn a_world_that_is_too_large_is_refused_and_not_searched_for_ever() {
    let rows: String = (0..20_000).map(|n| format!("| @p{n} | P {n} | x | active |\n")).collect();
    let row = "| @lantern_quay |";
    let text = shipped::cartridge("brinewick").unwrap()["locations/LOCATION_INDEX.md"].clone();
    let mut files = shipped::cartridge("brinewick").unwrap();
    files.insert("locations/LOCATION_INDEX.md".into(), text.replacen(row, &format!("{rows}{row}"), 1));
    let found = lines(&files);
    assert!(found.iter().any(|line| line.contains("a world has at most 1000")), "{}", found.len());
}

#[test]
fn a_clue_may_come_from_any_effect() {
    let mut files = shipped::cartridge("_template").unwrap();
    let deeds = files.get_mut("lore/MECHANICS/DEEDS.md").unwrap();
    *deeds = deeds.replace("Rumor+1 (a knock at the gate)", "clue @hollow_sound");
    let keeper = files.get_mut("characters/NPCs/gatekeeper.md").unwrap();
    *keeper = keeper.replace("- trust: 1", "- trust: 1\n- wants: @gate_key\n- thanks: clue @grateful");
    assert_eq!(lines(&files), Vec::<String>::new());
    let world = crate::load::cartridge(&files).unwrap();
    assert_eq!(world.clue("@hollow_sound"), "nobody answers, and somebody has heard it");
    assert_eq!(world.clue("@grateful"), "grateful");
}
