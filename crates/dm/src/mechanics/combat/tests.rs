use super::*;
use crate::engine::SharedEngine;

fn fighter(name: &str, weapon: &str) -> Fighter {
    let (name, weapon) = (name.to_owned(), weapon.to_owned());
    Fighter { name, hp: 12, full: 12, str: 1, dex: 2, weapon, armour: "leather".into() }
}

#[test]
fn the_tables_have_the_numbers_of_the_page() {
    let rules = &SharedEngine::default().rules.combat;
    for (weapon, die) in [("fist", 3), ("dagger", 4), ("handaxe", 6), ("longsword", 8), ("rock", 2), ("crossbow", 8)] {
        assert_eq!(rules.weapon(weapon).die, die, "{weapon}");
    }
    let classes = ["unarmoured", "leather", "chain", "plate"].map(|armour| rules.armour_class(armour, 2));
    assert_eq!(classes, [12, 13, 14, 16]);
}

#[test]
fn a_blow_that_meets_the_armour_hurts_and_a_tie_is_thrown_again() {
    let rules = &SharedEngine::default().rules.combat;
    let (by, mut at) = (fighter("a", "dagger"), fighter("b", "club"));
    let (check, damage) = strike(&by, &mut at, rules, BlowContext::default(), &mut Dice::loaded(&[12, 4]));
    assert_eq!((check.formula.as_str(), damage, at.hp), ("d20(12)+1=13 vs DC 13", 5, 7));
    assert!(!first(&by, &at, &mut Dice::loaded(&[5, 5, 3, 9])));
}

#[test]
fn wounds_weigh_and_darkness_blinds_the_archer() {
    let rules = &SharedEngine::default().rules.combat;
    let mut weak = fighter("a", "shortbow");
    weak.hp = 3;
    assert_eq!(weak.wound(), Wound::Severe);
    let dark = BlowContext { ground: "dark", ..BlowContext::default() };
    let (check, _) = strike(&weak, &mut fighter("b", "club"), rules, dark, &mut Dice::loaded(&[4, 19]));
    assert_eq!(check.formula, "d20(4,19)+0=4 vs DC 13 (disadvantage)");
}

#[test]
fn a_faulty_table_is_named_with_its_line() {
    let page = "## COMBAT::weapons\n\n| weapon | die | adds |\n|---|---|---|\n| spoon | six | - |\n";
    assert_eq!(CombatRules::read(page).unwrap_err().to_string(), "mechanics/COMBAT.md:5: `six` is not a die like d6");
}
