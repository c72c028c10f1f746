//! The game master for authors: cartridges of a library, their check, and a story from its beginning to its end.

use std::path::Path;

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::session;
use crate::test_host::TestHost;

/// A campaign in the named cartridge with the dice of seed 7.
fn begin(cartridge: &str) -> String {
    r#"
    cd agents/self/dm
    call() { exec 3<>control/$1.json; echo "$2" >&3; cat <&3; exec 3>&-; }
    call new_campaign '{"id":"c1","cartridge":"CARTRIDGE","seed":7}' > /dev/null
    call init '{"answers":{"preset":"Mystery Investigation","pc_name":"Ann","pc_strengths":"clever, charming","pc_drive":"to see the water come down","date":"2026-11-16"},"confirm":true}' > /dev/null
    cd campaigns/c1
    "#
    .replace("CARTRIDGE", cartridge)
}

#[test]
fn a_story_ends_is_read_as_one_page_and_is_played_on() {
    let script = include_str!("../corpus/dm_input/longdry.play");
    let moves: String = script
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| format!("printf '%s\\n' \"{line}\" > input || echo refused\n"))
        .collect();
    let rest = r#"
        jq -r '.quests | to_entries[] | .key + " " + .value.status' state.json
        sed -n '/^Epilogue/,/closed/p' output
        echo '[LOOK]{around}' > input; head -1 output
        head -n 3 story.md; grep '^## ' story.md; tail -n 2 story.md | cut -c 1-60
        jq -c '[.[].input]' menu.json; jq -c '[.[].id]' clocks.json
        echo '<play on>' > input; head -1 output
        echo '[LOOK]{around}' > input; grep -c Epilogue output
        cd ../..; call replay '{}' | jq -c .result.equal
    "#;
    TestHost::new().check(&format!("{}{moves}{rest}", begin("longdry")), expect![[r#"
        @empty_house done
        @last_well done
        @lost_flock done
        Epilogue: The House by the Stream

        The stream comes down past the wall of Cold Well, and by morning it has found its own bed.
        At the Old Steading somebody has lit the hearth, and it is you.
        Thirty-nine sheep drink at the ford, and Odd has asked for the key of your upper field.
        The warden has hung a second cup on the hooks.

        The campaign is closed. `story.md` tells it from the beginning; <play on> opens it again.
        [Error] the story has ended: The House by the Stream; read story.md, or send <play on> to open the campaign again
        # The Long Dry: the story of Ann

        *To see the water come down.*
        ## Day 1
        ## Day 2
        ## Day 3
        ## Day 4
        ## The House by the Stream

        The stream comes down past the wall of Cold Well, and by mor
        ["<play on>","<continue>"]
        ["drought"]
        The story goes on after its ending: The House by the Stream.
        0
        true
        ! bash: line 68: echo: write error: Invalid argument
    "#]]);
}

/// The template as a cartridge of its own, in a library that changes a rule, the template of campaigns and the catalogue.
fn library(here: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("global-library");
    let copy = |from: &str, to: &str, change: &dyn Fn(String) -> String| {
        let mut open = vec![root.join(from)];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let target = here.join("lib").join(to).join(path.strip_prefix(root.join(from)).unwrap());
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            std::fs::write(target, change(std::fs::read_to_string(&path).unwrap())).unwrap();
        }
    };
    copy("cartridges/_template", "cartridges/gate", &|text| {
        text.replace("cartridge_id: _template", "cartridge_id: gate")
    });
    copy("campaigns/_template", "campaigns/_template", &|text| {
        text.replace("# Governance", "# Governance of the gate")
    });
    copy("catalogue", "catalogue", &|text| text);
    std::fs::create_dir_all(here.join("lib/dm/engine/mechanics")).unwrap();
    let combat = std::fs::read_to_string(root.join("dm/engine/mechanics/COMBAT.md")).unwrap();
    std::fs::write(
        here.join("lib/dm/engine/mechanics/COMBAT.md"),
        combat.replace("| dagger | d4 |", "| dagger | d12 |"),
    )
    .unwrap();
    std::fs::write(here.join("lib/Index.md"), "# Ours\n").unwrap();
    let kits = std::fs::read_to_string(root.join("catalogue/kits.json")).unwrap();
    std::fs::write(here.join("lib/catalogue/kits.json"), kits.replacen("\"name\": \"", "\"name\": \"Our ", 1)).unwrap();
}

#[test]
fn cartridges_rules_template_and_catalogue_come_from_the_library_that_the_mountspec_names() {
    let mut spec: Value = serde_json::from_str(acheron::spec::DEFAULT).unwrap();
    spec["library"] = json!("lib");
    let house = TestHost::prepared(&spec.to_string(), library);
    let rest = r#"
        ls ../../cartridges
        grep -c d12 ../../engine/mechanics/COMBAT.md
        echo '[LOOK]{around}' > input; grep -A1 Scene output
        echo '[FIGHT]{Hobb}' > input; echo '[FIGHT]{Hobb}' > input; echo '[FIGHT]{Hobb}' > input
        grep -c 'dagger damage' dice.ndjson | sed 's/[1-9]/some/'; jq -r 'select(.why == "dagger damage").sides' dice.ndjson | sort -u
        echo '[LOOK]{around}' > input; echo '[LOOK]{around}' > input
        cd ../..; call replay '{}' | jq -c .result.equal; call check '{"cartridge":"gate"}' | jq -c '.result | [.ok, .summary]'
    "#;
    house.check(
        &format!("{}{rest}", begin("gate")),
        expect![[r#"
            brinewick
            gate
            longdry
            1
            [Scene]
            Day 1, 08:10, the Old Gate. Grass grows high on this side, and not at all on the other. It smells of wet wood. Hobb is here.
            some
            12
            true
            [true,"gate 0.1.0: 1 place, 1 person, 1 thing, 1 quest, 1 ending"]
        "#]],
    );
    let state = house.state();
    let mut open = vec![state];
    let mut found = false;
    while let Some(path) = open.pop() {
        match std::fs::read_dir(&path) {
            Ok(entries) => open.extend(entries.map(|entry| entry.unwrap().path())),
            Err(_) => {
                found |= path.ends_with("GOVERNANCE_PANEL.md")
                    && std::fs::read_to_string(&path).unwrap().contains("of the gate");
            }
        }
    }
    assert!(found, "the template of the library is used");
}

#[test]
fn a_folder_with_a_cartridge_is_checked_whole() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().canonicalize().unwrap();
    library(&here);
    let said = |script: &str| {
        let script = script.replace("acheron", env!("CARGO_BIN_EXE_acheron"));
        session(&here, &script).replace(&here.display().to_string(), "HERE")
    };
    expect![[r#"
        lib/cartridges/gate: ok: gate 0.1.0: 1 place, 1 person, 1 thing, 1 quest, 1 ending
        = 0
        ./characters/NPCs/gatekeeper.md:4: @gatekeeper: disposition `sunny` must be one of friendly, neutral, wary, hostile
        ./maps/MAP_INDEX.md:1: there is no map: write maps/<name>.data.json
        ./quests/open_gate.md:11: `strength` is not an ability: str, dex, int, will, cha
        ./quests/open_gate.md:11: unknown handle @gate_keys; the nearest is @gate_key
        ./lore/CANON/cafe.md:1: the page is not UTF-8 text
        = 1
        ../other/CARTRIDGE.md:3: cartridge_id is `gate`, and the folder is `other`: they must be equal
        = 1
        ! error: maps is a folder without a CARTRIDGE.md: name a mountspec, or the folder of a cartridge
    "#]].assert_eq(&said(
        r#"
        acheron check lib/cartridges/gate; echo = $?
        cd lib/cartridges/gate
        sed -i 's/| str 8 |/| strength 8 |/' quests/open_gate.md
        sed -i 's/@gate_key |/@gate_keys |/' quests/open_gate.md
        sed -i 's/: friendly/: sunny/' characters/NPCs/gatekeeper.md
        rm maps/gate.data.json
        printf '# caf\351\n' > lore/CANON/cafe.md
        cp -r . ../other
        acheron check .; echo = $?
        acheron check ../other | head -n 1
        acheron check maps; echo = $?
        "#,
    ));
}
