//! Governance: tiers of a holding, its consumption, its harvest, its soldiers, the loyalty of its people.

use super::{number, table};
use crate::world::Fault;

const PAGE: &str = "mechanics/GOVERNANCE.md";

#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    pub lands: i64,
    pub followers: i64,
    pub soldiers: i64,
    pub loyalty: i64,
    pub food: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HoldingTier {
    pub tier: i64,
    pub lands: i64,
    pub followers: i64,
    pub soldiers: i64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct GovernanceRules {
    pub tiers: Vec<HoldingTier>,
}

impl GovernanceRules {
    pub fn read(text: &str) -> Result<Self, Fault> {
        let tiers = table(PAGE, text, "GOVERNANCE::tiers", &["tier", "lands", "followers", "soldiers"])?;
        let mut rules = GovernanceRules::default();
        for row in &tiers.rows {
            let cell = |column| number(PAGE, &tiers, row, column);
            let (tier, lands) = (cell("tier")?, cell("lands")?);
            rules.tiers.push(HoldingTier { tier, lands, followers: cell("followers")?, soldiers: cell("soldiers")? });
        }
        Ok(rules)
    }

    /// The highest tier whose three needs are all met.
    pub fn tier(&self, holding: &Holding) -> i64 {
        let met = |tier: &&HoldingTier| {
            holding.lands >= tier.lands && holding.followers >= tier.followers && holding.soldiers >= tier.soldiers
        };
        self.tiers.iter().filter(met).map(|tier| tier.tier).max().unwrap_or(0)
    }
}

/// How the people stand, by loyalty.
pub fn mood(loyalty: i64) -> &'static str {
    match loyalty {
        8.. => "devoted",
        5..8 => "content",
        2..5 => "grumbling",
        _ => "rebellious",
    }
}

/// One month: the people eat; where there is not enough, loyalty falls by one.
pub fn settle(holding: &Holding) -> (Holding, Vec<String>) {
    let mut after = holding.clone();
    let need = holding.followers.saturating_mul(2);
    let mut told = vec![format!("food {} - {need}", holding.food)];
    after.food = holding.food - need;
    if after.food < 0 {
        after.food = 0;
        after.loyalty -= 1;
        told.push(format!("shortage: loyalty {} -> {} ({})", holding.loyalty, after.loyalty, mood(after.loyalty)));
    }
    (after, told)
}

/// The yield of a piece of land, by its grade.
pub fn harvest(base: i64, grade: &str) -> i64 {
    match grade {
        "poor" => base / 2,
        "good" => base + base / 2,
        "rich" => base * 2,
        _ => base,
    }
}

/// Days of training at a level of 0 to 9.
pub fn training(basic: i64, level: i64) -> i64 {
    basic * (10 - level.clamp(0, 9)) / 10
}

/// The chapters of `GOVERNANCE_PANEL.md`, in their fixed order.
pub const CHAPTERS: [&str; 10] = [
    "Summary",
    "Lands",
    "Followers",
    "Soldiers",
    "Loyalty",
    "Stores",
    "Buildings",
    "Projects",
    "Threats",
    "Current Settlement",
];

/// The panel of a holding.
pub fn panel(holding: &Holding, rules: &GovernanceRules, settlement: &[String]) -> String {
    let mut out = String::from("# Governance\n");
    for chapter in CHAPTERS {
        let body = match chapter {
            "Summary" => format!("- tier: {}\n- mood: {}", rules.tier(holding), mood(holding.loyalty)),
            "Lands" => format!("- lands: {}", holding.lands),
            "Followers" => format!("- followers: {}", holding.followers),
            "Soldiers" => format!("- soldiers: {}", holding.soldiers),
            "Loyalty" => format!("- loyalty: {}", holding.loyalty),
            "Stores" => format!("- food: {}", holding.food),
            "Current Settlement" if !settlement.is_empty() => {
                settlement.iter().map(|line| format!("- {line}\n")).collect()
            }
            _ => "- none".to_owned(),
        };
        out.push_str(&format!("\n## {chapter}\n\n{}\n", body.trim_end()));
    }
    out
}

/// The holding that a panel tells of.
pub fn holding(panel: &str) -> Holding {
    let value = |key| crate::md::field(panel, key).and_then(|value| value.parse().ok()).unwrap_or(0);
    let (lands, followers, soldiers) = (value("lands"), value("followers"), value("soldiers"));
    Holding { lands, followers, soldiers, loyalty: value("loyalty"), food: value("food") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::SharedEngine;

    const SMALL: Holding = Holding { lands: 3, followers: 100, soldiers: 30, loyalty: 5, food: 150 };

    #[test]
    fn a_holding_has_the_tier_that_it_fulfils_wholly() {
        let rules = &SharedEngine::default().rules.governance;
        assert_eq!(rules.tier(&SMALL), 3);
        assert_eq!(rules.tier(&Holding { soldiers: 29, ..SMALL }), 2);
        assert_eq!(rules.tier(&Holding { lands: 20, followers: 2000, soldiers: 1000, ..SMALL }), 7);
    }

    #[test]
    fn hunger_costs_loyalty_and_the_panel_says_so() {
        let (after, told) = settle(&SMALL);
        assert_eq!((after.food, after.loyalty, told[1].as_str()), (0, 4, "shortage: loyalty 5 -> 4 (grumbling)"));
        let page = panel(&after, &SharedEngine::default().rules.governance, &told);
        assert_eq!(page.matches("\n## ").count(), 10);
        assert_eq!(holding(&page), after);
        assert_eq!(
            [harvest(100, "poor"), harvest(100, "fair"), harvest(100, "good"), harvest(100, "rich")],
            [50, 100, 150, 200]
        );
        assert_eq!(training(30, 4), 18);
    }
}
