use super::*;

fn ask(dc: i32, by: i32, advantage: Advantage) -> Ask {
    Ask { what: "test".into(), dc, modifiers: vec![("test".into(), by)], advantage }
}

#[test]
fn rows_56_to_62_the_tiers_and_two_dice() {
    type Throws = (&'static str, &'static [u32], i32, Advantage, i32, Tier, bool);
    let rows: &[Throws] = &[
        ("56", &[11], 1, Advantage::Normal, 12, Tier::Partial, true),
        ("57", &[10], 0, Advantage::Normal, 10, Tier::Failure, false),
        ("59", &[17], 0, Advantage::Normal, 17, Tier::Great, true),
        ("60", &[16], 0, Advantage::Normal, 16, Tier::Success, true),
        ("61", &[4, 15], 0, Advantage::Advantage, 15, Tier::Success, true),
        ("62", &[4, 15], 0, Advantage::Disadvantage, 4, Tier::Failure, false),
    ];
    for (row, dice, by, advantage, total, tier, success) in rows {
        let check = throw(&ask(12, *by, *advantage), &mut Dice::loaded(dice));
        assert_eq!((check.total, check.tier, check.success), (*total, *tier, *success), "row {row}");
        assert_eq!(check.rolls, *dice, "row {row}");
    }
}

#[test]
fn rows_64_65_67_70_71_advantage_situation_names_and_formula() {
    assert_eq!(Advantage::settle(2, 1), Advantage::Normal);
    assert_eq!(Advantage::settle(2, 0), Advantage::Advantage);
    assert_eq!(Advantage::settle(0, 3), Advantage::Disadvantage);
    let both =
        Ask { modifiers: vec![("prepared".into(), 2), ("pressure".into(), -2)], ..ask(12, 0, Advantage::Normal) };
    assert_eq!(throw(&both, &mut Dice::loaded(&[9])).modifier, 0);
    let dcs: Vec<i32> =
        ["easy", "standard", "hard", "extreme"].map(|name| Difficulty::named(name).unwrap().dc()).into();
    assert_eq!(dcs, [8, 12, 16, 20]);
    assert!(Advantage::named("lucky").unwrap_err().message.contains("normal|advantage|disadvantage"));
    assert_eq!(throw(&ask(12, 1, Advantage::Normal), &mut Dice::loaded(&[11])).formula, "d20(11)+1=12 vs DC 12");
    assert!(situational(5).is_err());
}

#[test]
fn row_14_a_declared_risk_bounds_the_difficulty() {
    assert_eq!(Risk::Mid.band(), (13, 16));
    assert_eq!([8, 14, 20].map(|dc| Risk::Mid.clamp(dc)), [13, 14, 16]);
}
