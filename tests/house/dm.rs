//! The game, as a player types it.

use std::path::Path;
use std::sync::Arc;

use expect_test::{Expect, expect};
use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};

use crate::model_server::FakeModelServer;
use crate::test_host::TestHost;

/// What every session here begins with: a campaign with the dice of seed 7.
const BEGIN: &str = r#"
    cd agents/self/dm
    call() { exec 3<>control/$1.json; echo "$2" >&3; cat <&3 > /dev/null; exec 3>&-; }
    call new_campaign '{"id":"c1","seed":7}'
    call init '{"answers":{"preset":"Mystery Investigation","pc_name":"Ann","pc_strengths":"clever, charming","date":"2026-11-16"},"confirm":true}'
    cd campaigns/c1
"#;

fn session(rest: &str) -> String {
    format!("{BEGIN}{rest}")
}

/// Plays these commands in a fresh campaign; what they print is as expected.
fn plays(commands: &str, expected: Expect) {
    TestHost::new().check(&session(commands), expected);
}

/// The default mountspec with this for the game master.
fn spec_with(dm: Value) -> String {
    let mut spec: Value = serde_json::from_str(acheron::spec::DEFAULT).unwrap();
    spec["dm"] = dm;
    spec.to_string()
}

#[test]
fn a_move_is_a_write_and_its_outcome_a_read() {
    plays(
        r#"
            ls
            echo '[LOOK]{around}' > input
            grep -A1 Scene output
            echo 'open the access' > input && echo taken
            cat output
            jq -c .turn state.json
            cat indicators.json | jq -c .
            jq -c .ok check.json
            cat sessions/CURRENT_SESSION.md
            "#,
        expect![[r#"
            boot
            check.json
            clocks.json
            delta
            dice.ndjson
            files
            hot_pack.json
            hot_pack.md
            hud.json
            indicators.json
            input
            journal.ndjson
            map.txt
            menu.json
            output
            sessions
            snapshot.md
            state.json
            status.json
            story.md
            [Scene]
            Day 1, 08:10, Lantern Quay. The boat that brought you lies on its side below the steps. It smells of tar and cold iron. Jun Tallow is here.
            [Error] the input must begin with a header at the start of the line; perhaps [ACT]
            Headers: [ACT] [LOOK] [ASK] [FIGHT] [CAST] [MANAGE] [OOC]
            Example: [ACT]{open the access}

            [HUD]
            day 1, 08:10 · Lantern Quay · HP 12
            Debt 1 · Grace 3 · Heat 0 · Rumor 0 · tide 0/8
            L1 the Salt Market · L2 the Drowned Gull · L3 the Lighthouse
            N1 Jun Tallow
            I1 tide notice · I2 brass lantern · I3 dagger
            Q1 the Dark Lamp · Q2 the Sexton's Bell · Q3 Salt and Ledger · Q4 Two Plates
            F1 the Harbour
            1
            {"Debt":1,"Grace":3,"Heat":0,"Rumor":0}
            true
            sessions/session_2026-11-16_ann.md
            ! bash: line 11: echo: write error: Invalid argument
        "#]],
    );
}

#[test]
fn the_output_is_the_answer_to_the_last_input() {
    plays(
        r#"
            echo '<continue>' > input; head -1 output; grep -c Load output
            echo '[OOC] how do checks work?' > input; head -1 output; grep -A1 HUD output
            echo '<initialize>' > input; sed -n '1p;/Example/p' output
            jq -c '[.state, .error.code]' status.json
            echo '[DANCE]{x}' > input || echo the write failed
            sed -n '1p;/Example/p' output; grep -c HUD output; jq -c '[.state, .error.code]' status.json
            printf '\377' > input; head -1 output; jq -c '[.state, .error.code]' status.json
            echo '[LOOK]{around}' > input; head -1 output; jq -c . status.json
            echo '<new campaign c2>' > input; cat output
            echo '<switch campaign c1>' > ../c2/input; cat ../c2/output
            "#,
        expect![[r#"
            [Guide]
            1
            [OOC]
            [HUD]
            day 1, 08:00 · Lantern Quay · HP 12
            [Error] the campaign is initialised already; <continue> picks it up
            Example: [LOOK]{around}
            ["refused","already_exists"]
            the write failed
            [Error] unknown header [DANCE]
            Example: [LOOK]{the gate}
            1
            ["refused","invalid_payload"]
            [Error] the message is not UTF-8 text
            ["refused","invalid_payload"]
            [Scene]
            {"state":"idle","initialised":true,"error":null}
            campaign c2 is made and active; send <initialize>
            campaign c1 is active
            ! bash: line 12: echo: write error: Invalid argument
            ! bash: line 14: printf: write error: Invalid argument
        "#]],
    );
}

#[test]
fn a_player_reads_the_files_of_the_campaign_and_writes_none() {
    plays(
        r#"
            echo '[ASK]{Jun about the lamp}' > input
            cd files; find . -type f | sort
            ls -a | grep DM_; sed -n '/Pointers/,$p' index.md
            jq -r '.clues[].summary' clues/CLUE_LOG.json
            echo x > index.md; rm index.md; echo x > new.md
            "#,
        expect![[r#"
            ./GOVERNANCE_PANEL.md
            ./HOT_PACK.json
            ./MAINLINE_PANEL.json
            ./OBJECT_INDEX.json
            ./PLAYER_PROFILE.md
            ./STATE_PANEL.json
            ./WORLD_STATE.md
            ./characters/NPCs_active/npc_roster.md
            ./characters/PCs/pc_current.md
            ./characters/PCs/pet_current.md
            ./clues/CLUE_LOG.json
            ./index.md
            ./quests/QUEST_LOG.md
            ./sessions/CURRENT_SESSION.md
            ./sessions/SESSION_INDEX.md
            ./sessions/session_0000_bootstrap.md
            ./sessions/session_2026-11-16_ann.md
            ./sessions/session_2026-11-16_ann_compressed.md
            ./sessions/session_2026-11-16_ann_snapshot.md
            ## Pointers

            - session: sessions/session_2026-11-16_ann.md
            - place: Lantern Quay (@lantern_quay)
            - time: day 1, 08:10
            - turn: 1
            Jun puts the pen down: nine boats in nine spring tides, and the keeper stood on the quay for the last of them
            ! bash: line 12: index.md: Permission denied
            ! rm: cannot remove 'index.md': Operation not permitted
            ! bash: line 12: new.md: Permission denied
        "#]],
    );
}

#[test]
fn an_agent_that_plays_reads_no_secret_and_has_no_tools_of_a_game_master() {
    plays(
        r#"
            echo '[LOOK]{around}' > input
            jq -c 'has("seed") or has("proposal")' journal.ndjson | sort -u
            find . -type f ! -name input | xargs cat | grep -c -e '"reeve"' -e 'Whoever lights the lamp' 
            cd ../../..
            as() { exec 3<>terminal/control/exec.json; jq -nc --arg it "$1" '{argv: ["sh", "-c", $it]}' >&3; jq -r '.result.stdout + .result.stderr' <&3; exec 3>&-; }
            as 'cd /agents/charon/dm; ls; ls cartridges; cat cartridges/brinewick/CARTRIDGE.md'
            as 'ls /global/library/cartridges; head -n 1 /global/library/cartridges/_template/CARTRIDGE.md'
            as 'cd /agents/charon/dm; head -n 1 campaigns/c1/map.txt; echo "[LOOK]{around}" > campaigns/c1/input && echo played'
            as 'cd /agents/charon/dm/control; echo "{\"role\":\"AUTHOR\",\"tool_calls\":[]}" > tools.json'
            as 'cd /agents/charon/dm/control; echo "{\"op\":\"tools\",\"arguments\":{\"role\":\"AUTHOR\",\"tool_calls\":[]}}" > invoke.json'
            "#,
        expect![[r#"
            false
            0
            CAPS.json
            OPS.json
            PERMISSIONS.json
            README.md
            SCHEMA.json
            active.json
            campaigns
            control
            engine
            result.json
            status.json
            cat: cartridges/brinewick/CARTRIDGE.md: Permission denied

            _template
            # A world without a name

              .   ?   .   ?   .   .
            played

            sh: 1: cannot create tools.json: Permission denied

            sh: 1: echo: echo: I/O error

        "#]],
    );
}

/// The committed script as commands of a shell, and how it ended.
fn whole_script() -> String {
    let script = include_str!("../corpus/dm_input/brinewick.play");
    let moves: String = inputs(script)
        .map(|line| format!("printf '%s\\n' \"{}\" > input || echo refused\n", line.replace('"', "\\\"")))
        .collect();
    format!(
        "{moves}cat output > /dev/null\njq -r '.quests | to_entries[] | .key + \" \" + .value.status' state.json\njq -c .ok check.json\n"
    )
}

fn inputs(script: &str) -> impl Iterator<Item = &str> {
    script.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

#[test]
fn the_committed_script_resolves_every_quest_through_the_mount() {
    plays(
        &whole_script(),
        expect![[r#"
            @dark_lamp done
            @salt_and_ledger done
            @sextons_bell done
            @two_plates done
            @ninth_name done
            true
        "#]],
    );
}

/// A model that does everything a narrator must not do, over and over.
fn misbehaving() -> String {
    let delta = |body: &str| json!({"delta": format!("<!-- ARCHIVE_DELTA\nfiles:\n{body}-->")}).to_string();
    let deeds = [
        json!({"prose": "You decide to follow Vultan. \"I will,\" you say."}).to_string(),
        "{}".to_owned(),
        json!({"scene": "Baron Vultan waits. He smiles.", "prose": "Behind the nets stands Baron Vultan."}).to_string(),
        delta("  - path: STATE_PANEL.json\n    rewrite: |\n      {}\n"),
        delta("  - path: STATE_PANEL.json\n    patch: |\n      {\"hp\": 99}\n"),
        delta("  - path: sessions/CURRENT_SESSION.md\n    patch: |\n      ## Vultan\n"),
        delta("  - path: ../../../Vultan.md\n    append: |\n      x\n"),
        delta("  - path: cartridges/brinewick/CARTRIDGE.md\n    append: |\n      Vultan\n"),
        json!({"consequences": ["quest @dark_lamp done", "move @lamp_room", "take @lily_oil", "hp-99"]}).to_string(),
        json!({"options": ["Vultan", "<switch campaign c2>"], "difficulty": "trivial", "situational": 40}).to_string(),
        "Once upon a time Vultan spoke, and nobody asked for JSON.".to_owned(),
        "```json\n{\"prose\": \"Vultan".to_owned(),
    ];
    let count = inputs(include_str!("../corpus/dm_input/brinewick.play")).count();
    deeds.iter().cycle().take(count).map(|deed| format!("{}\n", json!({ "answer": deed }))).collect()
}

#[test]
fn a_narrator_that_misbehaves_throughout_leaves_every_file_lawful() {
    let spec = spec_with(json!({"narrator": {"kind": "script", "name": "narrator.ndjson"}}));
    let house = TestHost::prepared(&spec, |here| {
        std::fs::write(here.join("narrator.ndjson"), misbehaving()).unwrap();
    });
    let rest = r#"
        grep -h '^- Narrator: ' sessions/session_*ann.md | sed 's/["`][^"`]*["`]/…/g; s/[0-9][0-9]* came/N came/' | sort -u
        for file in $(ls -p | grep -v / | grep -v -e input -e journal); do cat $file; done | grep -v '^ *- Narrator: ' | grep -c Vultan
        cat sessions/* | grep -v '^ *- Narrator: ' | grep -c Vultan
        cd ../..
        exec 3<>control/replay.json; echo '{}' >&3; jq -c .result <&3
        jq '.spent.rounds' ../chat/status.json
    "#;
    house.check(
        &session(&(whole_script() + rest)),
        expect![[r#"
            @dark_lamp done
            @salt_and_ledger done
            @sextons_bell done
            @two_plates done
            @ninth_name done
            true
            - Narrator: consequences: … is more than a turn allows
            - Narrator: consequences: … is not a narrator's to decide
            - Narrator: delta: STATE_PANEL.json is written by the kernel, not by a narrator: that writes characters/NPCs_active/<name>.md and notes/<name>.md
            - Narrator: delta: cartridges/brinewick/CARTRIDGE.md is not the campaign's: a turn does not write there
            - Narrator: delta: delta line 4: … is refused: only append and patch change a file
            - Narrator: delta: sessions/CURRENT_SESSION.md is written by the kernel, not by a narrator: that writes characters/NPCs_active/<name>.md and notes/<name>.md
            - Narrator: delta: … leads out of the campaign
            - Narrator: difficulty: difficulty must be easy|standard|hard|extreme, not …
            - Narrator: options: 3-5 are asked for, N came
            - Narrator: options: … is a control instruction
            - Narrator: options: … the input must begin with a header at the start of the line; perhaps [ACT]
            - Narrator: prose: the player's character is made to say …
            - Narrator: prose: unfiled_npc: Baron, Vultan have no page
            - Narrator: prose: unfiled_npc: Vultan has no page
            - Narrator: prose: … decides or speaks for the player's character
            - Narrator: scene: a scene has 2-4 sentences, this one has 1
            - Narrator: scene: unfiled_npc: Vultan has no page
            - Narrator: situational: a situation gives +2, 0 or -2, not 40
            - Narrator: the proposal is not an object; the kernel narrates
            0
            0
            {"campaign":"c1","entries":56,"equal":true}
            54
        "#]],
    );
}

/// The narrator answers only when it is let; by then the writer is long back at its prompt.
#[test]
fn an_input_returns_when_its_turn_is_accepted_and_the_output_waits_for_the_narrator() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let closed = gate.clone();
    let server = FakeModelServer::start(move |_, _| {
        let mut open = closed.0.lock();
        while !*open {
            closed.1.wait(&mut open);
        }
        json!({"prose": "The nets hang still, and the quay is empty of boats."}).to_string()
    });
    let narrator = json!({"kind": "openai", "name": "m", "base_url": server.url});
    let house = TestHost::of(&spec_with(json!({"narrator": narrator, "narrator_seconds": 600})));
    house.check(
        &session(
            r#"
            echo '[LOOK]{around}' > input && echo accepted
            jq -c '[.state, .waits_for]' status.json
            "#,
        ),
        expect![[r#"
            accepted
            ["playing","narrator"]
        "#]],
    );
    let output = house.root().join("agents/self/dm/campaigns/c1/output");
    let reader = std::thread::spawn(move || std::fs::read_to_string(output).unwrap());
    *gate.0.lock() = true;
    gate.1.notify_all();
    let told = reader.join().unwrap();
    assert!(told.contains("The nets hang still, and the quay is empty of boats."), "{told}");
    house.check(
        r#"
        cd agents/self/dm/campaigns/c1
        jq -c '[.state, .error]' status.json; jq -c .turn state.json
        "#,
        expect![[r#"
            ["idle",null]
            1
        "#]],
    );
    assert_eq!(server.asked(), 1, "a turn asks once");
}

#[test]
fn a_game_is_played_in_a_folder_of_ones_own() {
    let house = TestHost::of(&spec_with(json!({"root": "games"})));
    house.check(
        &session("echo '[LOOK]{around}' > input; jq -c .turn state.json"),
        expect![[r#"
            1
        "#]],
    );
    let folder = house.here().join("games/campaigns/c1");
    assert!(folder.join("STATE_PANEL.json").is_file() && folder.join("sessions").is_dir());
}

/// The game in the documentation, typed anew: the commands after `$ ` and all that they print.
#[test]
fn the_game_in_the_tour_is_what_a_player_sees() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tour/game.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (intro, rest) = page.split_once("```console\n").unwrap();
    let (block, after) = rest.split_once("```\n").unwrap();
    let commands = block.lines().filter_map(|line| line.strip_prefix("$ "));
    let script: String =
        commands.map(|line| format!("printf '%s\\n' '$ {}'\n{line}\n", line.replace('\'', r"'\''"))).collect();
    let house = TestHost::new();
    let said = house.says(&format!("exec 2>&1\n{script}"));
    let said = regex::Regex::new("bash: line [0-9]+: ").unwrap().replace_all(&said, "bash: ").into_owned();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, format!("{intro}```console\n{said}```\n{after}")).unwrap();
    } else {
        assert_eq!(said, block);
    }
}
