//! One check: d20 and modifiers against a difficulty, in four tiers. The numbers are those of `HOUSE_RULES.md`.

use serde::{Deserialize, Serialize};

use crate::dice::Dice;
use crate::input::Risk;
use acheron_base::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Difficulty {
    Easy,
    Standard,
    Hard,
    Extreme,
}

impl Difficulty {
    pub fn dc(self) -> i32 {
        match self {
            Difficulty::Easy => 8,
            Difficulty::Standard => 12,
            Difficulty::Hard => 16,
            Difficulty::Extreme => 20,
        }
    }

    pub fn named(name: &str) -> Result<Self> {
        match name {
            "easy" => Ok(Difficulty::Easy),
            "standard" => Ok(Difficulty::Standard),
            "hard" => Ok(Difficulty::Hard),
            "extreme" => Ok(Difficulty::Extreme),
            other => Err(Error::invalid(format!("difficulty must be easy|standard|hard|extreme, not `{other}`"))),
        }
    }
}

impl Risk {
    /// The difficulties that a declared risk allows.
    pub fn band(self) -> (i32, i32) {
        match self {
            Risk::Low => (10, 12),
            Risk::Mid => (13, 16),
            Risk::High => (17, 20),
        }
    }

    pub fn clamp(self, dc: i32) -> i32 {
        let (low, high) = self.band();
        dc.clamp(low, high)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advantage {
    #[default]
    Normal,
    Advantage,
    Disadvantage,
}

impl Advantage {
    /// Any number of advantages against any number of disadvantages: neither stacks, both together cancel.
    pub fn settle(advantages: usize, disadvantages: usize) -> Self {
        match (advantages > 0, disadvantages > 0) {
            (true, false) => Advantage::Advantage,
            (false, true) => Advantage::Disadvantage,
            _ => Advantage::Normal,
        }
    }

    /// This, settled together with so many disadvantages of another source.
    pub fn against(self, disadvantages: usize) -> Self {
        let (own, other) = (self == Advantage::Advantage, self == Advantage::Disadvantage);
        Advantage::settle(usize::from(own), disadvantages + usize::from(other))
    }

    pub fn named(name: &str) -> Result<Self> {
        match name {
            "normal" => Ok(Advantage::Normal),
            "advantage" => Ok(Advantage::Advantage),
            "disadvantage" => Ok(Advantage::Disadvantage),
            other => Err(Error::invalid(format!("advantage must be normal|advantage|disadvantage, not `{other}`"))),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    Failure,
    Partial,
    Success,
    Great,
}

impl Tier {
    pub fn of(total: i32, dc: i32) -> Self {
        match total - dc {
            ..0 => Tier::Failure,
            0 => Tier::Partial,
            1..5 => Tier::Success,
            _ => Tier::Great,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Tier::Failure => "failure",
            Tier::Partial => "partial",
            Tier::Success => "success",
            Tier::Great => "great",
        }
    }

    /// A tie counts as success with a small cost.
    pub fn success(self) -> bool {
        self != Tier::Failure
    }
}

/// A check to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    pub what: String,
    pub dc: i32,
    pub modifiers: Vec<(String, i32)>,
    pub advantage: Advantage,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub what: String,
    pub dc: i32,
    pub modifier: i32,
    pub advantage: Advantage,
    pub rolls: Vec<u32>,
    pub total: i32,
    pub tier: Tier,
    pub success: bool,
    pub formula: String,
}

pub fn throw(ask: &Ask, dice: &mut Dice) -> Check {
    let count = if ask.advantage == Advantage::Normal { 1 } else { 2 };
    let rolls: Vec<u32> = (0..count).map(|_| dice.throw(20, &ask.what)).collect();
    let low = rolls.iter().min().copied().unwrap_or(1);
    let high = rolls.iter().max().copied().unwrap_or(1);
    let used = if ask.advantage == Advantage::Advantage { high } else { low };
    let modifier: i32 = ask.modifiers.iter().map(|(_, by)| by).sum();
    let total = used as i32 + modifier;
    let tier = Tier::of(total, ask.dc);
    let shown: Vec<String> = rolls.iter().map(u32::to_string).collect();
    let word = match ask.advantage {
        Advantage::Normal => "",
        Advantage::Advantage => " (advantage)",
        Advantage::Disadvantage => " (disadvantage)",
    };
    let formula = format!("d20({}){modifier:+}={total} vs DC {}{word}", shown.join(","), ask.dc);
    let (what, dc, advantage) = (ask.what.clone(), ask.dc, ask.advantage);
    Check { what, dc, modifier, advantage, rolls, total, tier, success: tier.success(), formula }
}

/// A situational modifier: the rules of the game allow ±2 and 0.
pub fn situational(by: i64) -> Result<i32> {
    match by {
        -2 | 0 | 2 => Ok(by as i32),
        other => Err(Error::invalid(format!("a situation gives +2, 0 or -2, not {other}"))),
    }
}

#[cfg(test)]
mod tests;
