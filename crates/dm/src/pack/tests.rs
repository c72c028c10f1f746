use super::*;

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
            heat=1 rumor=2
            hp=-
            flags=entry_0|entry_1|entry_2|entry_3|entry_4|entry_5
            quests=entry_0|entry_1|entry_2|entry_3
            npcs=entry_0|entry_1|entry_2|entry_3
            inventory=entry_0,entry_1,entry_2,entry_3,entry_4
            timers=entry_0|entry_1|entry_2
            hooks=entry_0|entry_1|entry_2|entry_3|entry_4
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
