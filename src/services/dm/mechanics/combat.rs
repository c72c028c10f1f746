//! Combat: initiative, attack, damage, wounds. One exchange a turn.

use super::super::check::{Advantage, Ask, Check, throw};
use super::super::dice::Dice;
use super::super::world::Fault;
use super::{number, sides, table};

const PAGE: &str = "mechanics/COMBAT.md";

#[derive(Clone, Debug, PartialEq)]
pub struct Weapon {
    pub name: String,
    pub die: u32,
    /// `str`, `dex`, or nothing.
    pub adds: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Armour {
    pub name: String,
    pub base: i64,
    pub penalty: i64,
}

/// What a place does to a fight.
#[derive(Clone, Debug, PartialEq)]
pub struct Ground {
    pub name: String,
    pub melee: i64,
    pub ranged: i64,
    pub dodge: i64,
    pub ranged_disadvantage: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    pub weapons: Vec<Weapon>,
    pub armours: Vec<Armour>,
    pub grounds: Vec<Ground>,
}

impl Rules {
    pub fn read(text: &str) -> Result<Self, Fault> {
        let weapons = table(PAGE, text, "COMBAT::weapons", &["weapon", "die", "adds"])?;
        let mut rules = Rules::default();
        for row in &weapons.rows {
            let die = weapons.get(row, "die");
            let die = sides(die).ok_or_else(|| Fault {
                path: PAGE.into(),
                line: row.line,
                message: format!("`{die}` is not a die like d6"),
            })?;
            let adds = Some(weapons.get(row, "adds")).filter(|adds| !adds.is_empty()).map(str::to_owned);
            rules.weapons.push(Weapon { name: weapons.get(row, "weapon").to_owned(), die, adds });
        }
        let armours = table(PAGE, text, "COMBAT::armour", &["armour", "base", "penalty"])?;
        for row in &armours.rows {
            let (base, penalty) = (number(PAGE, &armours, row, "base")?, number(PAGE, &armours, row, "penalty")?);
            rules.armours.push(Armour { name: armours.get(row, "armour").to_owned(), base, penalty });
        }
        let grounds =
            table(PAGE, text, "COMBAT::ground", &["ground", "melee", "ranged", "dodge", "ranged disadvantage"])?;
        for row in &grounds.rows {
            rules.grounds.push(Ground {
                name: grounds.get(row, "ground").to_owned(),
                melee: number(PAGE, &grounds, row, "melee")?,
                ranged: number(PAGE, &grounds, row, "ranged")?,
                dodge: number(PAGE, &grounds, row, "dodge")?,
                ranged_disadvantage: grounds.get(row, "ranged disadvantage") == "yes",
            });
        }
        Ok(rules)
    }

    /// The weapon of that name; bare fists where there is none.
    pub fn weapon(&self, name: &str) -> Weapon {
        let found = self.weapons.iter().find(|weapon| weapon.name == name);
        found.cloned().unwrap_or(Weapon { name: "fist".into(), die: 3, adds: None })
    }

    pub fn armour_class(&self, name: &str, dex: i64) -> i64 {
        let found = self.armours.iter().find(|armour| armour.name == name);
        found.map_or(10 + dex, |armour| armour.base + dex + armour.penalty)
    }

    pub fn ground(&self, name: &str) -> Option<&Ground> {
        self.grounds.iter().find(|ground| ground.name == name)
    }
}

/// One side of a fight.
#[derive(Clone, Debug, PartialEq)]
pub struct Fighter {
    pub name: String,
    pub hp: i64,
    pub full: i64,
    pub str: i64,
    pub dex: i64,
    pub weapon: String,
    pub armour: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wound {
    None,
    Injured,
    Severe,
    Unconscious,
}

impl Fighter {
    pub fn wound(&self) -> Wound {
        match self.hp {
            ..=0 => Wound::Unconscious,
            hp if hp * 4 <= self.full => Wound::Severe,
            hp if hp * 2 <= self.full => Wound::Injured,
            _ => Wound::None,
        }
    }

    /// What the wound takes from attack and defence.
    fn penalty(&self) -> i64 {
        match self.wound() {
            Wound::None => 0,
            Wound::Injured => -1,
            Wound::Severe | Wound::Unconscious => -2,
        }
    }
}

/// Who is first; a tie is thrown again. After a hundred ties the first has it, so that loaded dice cannot hold a turn for ever.
pub fn first(one: &Fighter, other: &Fighter, dice: &mut Dice) -> bool {
    for _ in 0..100 {
        let mine = i64::from(dice.throw(20, "initiative")) + one.dex;
        let theirs = i64::from(dice.throw(20, "initiative")) + other.dex;
        if mine != theirs {
            return mine > theirs;
        }
    }
    true
}

/// One blow: the attack, and the hit points that it takes.
pub fn strike(
    by: &Fighter,
    at: &mut Fighter,
    rules: &Rules,
    ground: &str,
    situation: i32,
    dice: &mut Dice,
) -> (Check, i64) {
    let weapon = rules.weapon(&by.weapon);
    let ranged = weapon.adds.as_deref() == Some("dex");
    let skill = if ranged { by.dex } else { by.str };
    let ground = rules.ground(ground);
    let here = ground.map_or(0, |ground| if ranged { ground.ranged } else { ground.melee });
    let dodge = ground.map_or(0, |ground| ground.dodge);
    let blind = usize::from(ranged && ground.is_some_and(|ground| ground.ranged_disadvantage));
    let ask = Ask {
        what: format!("{} attacks {}", by.name, at.name),
        dc: (rules.armour_class(&at.armour, at.dex) + at.penalty() + dodge) as i32,
        modifiers: vec![
            ("skill".into(), skill as i32),
            ("wounds".into(), by.penalty() as i32),
            ("ground".into(), here as i32),
            ("situation".into(), situation),
        ],
        advantage: Advantage::settle(0, blind),
    };
    let check = throw(&ask, dice);
    let mut damage = 0;
    if check.success {
        let adds = match weapon.adds.as_deref() {
            Some("str") => by.str,
            Some("dex") => by.dex,
            _ => 0,
        };
        damage = (i64::from(dice.throw(weapon.die, &format!("{} damage", weapon.name))) + adds).max(1);
        at.hp = (at.hp - damage).max(0);
    }
    (check, damage)
}

#[cfg(test)]
mod tests {
    use super::super::super::engine;
    use super::*;

    fn fighter(name: &str, weapon: &str) -> Fighter {
        let (name, weapon) = (name.to_owned(), weapon.to_owned());
        Fighter { name, hp: 12, full: 12, str: 1, dex: 2, weapon, armour: "leather".into() }
    }

    #[test]
    fn the_tables_have_the_numbers_of_the_page() {
        let rules = &engine::rules().unwrap().combat;
        for (weapon, die) in
            [("fist", 3), ("dagger", 4), ("handaxe", 6), ("longsword", 8), ("rock", 2), ("crossbow", 8)]
        {
            assert_eq!(rules.weapon(weapon).die, die, "{weapon}");
        }
        let classes = ["unarmoured", "leather", "chain", "plate"].map(|armour| rules.armour_class(armour, 2));
        assert_eq!(classes, [12, 13, 14, 16]);
    }

    #[test]
    fn a_blow_that_meets_the_armour_hurts_and_a_tie_is_thrown_again() {
        let rules = &engine::rules().unwrap().combat;
        let (by, mut at) = (fighter("a", "dagger"), fighter("b", "club"));
        let (check, damage) = strike(&by, &mut at, rules, "", 0, &mut Dice::loaded(&[12, 4]));
        assert_eq!((check.formula.as_str(), damage, at.hp), ("d20(12)+1=13 vs DC 13", 5, 7));
        assert!(!first(&by, &at, &mut Dice::loaded(&[5, 5, 3, 9])));
    }

    #[test]
    fn wounds_weigh_and_darkness_blinds_the_archer() {
        let rules = &engine::rules().unwrap().combat;
        let mut weak = fighter("a", "shortbow");
        weak.hp = 3;
        assert_eq!(weak.wound(), Wound::Severe);
        let (check, _) = strike(&weak, &mut fighter("b", "club"), rules, "dark", 0, &mut Dice::loaded(&[4, 19]));
        assert_eq!(check.formula, "d20(4,19)+0=4 vs DC 13 (disadvantage)");
    }

    #[test]
    fn a_faulty_table_is_named_with_its_line() {
        let page = "## COMBAT::weapons\n\n| weapon | die | adds |\n|---|---|---|\n| spoon | six | - |\n";
        assert_eq!(Rules::read(page).unwrap_err().to_string(), "mechanics/COMBAT.md:5: `six` is not a die like d6");
    }
}
