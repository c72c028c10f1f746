use proptest::prelude::*;

use super::*;
use crate::tests::Game;

#[test]
fn rows_106_and_107_each_list_has_its_cap_and_the_view_its_lines() {
    let many = |count: usize| (0..count).map(|n| format!("entry_{n}")).collect::<Vec<_>>();
    let pack = json!({"spine": [], "context": {"t": "day 1", "loc": "@x", "pc": "Ann", "indicators": {"Heat": 1, "Rumor": 2},
            "flags": many(9), "quests": many(6), "npcs": many(5), "inventory": many(7), "timers": many(5), "hooks": many(8)}});
    let view = comment(&pack);
    assert!(view.lines().count() <= 25);
    expect_test::expect![[r#"
            <!-- CONTEXT_PACK_NEXT
            t=day 1
            loc=@x
            pc=Ann
            Heat=1 Rumor=2
            flags=entry_0|entry_1|entry_2|entry_3|entry_4|entry_5
            quests=entry_0|entry_1|entry_2|entry_3
            npcs=entry_0|entry_1|entry_2|entry_3
            inventory=entry_0|entry_1|entry_2|entry_3|entry_4
            timers=entry_0|entry_1|entry_2
            hooks=entry_0|entry_1|entry_2|entry_3|entry_4
            spine=-
            -->
        "#]]
    .assert_eq(&view);
}

#[test]
fn row_109_descriptions_go_before_objects_and_like_ones_are_merged_last() {
    let list = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>();
    let three = list(&["@a: long words", "@b: long words", "@c: long words"]);
    assert_eq!(fit(&three, 3, 100), three);
    assert_eq!(fit(&three, 3, 35), ["@a: long words", "@b: long words", "@c"]);
    assert_eq!(fit(&three, 3, 12), ["@a", "@b", "@c"]);
    assert_eq!(fit(&three, 3, 7), ["@a", "@b"]);
    assert_eq!(fit(&list(&["@a: x", "@a: y"]), 1, 4), ["@a"]);
    assert_eq!(fit(&list(&["@a", "@a"]), 3, 40), ["@a"]);
}

#[test]
fn the_comment_form_of_a_played_pack_is_read_back_whole() {
    let mut game = Game::new();
    for input in
        ["[LOOK]{around}", "[ACT]{take the brass lantern}", "[ASK]{Jun about the dark lamp}", "[ACT]{go to the inn}"]
    {
        game.play(input).unwrap();
        let pack = game.json("HOT_PACK.json");
        let view = comment(&pack);
        assert!(view.lines().count() <= 25, "{view}");
        assert_eq!(parse(&view).unwrap(), pack, "{view}");
    }
    let pack = game.json("HOT_PACK.json");
    assert!(!pack["spine"].as_array().unwrap().is_empty() && pack["context"]["voice"] == "pilot");
    assert_eq!(pack["context"]["inventory"].as_array().map(Vec::len), Some(2), "the lantern and the dagger");
}

#[test]
fn a_comment_that_is_no_pack_is_refused_with_its_line() {
    for (text, why) in [
        ("hello", "begins with <!-- CONTEXT_PACK_NEXT"),
        ("<!-- CONTEXT_PACK_NEXT\nt=day 1\n", "is not closed"),
        ("<!-- CONTEXT_PACK_NEXT\nnonsense\n-->", "line 2"),
        ("<!-- CONTEXT_PACK_NEXT\nhp=many\n-->", "line 2"),
    ] {
        let refused = parse(text).unwrap_err().message;
        assert!(refused.contains(why), "{text}: {refused}");
    }
}

proptest! {
    #[test]
    fn any_pack_that_fits_is_read_back(
        words in proptest::collection::vec("\\PC{0,12}", 0..5), one in "[-a|\\\\ \n>]{0,8}", text in "\\PC{0,30}",
        level in -3..9i64, extra in "[a-z]{1,6}",
    ) {
        let mut list: Vec<String> = words;
        list.push(one);
        let list = fit(&list, 5, WIDE);
        let short = fit(&list, 3, WIDE);
        let pack = json!({
            "spine": list, "key_npcs": list, "theme": text, "mainline": text, (format!("own_{extra}")): {"a": [text]},
            "context": {"t": text, "loc": "@x", "pc": text, "indicators": {"Heat": level, "Bond": level}, "hp": level,
                "flags": list, "quests": short, "npcs": short, "inventory": list, "timers": short, "hooks": list,
                "voice": text, "tone": "-", "last_turn": text, "guide_shown": 1, (format!("my_{extra}")): list},
        });
        prop_assert_eq!(parse(&comment(&pack)).unwrap(), pack);
    }
}
