//! The game, as a player types it.

use expect_test::expect;

use crate::house::House;

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

#[test]
fn a_move_is_a_write_and_its_outcome_a_read() {
    House::new().check(
        &session(
            r#"
            ls
            echo '[LOOK]{around}' > input
            grep -A1 Scene output
            echo 'open the gate' > input
            cat output
            jq -c .turn state.json
            cat indicators.json | jq -c .
            jq -c .ok check.json
            cat sessions/CURRENT_SESSION.md
            "#,
        ),
        expect![[r#"
            boot
            check.json
            clocks.json
            delta
            dice.ndjson
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
            [Scene]
            Day 1, 08:10, Lantern Quay. It smells of tar and cold iron. Jun Tallow is here. Three ways lead on.
            [Error] the input must begin with a header at the start of the line; perhaps [ACT]
            Headers: [ACT] [LOOK] [ASK] [FIGHT] [CAST] [MANAGE] [OOC]
            Example: [ACT]{open the gate}
            1
            {"Debt":1,"Grace":3,"Heat":0,"Rumor":0}
            true
            sessions/session_2026-11-16_ann.md
        "#]],
    );
}

#[test]
fn the_committed_script_resolves_every_quest_through_the_mount() {
    let script = include_str!("../corpus/dm_input/brinewick.play");
    let moves: String = script
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| format!("printf '%s\\n' \"{}\" > input\n", line.replace('"', "\\\"")))
        .collect();
    let rest = format!(
        "{moves}jq -r '.quests | to_entries[] | .key + \" \" + .value.status' state.json\njq -c .ok check.json\n"
    );
    House::new().check(
        &session(&rest),
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
