//! Combat: initiative, attack, damage, wounds. One exchange per turn.

use super::{number, sides, table};
use crate::check::{Advantage, Ask, Check, throw};
use crate::dice::Dice;
use crate::world::Fault;

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

/// The effect of the ground on a fight.
#[derive(Clone, Debug, PartialEq)]
pub struct Ground {
    pub name: String,
    pub melee: i64,
    pub ranged: i64,
    pub dodge: i64,
    pub ranged_disadvantage: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CombatRules {
    pub weapons: Vec<Weapon>,
    pub armours: Vec<Armour>,
    pub grounds: Vec<Ground>,
}

impl CombatRules {
    pub fn read(text: &str) -> Result<Self, Fault> {
        let weapons = table(PAGE, text, "COMBAT::weapons", &["weapon", "die", "adds"])?;
        let mut rules = CombatRules::default();
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

    /// The weapon of that name, else bare fists.
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

    /// The penalty of the wound on attack and defence.
    fn penalty(&self) -> i64 {
        match self.wound() {
            Wound::None => 0,
            Wound::Injured => -1,
            Wound::Severe | Wound::Unconscious => -2,
        }
    }
}

/// The initiative roll; a tie is rolled again. After a hundred ties the first fighter wins, so that loaded dice cannot stall a turn.
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

/// The circumstances of a blow: the ground, and what was judged of the situation.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlowContext<'a> {
    pub ground: &'a str,
    pub situation: i32,
    /// Settled together with what the ground gives.
    pub advantage: Advantage,
}

/// One blow: the attack, and the hit points that it takes.
pub fn strike(
    by: &Fighter,
    at: &mut Fighter,
    rules: &CombatRules,
    context: BlowContext<'_>,
    dice: &mut Dice,
) -> (Check, i64) {
    let weapon = rules.weapon(&by.weapon);
    let ranged = weapon.adds.as_deref() == Some("dex");
    let skill = if ranged { by.dex } else { by.str };
    let ground = rules.ground(context.ground);
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
            ("situation".into(), context.situation),
        ],
        advantage: context.advantage.against(blind),
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
mod tests;
